"""The shape of a value: whether it has the fields and types of one of the API's messages, and its canonical form."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from pydantic import ValidationError
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import ErrorDetails

from vertex_api.name_suggestions import find_closest_name_or_none, join_with_or, suggestion_or_known_names_text
from vertex_api.scalar_types import quote_value
from vertex_api.typed_dict_fields import get_fields_by_name
from vertex_api.validation.json_schema_lookup import (
    find_nested_path_texts_containing,
    get_json_schema,
    get_settable_field_schemas,
    get_type_adapter,
)
from vertex_api.validation.problem_limit import MAX_PROBLEMS, take_one_more_than_shown
from vertex_api.validation.rules import KeyPath

OutputOnlyPolicy = Literal["reject", "drop"]
"""What to do with fields that the service sets.

Declarations must not hold them. Requests may: the service ignores them (Google's AIP-203).
"""
MUST_BE_OBJECT = "must be an object with named fields"
_MAX_NAME_LENGTH = 200


@dataclass(frozen=True)
class FieldProblem:
    """What is wrong at one field: its `path` from the root of the value, and a message that says how to mend it.

    The last name of an unknown field's path is spelt as it is written.
    """

    path: KeyPath
    message: str
    is_unknown_field: bool = field(default=False, compare=False)

    @property
    def path_text(self) -> str:
        """The path as the API writes it: `jobSpec.workerPoolSpecs[0].replicaCount`."""
        return format_path(self.path)

    def __str__(self) -> str:
        return f"{self.path_text}: {self.message}" if self.path else self.message


def format_path(path: KeyPath) -> str:
    """Return a path as text: `("a", 0, "b")` → `a[0].b`. Very long names are truncated."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{_truncate_long_name(str(part))}" for part in path)
    return "".join(parts).lstrip(".")


def _truncate_long_name(name: str) -> str:
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 3]}..."


def canonicalize_and_find_shape_problems(
    message_type: Any, value: object, *, output_only: OutputOnlyPolicy = "reject"
) -> tuple[Any, list[FieldProblem]]:
    """Return the canonical form of a value and the problems of its shape, at most those of `take_one_more_than_shown`.

    `message_type` is one of the TypedDicts of `vertex_api.types`, or another with the same scalars. Canonical are
    camelCase names, enum names and whole numbers as int; unset and empty fields are absent. With problems, the value is
    returned as it is. An unknown field is a problem even if it is unset: proto JSON knows null for known fields only.
    """
    pruned = copy_without_nulls_and_empty_lists(value)
    canonical, details = _canonicalize_and_list_errors(message_type, pruned, output_only)
    if pruned != value:
        details = [*details, *take_one_more_than_shown(_find_errors_of_unset_unknown_fields(message_type, value))]
    if not details:
        return canonical, []
    # Each unknown field explains at most one missing field, which leaves more than are shown.
    details = details[: 2 * (MAX_PROBLEMS + 1)]
    unknown_fields = filter(_is_unknown_field_error, details)
    misspelt = {find_intended_path_or_itself(message_type, detail["loc"]) for detail in unknown_fields}
    problems = (
        FieldProblem(
            detail["loc"],
            _build_problem_text(message_type, detail),
            _is_unknown_field_error(detail) and not _is_known_field(message_type, detail["loc"]),
        )
        for detail in details
        if detail["type"] != "missing" or detail["loc"] not in misspelt
    )
    return value, sorted(take_one_more_than_shown(problems), key=lambda problem: str(problem.path))


def unknown_field_text(message_type: Any, path: KeyPath, other_names: Iterable[str] = ()) -> str:
    """Return the message for an unknown field: the field that it belongs under, or the known name most like it.

    `other_names` are allowed at this place in addition to the fields of the message.
    """
    *parents, name = path
    schema, camel_name = get_json_schema(message_type), to_camel(_truncate_long_name(str(name)))
    if containing := find_nested_path_texts_containing(schema, tuple(parents), camel_name):
        return f"unknown field; it belongs under {join_with_or(containing)}"
    known_names = [*get_settable_field_schemas(schema, tuple(parents)), *other_names]
    return f"unknown field{suggestion_or_known_names_text(str(name), known_names)}"


