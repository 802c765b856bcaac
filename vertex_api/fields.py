"""What the fields of the API's messages hold, read off the generated types."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Required, get_args, get_origin, get_type_hints

from pydantic.alias_generators import to_camel
from typing_extensions import is_typeddict

from vertex_api.scalars import Int64

_INT64_MARK = get_args(Int64)[1]


@dataclass(frozen=True)
class Field:
    """One field: `message` is the TypedDict that it holds, None for a scalar; `holds` one, a list or a map of them."""

    message: Any
    holds: Literal["one", "list", "map"]
    is_int64: bool


@cache
def get_fields(message: Any) -> Mapping[str, Field]:
    """The fields of one of `vertex_api.types`' messages, by their camelCase names."""
    return {name: _field(hint) for name, hint in get_type_hints(message, include_extras=True).items()}


def drop_unknown_fields(message: Any, value: Any) -> Any:
    """The part of a JSON value that a message has fields for, in either spelling.

    A service that is newer than these types may say more.
    """
    if not isinstance(value, Mapping):
        return value
    named = {key: get_fields(message).get(to_camel(key)) for key in value}
    return {key: _each(field, value[key], drop_unknown_fields) for key, field in named.items() if field}


def _each(field: Field, value: Any, change: Callable[[Any, Any], Any]) -> Any:
    """The value of a field with `change` applied to each message in it; what has another shape is left as it is."""
    if field.message is None:
        return value
    if field.holds == "list" and isinstance(value, list):
        return [change(field.message, child) for child in value]
    if field.holds == "map" and isinstance(value, Mapping):
        return {key: change(field.message, child) for key, child in value.items()}
    return change(field.message, value)


def int64_as_strings(message: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    """A canonical message as JSON: whole numbers of type int64 become strings (proto3's JSON mapping).

    Only the fields below which there can be such a number are looked at; the rest is taken over as it is.
    """
    shown = dict(value)
    for name, field in _fields_with_int64(message).items():
        if name in shown:
            shown[name] = _written(field, shown[name])
    return shown


def _written(field: Field, value: Any) -> Any:
    match field.holds:
        case "list":
            return [_written_one(field, child) for child in value]
        case "map":
            return {key: _written_one(field, child) for key, child in value.items()}
    return _written_one(field, value)


def _written_one(field: Field, value: Any) -> Any:
    return str(value) if field.is_int64 else int64_as_strings(field.message, value)


@cache
def _fields_with_int64(message: Any) -> Mapping[str, Field]:
    return {name: field for name, field in get_fields(message).items() if _reaches_int64(field, ())}


def _reaches_int64(field: Field, above: tuple[Any, ...]) -> bool:
    if field.message is None:
        return field.is_int64
    if field.message in above:
        return False
    return any(_reaches_int64(inner, (*above, field.message)) for inner in get_fields(field.message).values())


def _field(hint: Any) -> Field:
    inner, marks = unwrap_hint(hint)
    if get_origin(inner) is list:
        inner, marks = unwrap_hint(get_args(inner)[0])
        holds: Literal["one", "list", "map"] = "list"
    elif get_origin(inner) is dict:
        inner, marks = unwrap_hint(get_args(inner)[1])
        holds = "map"
    else:
        holds = "one"
    return Field(inner if is_typeddict(inner) else None, holds, _INT64_MARK in marks)


def unwrap_hint(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A field's type without Required and Annotated, and what it was annotated with."""
    if get_origin(hint) is Required:
        return unwrap_hint(get_args(hint)[0])
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        return inner, tuple(marks)
    return hint, ()
