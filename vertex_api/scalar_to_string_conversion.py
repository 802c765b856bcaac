"""Conversion of scalars to strings in the JSON of messages: of int64 numbers, and of all scalars in string fields."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from pydantic.alias_generators import to_camel

from vertex_api.typed_dict_fields import Field, get_fields_by_name


def convert_int64_to_strings(message_type: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical message as JSON, with numbers of type int64 as strings (proto3's JSON mapping)."""
    converted = dict(value)
    for name, field in _get_fields_containing_int64(message_type).items():
        if name in value:
            if field.is_int64 and field.cardinality == "one":  # a study has this in each of its measurements
                converted[name] = str(value[name])
            else:
                converted[name] = field.map_values(value[name], partial(_convert_int64_in_field_to_strings, field))
    return converted


def convert_scalars_in_string_fields_to_texts(message_type: Any, value: Any) -> Any:
    """Return a JSON value with texts in place of numbers and booleans where its message has texts.

    It is that of a google.protobuf.Value, in which every number is a double: 7 becomes "7.0", True becomes "true".
    """
    if not isinstance(value, Mapping):
        return value
    fields = {key: get_fields_by_name(message_type).get(to_camel(key)) for key in value}
    return {
        key: field.map_values(value[key], partial(_convert_scalars_in_field_to_texts, field)) if field else value[key]
        for key, field in fields.items()
    }


def _convert_scalars_in_field_to_texts(field: Field, value: Any) -> Any:
    if field.message_type is not None:
        return convert_scalars_in_string_fields_to_texts(field.message_type, value)
    if not field.is_string or not isinstance(value, bool | int | float):
        return value
    return str(value).lower() if isinstance(value, bool) else str(float(value))


def _convert_int64_in_field_to_strings(field: Field, value: Any) -> Any:
    return str(value) if field.is_int64 else convert_int64_to_strings(field.message_type, value)


@cache
def _get_fields_containing_int64(message_type: Any) -> Mapping[str, Field]:
    """Return the fields of a message that are, or contain, numbers of type int64, by name."""
    return {name: field for name, field in get_fields_by_name(message_type).items() if _contains_int64(field, ())}


def _contains_int64(field: Field, parents: tuple[Any, ...]) -> bool:
    if field.message_type is None or field.message_type in parents:
        return field.is_int64
    inner_fields = get_fields_by_name(field.message_type).values()
    return any(_contains_int64(inner, (*parents, field.message_type)) for inner in inner_fields)