def find_intended_path_or_itself(message_type: Any, path: KeyPath) -> KeyPath:
    """Find the field that was probably meant by an unknown one, or that it belongs under; else return its own path.

    If that field is missing, a problem that says so would report the same mistake twice.
    """
    *parents, name = path
    schema = get_json_schema(message_type)
    known_names = get_settable_field_schemas(schema, tuple(parents))
    if name in known_names:
        return path
    containing = find_nested_path_texts_containing(schema, tuple(parents), to_camel(_truncate_long_name(str(name))))
    if containing:
        return (*parents, re.split(r"[.\[]", containing[0])[0])
    return (*parents, find_closest_name_or_none(str(name), known_names) or name)


def get_value_at_path_or_none(value: Any, path: KeyPath) -> Any:
    """Return the value at a path, None if there is none."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def copy_without_nulls_and_empty_lists(value: Any) -> Any:
    """Return a JSON value without nulls and empty lists, which mean "unset" in proto JSON. Empty messages stay."""
    if isinstance(value, Mapping):
        set_fields = {key: child for key, child in value.items() if child is not None and child != []}
        return {key: copy_without_nulls_and_empty_lists(child) for key, child in set_fields.items()}
    if isinstance(value, list | tuple):
        return [copy_without_nulls_and_empty_lists(child) for child in value]
    return value


def copy_without_unknown_fields(message_type: Any, value: Any) -> Any:
    """Return a JSON value without the fields that its message does not have, in either spelling.

    A newer service may send fields that these types lack.
    """
    if message_type is None or not isinstance(value, Mapping):
        return value
    fields = {key: get_fields_by_name(message_type).get(to_camel(key)) for key in value}
    return {
        key: field.map_values(value[key], partial(copy_without_unknown_fields, field.message_type))
        for key, field in fields.items()
        if field
    }


def _canonicalize_and_list_errors(
    message_type: Any, value: object, output_only: OutputOnlyPolicy
) -> tuple[Any, list[ErrorDetails]]:
    try:
        return get_type_adapter(message_type).validate_python(value, context={"output_only": output_only}), []
    except ValidationError as error:
        return value, error.errors(include_url=False)


def _find_errors_of_unset_unknown_fields(message_type: Any, value: object) -> Iterator[ErrorDetails]:
    """Find the unknown fields that `copy_without_nulls_and_empty_lists` has removed."""
    for detail in filter(_is_unknown_field_error, _canonicalize_and_list_errors(message_type, value, "reject")[1]):
        *parents, name = detail["loc"]
        is_unset = detail["input"] is None or detail["input"] == []
        known_names = get_settable_field_schemas(get_json_schema(message_type), tuple(parents))
        if is_unset and to_camel(str(name)) not in known_names:
            yield detail


def _is_unknown_field_error(detail: ErrorDetails) -> bool:
    return detail["type"] == "extra_forbidden"


def _is_known_field(message_type: Any, path: KeyPath) -> bool:
    return path[-1] in get_settable_field_schemas(get_json_schema(message_type), path[:-1])


def _build_problem_text(message_type: Any, pydantic_error: ErrorDetails) -> str:
    path = pydantic_error["loc"]
    match pydantic_error["type"]:
        case "extra_forbidden":
            if _is_known_field(message_type, path):
                return f"is there twice, also as {to_snake(str(path[-1]))}"
            return unknown_field_text(message_type, path)
        case "value_error":
            return str(pydantic_error["ctx"]["error"])
        case "missing":
            return "is required"
        case "dict_type" | "mapping_type":
            return MUST_BE_OBJECT
        case "list_type":
            return "must be a list"
        case "literal_error":
            text = f"{quote_value(pydantic_error['input'])} is not one of {pydantic_error['ctx']['expected']}"
            return text.replace("'", "")
        case _:
            return pydantic_error["msg"]
