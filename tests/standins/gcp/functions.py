"""What the real gcp provider's functions take and answer, read off the installed pulumi_gcp package."""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi import _types


def argument_problems(token: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the arguments of a function such as `gcp:cloudquota/getSQuotaInfos:getSQuotaInfos`."""
    function, result = _function_and_result(token)
    wire = _types._py_to_pulumi_names_from_py_properties(result)
    known = {wire[name] for name in inspect.signature(function).parameters if name != "opts"}
    yield from (f"{name}: {token} has no such argument" for name in arguments.keys() - known)


def result_problems(token: str, result: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the names and types of a function's result."""
    yield from _value_problems(_function_and_result(token)[1], result, "")


def _function_and_result(token: str) -> tuple[typing.Callable[..., Any], type]:
    package, module, name = token.split(":")
    found = importlib.import_module(f"pulumi_{package}.{module.partition('/')[0]}")
    # getSQuotaInfos is get_s_quota_infos
    python = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)
    return getattr(found, python), getattr(found, f"{name[0].upper()}{name[1:]}Result")


def _value_problems(type_: Any, value: Any, path: str) -> Iterator[str]:
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin is typing.Union:
        (inner,) = (each for each in arguments if each is not type(None))
        yield from _value_problems(inner, value, path) if value is not None else ()
    elif _types.is_output_type(type_) and isinstance(value, Mapping):
        types = _types.output_type_types(type_)
        yield from (f"{path}{name}: {type_.__name__} has no such property" for name in value.keys() - types.keys())
        for name in value.keys() & types.keys():
            yield from _value_problems(types[name], value[name], f"{path}{name}.")
    elif isinstance(value, list) and arguments:
        for index, child in enumerate(value):
            yield from _value_problems(arguments[0], child, f"{path}{index}.")
    elif isinstance(value, Mapping) and len(arguments) == 2:
        for key, child in value.items():
            yield from _value_problems(arguments[1], child, f"{path}{key}.")
    elif not isinstance(type_, type) or not isinstance(value, type_):
        yield f"{path.removesuffix('.')}: {value!r} is not of type {type_}"
