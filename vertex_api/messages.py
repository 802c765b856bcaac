"""The API's messages, read from their TypedDicts: fields, JSON schemas, and conversions of whole values.

A message is one of the TypedDicts of `vertex_api.types`, or another with the same scalars.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Annotated, Any, Literal, Required, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel
from typing_extensions import is_typeddict

from vertex_api.scalars import Int64, Numbered, String

KeyPath = tuple[str | int, ...]
"""Where a value stands in a message: `("jobSpec", "workerPoolSpecs", 0)`."""
Schema = Mapping[str, Any]
_INT64_MARK, _STRING_MARK = get_args(Int64)[1], get_args(String)[1]
_MAX_NAME_LENGTH = 200
_MAX_DEPTH, _MAX_CONTAINING_FIELDS = 2, 2


@dataclass(frozen=True)
class Field:
    """One field of a message. `message_type` is the TypedDict of its values, None for scalars.

    `cardinality` says whether it has one value, a list or a map of them, `is_int64` and `is_string` of which type.
    `enum` has the numbers of an enum by name, else nothing.
    """

    message_type: Any
    cardinality: Literal["one", "list", "map"]
    is_int64: bool
    is_string: bool
    enum: Mapping[str, int]

    def map_values(self, value: Any, convert: Callable[[Any], Any]) -> Any:
        """Return the value of this field with each entry of its list or map converted, or else as a whole."""
        if self.cardinality == "list" and isinstance(value, list):
            return [convert(child) for child in value]
        if self.cardinality == "map" and isinstance(value, Mapping):
            return {key: convert(child) for key, child in value.items()}
        return convert(value)


@cache
def message_fields(message_type: Any) -> Mapping[str, Field]:
    """Return the fields of a message by camelCase name."""
    return {name: _field(hint) for name, hint in get_type_hints(message_type, include_extras=True).items()}


def _field(hint: Any) -> Field:
    inner, marks = split_hint(hint)
    cardinality: Literal["one", "list", "map"] = "one"
    if get_origin(inner) in (list, dict):
        cardinality = "list" if get_origin(inner) is list else "map"
        inner, marks = split_hint(get_args(inner)[-1])
    enum = next((mark.by_name(inner) for mark in marks if isinstance(mark, Numbered)), {})
    message_type = inner if is_typeddict(inner) else None
    return Field(message_type, cardinality, _INT64_MARK in marks, _STRING_MARK in marks, enum)


def split_hint(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the type of a field without Required and Annotated, and the arguments of Annotated."""
    if get_origin(hint) is Required:
        return split_hint(get_args(hint)[0])
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        return inner, tuple(marks)
    return hint, ()


