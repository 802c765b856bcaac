"""What the real gcp provider takes, read off the installed pulumi_gcp package."""

from __future__ import annotations

import collections.abc
import importlib
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pulumi
from pulumi import _types
from pulumi.runtime.rpc import UNKNOWN

_SCALARS: dict[type, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int, float), float: (int, float)}


def problems(token: str, inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each `(property, reason)` for which the real provider would refuse the inputs of a resource such as
    `gcp:storage/bucket:Bucket`: unknown names, wrong types, missing required properties."""
    arguments = _arguments(token)
    if arguments is None:
        yield "", f"the real provider has no resource {token}"
        return
    yield from _message(arguments, inputs, "")


def labels_property(token: str) -> str:
    """The property that labels of a user's own stand in, such as `labels`; empty for a resource without labels."""
    arguments = _arguments(token)
    names = _fields(arguments) if arguments else {}
    return next((name for name in ("userLabels", "labels") if name in names), "")


@cache
def _arguments(token: str) -> type | None:
    """The class of a resource's arguments."""
    package, module, name = token.split(":")
    try:
        found = importlib.import_module(f"pulumi_{package}.{module.partition('/')[0]}")
    except ImportError:
        return None
    return getattr(found, f"{name}Args", None)


@cache
def _fields(message: type) -> dict[str, tuple[Any, bool]]:
    """Type and necessity of each property by its name on the wire."""
    # pulumi.Input names Output[T] as a text.
    scope = {**vars(pulumi.output), **vars(importlib.import_module(message.__module__))}
    hints = typing.get_type_hints(message.__init__, scope)
    defaults = message.__init__.__kwdefaults__ or {}
    names = _types.input_type_py_to_pulumi_names(message)
    return {wire: (hints[python], python not in defaults) for python, wire in names.items()}


def _message(message: type, value: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    fields = _fields(message)
    for name, child in value.items():
        if name.startswith("__"):
            continue
        if name not in fields:
            yield f"{path}{name}", f"the real provider's {message.__name__} has no such property"
        elif child is not None:
            yield from _value(fields[name][0], child, f"{path}{name}")
    for name, (_, required) in fields.items():
        if required and value.get(name) is None:
            yield f"{path}{name}", f"is required by the real provider's {message.__name__}"


def _value(type_: Any, value: Any, path: str) -> Iterator[tuple[str, str]]:
    if value == UNKNOWN or isinstance(value, pulumi.Output):
        return
    choices = [choice for choice in _choices(type_) if choice is not type(None)]
    found = [list(_one(choice, value, path)) for choice in choices]
    if found and all(found):
        yield from min(found, key=len)


def _choices(type_: Any) -> Iterator[Any]:
    """The types that an `Input[Optional[Union[…]]]` comes down to."""
    origin = typing.get_origin(type_)
    if origin in (typing.Union, types.UnionType):
        for choice in typing.get_args(type_):
            yield from _choices(choice)
    elif origin not in (pulumi.Output, collections.abc.Awaitable):
        yield type_


def _one(type_: Any, value: Any, path: str) -> Iterator[tuple[str, str]]:
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (collections.abc.Sequence, list):
        if not isinstance(value, list):
            yield path, f"{value!r} is not a list"
            return
        for index, child in enumerate(value):
            yield from _value(arguments[0], child, f"{path}[{index}]")
    elif origin in (collections.abc.Mapping, dict):
        if not isinstance(value, Mapping):
            yield path, f"{value!r} is not a map"
            return
        for key, child in value.items():
            yield from _value(arguments[1], child, f"{path}.{key}")
    elif isinstance(type_, type) and _types.is_input_type(type_):
        if not isinstance(value, Mapping):
            yield path, f"{value!r} is not an object"
            return
        yield from _message(type_, value, f"{path}.")
    elif not isinstance(value, _SCALARS.get(type_, (object,))) or (isinstance(value, bool) and type_ is not bool):
        yield path, f"{value!r} is not of type {getattr(type_, '__name__', type_)}"
