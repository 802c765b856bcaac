"""The shape of a value: whether it has the fields and types of one of the API's messages, and its canonical form."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import ValidationError
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import ErrorDetails

from vertex_api.errors import MAX_PROBLEMS, Refusal, first_problems
from vertex_api.messages import (
    KeyPath,
    nested_paths,
    settable_fields,
    show_path,
    truncate,
    type_adapter,
    value_at,
    without_unset,
)
from vertex_api.names import closest_name, did_you_mean, either
from vertex_api.scalars import quote

OutputOnlyPolicy = Literal["reject", "drop"]
"""What to do with fields that the service sets.

Declarations must not hold them. Requests may: the service ignores them (Google's AIP-203).
"""
REQUIRED = "is required"
MUST_BE_OBJECT = "must be an object with named fields"


@dataclass(frozen=True)
class FieldProblem:
    """What is wrong at one field: its `path` from the root of the value, and a message that says how to mend it.

    The last name of an unknown field's path is spelt as it is written. `is_unknown_value` says that an enum has a name
    that is not known.
    """

    path: KeyPath
    message: str
    is_unknown_field: bool = field(default=False, compare=False)
    is_unknown_value: bool = field(default=False, compare=False)

    @property
    def is_unknown(self) -> bool:
        """Whether the API may have it by now, as an unknown field or value."""
        return self.is_unknown_field or self.is_unknown_value

    @property
    def place(self) -> str:
        """The path as the API writes it: `jobSpec.workerPoolSpecs[0].replicaCount`."""
        return show_path(self.path)

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.path else self.message


def canonicalize(
    message_type: Any, value: object, *, output_only: OutputOnlyPolicy = "reject"
) -> tuple[Any, list[FieldProblem]]:
    """Return the canonical form of a value and the problems of its shape, at most those of `first_problems`.

    `message_type` is one of the TypedDicts of `vertex_api.types`, or another with the same scalars. Canonical are
    camelCase names, enum names and whole numbers as int; unset and empty fields are absent. With problems, the value is
    returned as it is. An unknown field is a problem even if it is unset: proto JSON knows null for known fields only.
    """
    pruned = without_unset(value)
    canonical, details = _run(message_type, pruned, output_only)
    if pruned != value:
        details = [*details, *first_problems(_unset_unknown(message_type, value))]
    if not details:
        return canonical, []
    # Each unknown field explains at most one missing field, which leaves more than are shown.
    details = details[: 2 * (MAX_PROBLEMS + 1)]
    unknown_fields = filter(_is_unknown, details)
    misspelt = {intended_path(message_type, detail["loc"]) for detail in unknown_fields}
    problems = (
        _problem(message_type, detail)
        for detail in details
        if detail["type"] != "missing" or detail["loc"] not in misspelt
    )
    return value, sorted(first_problems(problems), key=lambda problem: str(problem.path))


def _problem(message_type: Any, detail: ErrorDetails) -> FieldProblem:
    path, message = detail["loc"], _explain(message_type, detail)
    is_unknown_field = _is_unknown(detail) and not _is_known(message_type, path)
    is_unknown_value = detail["type"] == "enum" and isinstance(detail["input"], str) and isinstance(path[-1], str)
    return FieldProblem(path, message, is_unknown_field, is_unknown_value)


def of_service(problem: FieldProblem) -> FieldProblem:
    """Return a problem with a job, which may be one with what the API did not have when these types were made."""
    return replace(problem, message=Refusal(problem.message)) if problem.is_unknown else problem


def read(
    message_type: Any, value: object, *, output_only: OutputOnlyPolicy = "reject"
) -> tuple[Any, list[FieldProblem]]:
    """Return the canonical form of a value with what is unknown in it as it is, and the other problems of its shape.

    With problems, the value is returned as it is.
    """
    canonical, problems = canonicalize(message_type, value, output_only=output_only)
    if not any(problem.is_unknown for problem in problems):
        return canonical, problems
    rest, parts = set_aside(value, [problem.path for problem in problems if problem.is_unknown])
    canonical, problems = canonicalize(message_type, rest, output_only=output_only)
    if problems:
        return value, problems
    for path, part in parts.items():
        *parents, last = path
        value_at(canonical, tuple(parents))[last] = part
    return canonical, []


def set_aside(value: Any, paths: Iterable[KeyPath]) -> tuple[Any, dict[KeyPath, Any]]:
    """Return a value without the fields at some paths, and what was there by path, whole numbers as int.

    Fields on the way may be in either spelling.
    """
    rest, parts = without_unset(value), dict[KeyPath, Any]()
    for path in paths:
        holder = rest
        for part in path[:-1]:
            holder = holder[_spelt(holder, part)]
        name = _spelt(holder, path[-1])
        if name in holder:
            parts[path] = _whole_numbers(holder.pop(name))
    return rest, parts


def _spelt(holder: Any, part: str | int) -> Any:
    return part if isinstance(holder, list) or part in holder else to_snake(str(part))


def _whole_numbers(value: Any) -> Any:
    """Return JSON with 2 in place of 2.0, which is the same: Pulumi's engine makes all numbers floats."""
    if isinstance(value, Mapping):
        return {key: _whole_numbers(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def unknown_field(message_type: Any, path: KeyPath, other_names: Iterable[str] = ()) -> str:
    """Return the message for an unknown field: the field that it belongs under, or the known name most like it.

    `other_names` are allowed at this place in addition to the fields of the message.
    """
    *parents, name = path
    if containing := _nested(message_type, path):
        return f"unknown field; it belongs under {either(containing)}"
    known_names = [*settable_fields(message_type, tuple(parents)), *other_names]
    return f"unknown field{did_you_mean(str(name), known_names)}"


def intended_path(message_type: Any, path: KeyPath) -> KeyPath:
    """Find the field that was probably meant by an unknown one, or that it belongs under; else return its own path.

    If that field is missing, a problem that says so would report the same mistake twice.
    """
    *parents, name = path
    known_names = settable_fields(message_type, tuple(parents))
    if name in known_names:
        return path
    if containing := _nested(message_type, path):
        return (*parents, re.split(r"[.\[]", containing[0])[0])
    return (*parents, closest_name(str(name), known_names) or name)


def _nested(message_type: Any, path: KeyPath) -> list[str]:
    return nested_paths(message_type, path[:-1], to_camel(truncate(str(path[-1]))))


def _run(message_type: Any, value: object, output_only: OutputOnlyPolicy) -> tuple[Any, list[ErrorDetails]]:
    try:
        return type_adapter(message_type).validate_python(value, context={"output_only": output_only}), []
    except ValidationError as error:
        return value, error.errors(include_url=False)


def _unset_unknown(message_type: Any, value: object) -> Iterator[ErrorDetails]:
    """Find the unknown fields that `without_unset` has removed."""
    for detail in filter(_is_unknown, _run(message_type, value, "reject")[1]):
        *parents, name = detail["loc"]
        is_unset = detail["input"] is None or detail["input"] == []
        known_names = settable_fields(message_type, tuple(parents))
        if is_unset and to_camel(str(name)) not in known_names:
            yield detail


def _is_unknown(detail: ErrorDetails) -> bool:
    return detail["type"] == "extra_forbidden"


def _is_known(message_type: Any, path: KeyPath) -> bool:
    return path[-1] in settable_fields(message_type, path[:-1])


def _explain(message_type: Any, pydantic_error: ErrorDetails) -> str:
    path = pydantic_error["loc"]
    match pydantic_error["type"]:
        case "extra_forbidden":
            if _is_known(message_type, path):
                return f"is there twice, also as {to_snake(str(path[-1]))}"
            return unknown_field(message_type, path)
        case "value_error":
            return str(pydantic_error["ctx"]["error"])
        case "missing":
            return REQUIRED
        case "dict_type" | "mapping_type":
            return MUST_BE_OBJECT
        case "string_unicode":
            return "has half of a character, which no text can have; write the whole character, or its code point"
        case "enum":
            context = pydantic_error["ctx"]
            closest = closest_name(str(pydantic_error["input"]), context["names"])
            return f"{context['message']}{f'; did you mean {closest}?' if closest else ''}"
        case "list_type":
            return "must be a list"
        case "literal_error":
            text = f"{quote(pydantic_error['input'])} is not one of {pydantic_error['ctx']['expected']}"
            return text.replace("'", "")
        case _:
            return pydantic_error["msg"]