def show_path(path: KeyPath) -> str:
    """Return a path as the API writes it: `("a", 0, "b")` → `a[0].b`. Very long names are truncated."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{truncate(str(part))}" for part in path).lstrip(".")


def truncate(name: str) -> str:
    """Return a name that is too long to be one by its beginning."""
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 3]}..."


def value_at(value: Any, path: KeyPath) -> Any:
    """Return the value at a path, None if there is none."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def parse_path(text: str) -> KeyPath:
    """Return the path that a text such as `a.b[0].c` shows."""
    return tuple(int(index) if index else key for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", text))


def set_at(value: Any, path: str, new: Any) -> None:
    """Set what stands at a path such as `a.b[0].c`, or remove it for None; an index past the end adds an item.

    Objects and lists on the way are made, and items are not. Raises KeyError, IndexError or TypeError if there is no
    such place.
    """
    parts = parse_path(path)
    for part, following in pairwise(parts):
        inner: Any = [] if isinstance(following, int) else {}
        value = value.setdefault(part, inner) if isinstance(value, dict) else value[part]
    last = parts[-1]
    if new is None:
        del value[last]
    elif isinstance(value, list) and last == len(value):
        value.append(new)
    else:
        value[last] = new


def without_unset(value: Any) -> Any:
    """Return a JSON value without nulls and empty lists, which mean "unset" in proto JSON. Empty messages stay."""
    if isinstance(value, Mapping):
        return {key: without_unset(child) for key, child in value.items() if child is not None and child != []}
    if isinstance(value, list | tuple):
        return [without_unset(child) for child in value]
    return value


_STOPPING_COUNTS = ("minNumTrials", "maxNumTrials", "maxNumTrialsNoProgress")
_RANGE = ("minValue", "maxValue", "defaultValue")
_PRESENT = frozenset({*_STOPPING_COUNTS, *_RANGE, "replicaCount", "updateAllStoppedTrials", "shouldStopAsap", "query"})
"""Fields of jobs in which a zero is not what it means to leave them out.

In Google's protos these have presence (`optional`, or a wrapper); the ends of a range, and a pool's replicas, are
required there.
"""

_SAME_WHEN_EMPTY = frozenset({"scheduling", "diskSpec"})
"""Messages that say nothing by being there, unlike a rule for stopping or a safety metric."""


def without_defaults(message_type: Any, value: Any) -> Any:
    """Return a canonical job without numbers, booleans and enums that are zero, false or unspecified.

    Proto3 sends the same for them and for nothing, so a job that writes them out is the same job. Required fields stay.
    """
    if message_type is None or not isinstance(value, Mapping):
        return value
    fields = message_fields(message_type)
    required = message_type.__required_keys__

    def is_default(key: str, child: Any) -> bool:
        field = fields.get(key)
        if field is None or field.cardinality != "one" or key in required or key in _PRESENT:
            return False
        return (
            child is False
            or (type(child) is int and child == 0)
            or (isinstance(child, str) and field.enum.get(child) == 0)
        )

    kept = {
        key: fields[key].map_values(child, partial(without_defaults, fields[key].message_type))
        if key in fields
        else child
        for key, child in value.items()
        if not is_default(key, child)
    }
    return {key: child for key, child in kept.items() if child != {} or key not in _SAME_WHEN_EMPTY}


def enums_as_numbers(message_type: Any, value: Any) -> Any:
    """Return a message as JSON with the numbers of enums in place of their names (`alt=json;enum-encoding=int`)."""
    if message_type is None or not isinstance(value, Mapping):
        return value
    fields = message_fields(message_type)

    def convert(field: Field, child: Any) -> Any:
        return field.enum.get(child, child) if field.enum else enums_as_numbers(field.message_type, child)

    return {
        key: fields[key].map_values(child, partial(convert, fields[key])) if key in fields else child
        for key, child in value.items()
    }


def int64_as_text(message_type: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical message as JSON, with numbers of type int64 as strings (proto3's JSON mapping)."""
    converted = dict(value)
    for name, field in _int64_fields(message_type).items():
        if name in value:
            if field.is_int64 and field.cardinality == "one":  # a study has this in each of its measurements
                converted[name] = str(value[name])
            elif field.is_int64:
                converted[name] = field.map_values(value[name], str)
            else:
                converted[name] = field.map_values(value[name], partial(int64_as_text, field.message_type))
    return converted


@cache
def _int64_fields(message_type: Any) -> Mapping[str, Field]:
    """Return the fields of a message that are, or contain, numbers of type int64, by name."""

    def has_int64(field: Field, parents: tuple[Any, ...]) -> bool:
        if field.message_type is None or field.message_type in parents:
            return field.is_int64
        inner_fields = message_fields(field.message_type).values()
        return any(has_int64(inner, (*parents, field.message_type)) for inner in inner_fields)

    return {name: field for name, field in message_fields(message_type).items() if has_int64(field, ())}


def scalars_as_text(message_type: Any, value: Any) -> Any:
    """Return a JSON value with texts in place of numbers and booleans where its message has texts.

    It is that of a google.protobuf.Value, in which every number is a double: 7 becomes "7.0", True becomes "true".
    """
    if not isinstance(value, Mapping):
        return value

    def convert(field: Field, value: Any) -> Any:
        if field.message_type is not None:
            return scalars_as_text(field.message_type, value)
        if not field.is_string or not isinstance(value, bool | int | float):
            return value
        return str(value).lower() if isinstance(value, bool) else str(float(value))

    fields = {key: message_fields(message_type).get(to_camel(key)) for key in value}
    return {
        key: field.map_values(value[key], partial(convert, field)) if field else value[key]
        for key, field in fields.items()
    }


@cache
def type_adapter(message_type: Any) -> TypeAdapter[Any]:
    """Return pydantic's validator of a message."""
    return TypeAdapter(message_type)


@cache
def json_schema(message_type: Any) -> Schema:
    """Return the JSON schema of a message, with the API's own field names."""
    return type_adapter(message_type).json_schema(by_alias=False)


def schema_at(message_type: Any, path: KeyPath) -> Schema:
    """Return the JSON schema of the value at a path in a message."""
    root = node = json_schema(message_type)
    for part in path:
        node = _resolve(node, root)
        node = (
            node["items"] if "items" in node else node.get("properties", {}).get(part) or node["additionalProperties"]
        )
    return _resolve(node, root)


def _resolve(node: Schema, root: Schema) -> Schema:
    """Return the definition that a part of a schema refers to, or the part itself."""
    while "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def settable_fields(message_type: Any, path: KeyPath) -> dict[str, Schema]:
    """Return the fields that a user may set in the message at a path, each with its schema."""
    fields = schema_at(message_type, path).get("properties", {})
    return {name: field for name, field in fields.items() if not field.get("readOnly")}


def nested_paths(message_type: Any, path: KeyPath, field_name: str) -> list[str]:
    """Find the fields below the message at a path that hold a field of a name, at the least depth.

    Of a job, `jobSpec.scheduling` holds `timeout`. Returns none if there are more than two: then it is no help.
    """

    def children(text: str, path: KeyPath) -> Iterator[tuple[str, KeyPath]]:
        for name in settable_fields(message_type, path):
            is_list = "items" in schema_at(message_type, (*path, name))
            yield (f"{text}.{name}[]", (*path, name, 0)) if is_list else (f"{text}.{name}", (*path, name))

    level = {"": path}
    for _ in range(_MAX_DEPTH):
        level = dict(child for text, outer in level.items() for child in children(text, outer))
        found = [
            text.lstrip(".") for text, inner in level.items() if field_name in settable_fields(message_type, inner)
        ]
        if found:
            return found if len(found) <= _MAX_CONTAINING_FIELDS else []
    return []


def placeholder(message_type: Any, path: KeyPath) -> Any:
    """Return the smallest value that has the shape of the one at a path in a message."""
    root = json_schema(message_type)

    def smallest(node: Schema) -> Any:
        node = _resolve(node, root)
        if "enum" in node:
            return node["enum"][0]
        match node.get("type"):
            case "object":
                return {name: smallest(node["properties"][name]) for name in node.get("required", ())}
            case "array":
                return [smallest(node["items"])]
            case "string":
                return ""
            case "boolean":
                return False
        return 0

    return smallest(schema_at(message_type, path))
