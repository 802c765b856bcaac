"""The fields of the API's messages, as the generated TypedDicts declare them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Required, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from vertex_api.scalar_types import Int64, String

_INT64_MARK, _STRING_MARK = get_args(Int64)[1], get_args(String)[1]


@dataclass(frozen=True)
class Field:
    """One field of a message. `message_type` is the TypedDict of its values, None for scalars.

    `cardinality` says whether it has one value, a list or a map of them, `is_int64` and `is_string` of which type.
    """

    message_type: Any
    cardinality: Literal["one", "list", "map"]
    is_int64: bool
    is_string: bool

    def map_values(self, value: Any, convert: Callable[[Any], Any]) -> Any:
        """Return the value of this field with each entry of its list or map converted, or else as a whole."""
        if self.cardinality == "list" and isinstance(value, list):
            return [convert(child) for child in value]
        if self.cardinality == "map" and isinstance(value, Mapping):
            return {key: convert(child) for key, child in value.items()}
        return convert(value)


@cache
def get_fields_by_name(message_type: Any) -> Mapping[str, Field]:
    """Return the fields of a message of `vertex_api.types`, by camelCase name."""
    return {name: _build_field(hint) for name, hint in get_type_hints(message_type, include_extras=True).items()}


def split_type_and_annotations(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the type of a field without Required and Annotated, and the arguments of Annotated."""
    if get_origin(hint) is Required:
        return split_type_and_annotations(get_args(hint)[0])
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        return inner, tuple(marks)
    return hint, ()


def _build_field(hint: Any) -> Field:
    inner, marks = split_type_and_annotations(hint)
    cardinality: Literal["one", "list", "map"] = "one"
    if get_origin(inner) in (list, dict):
        cardinality = "list" if get_origin(inner) is list else "map"
        inner, marks = split_type_and_annotations(get_args(inner)[-1])
    return Field(inner if is_typeddict(inner) else None, cardinality, _INT64_MARK in marks, _STRING_MARK in marks)
