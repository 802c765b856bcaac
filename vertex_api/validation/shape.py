"""Validation of a job against the API's messages and rules, with every problem reported at once."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import ErrorDetails

from vertex_api.kinds import Kind
from vertex_api.scalars import quote_value
from vertex_api.spelling import find_closest_name, join_with_or, suggestion_text
from vertex_api.validation import rules
from vertex_api.validation.message_schema import settable_fields
from vertex_api.validation.nesting import find_containing_fields
from vertex_api.validation.partial import is_consequence, remove_part
from vertex_api.validation.rules import KeyPath, Violation

OutputOnly = Literal["refuse", "drop"]
ValuePredicate = Callable[[object], bool]
"""Tells the texts that are filled in later, and that no rule can judge yet."""
MUST_BE_OBJECT = "must be an object with named fields"


@dataclass(frozen=True)
class FieldProblem:
    """What is wrong at one field: `path` from the root of the job, and a message that says how to mend it."""

    path: KeyPath
    message: str

    @property
    def field(self) -> str:
        """The path as the API writes it: `jobSpec.workerPoolSpecs[0].replicaCount`."""
        return format_path(self.path)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.path else self.message


def format_path(path: KeyPath) -> str:
    """`("a", 0, "b")` → `a[0].b`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def never_unresolved(_value: object) -> bool:
    """The OpenText of what is whole."""
    return False


def validate(
    kind: Kind,
    body: Mapping[str, Any],
    *,
    output_only: OutputOnly = "refuse",
    has_unresolved_references: ValuePredicate = never_unresolved,
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """The canonical form of a job, and every problem it has: its shape's, and those of the service's rules.

    The canonical form is only meaningful when its shape is right. For pipelines too: `validation.jobs.validated`.
    """
    canonical, problems = validate_shape(kind.message, body, output_only=output_only)
    left = extract_valid_part(kind.message, canonical, problems, output_only=output_only)
    return canonical, [
        *problems,
        *check_partially(lambda job: rules.find_violations(kind, job), left, has_unresolved_references),
    ]


@dataclass(frozen=True)
class ValidPart:
    """What rules can judge of a value: all of it, or what is left when what is misshapen is `withheld`.

    `value` is canonical, and None where nothing is left.
    """

    value: Any
    withheld: frozenset[KeyPath] = frozenset()


def extract_valid_part(
    message: Any, value: Any, problems: Iterable[FieldProblem], *, output_only: OutputOnly = "refuse"
) -> ValidPart:
    """What is left of a value of a message without that in which `shape` has found problems."""
    if not problems:
        return ValidPart(value)
    left, tried, meant = _pruned(value), set[KeyPath](), set[KeyPath]()
    while problems:
        for path in {problem.path for problem in problems}:
            while path in tried and path:
                path = path[:-1]  # its stand-in is misshapen too
            if not path:
                return ValidPart(None)
            tried.add(path)
            meant.add(_meant(path, message))
            remove_part(left, path, _schema(message))
        canonical, problems = validate_shape(message, left, output_only=output_only)
    return ValidPart(canonical, frozenset(tried) | {path for path in meant if get_value_at(canonical, path) is None})


def collect_problems(
    found: Iterable[Violation], value: Any, has_unresolved_references: ValuePredicate
) -> list[FieldProblem]:
    """What rules have found in a canonical value, without what they say of open texts."""
    return [
        FieldProblem(path, message)
        for path, message in found
        if not has_unresolved_references(get_value_at(value, path))
    ]


def check_partially(
    broken: Callable[[Any], Iterable[Violation]],
    left: ValidPart,
    has_unresolved_references: ValuePredicate = never_unresolved,
) -> list[FieldProblem]:
    """What rules find in what is left of a value, without what may be so only because of what is withheld."""
    found = (
        collect_problems(broken(left.value), left.value, has_unresolved_references) if left.value is not None else []
    )
    return [problem for problem in found if not is_consequence(problem.path, left.withheld)]


def validate_shape(
    message: Any, value: object, *, output_only: OutputOnly = "refuse"
) -> tuple[Any, list[FieldProblem]]:
    """The canonical form of a value of one of `vertex_api.types`' messages (or another TypedDict), and its problems.

    Canonical: camelCase names, enum names, whole numbers as int, unset and empty fields absent. `output_only` says
    what to do with fields that the service sets: a declaration must not hold them, a request may (they are ignored,
    Google's AIP-203). An unknown field of a declaration is a problem even if it is unset.
    """
    pruned = _pruned(value)
    canonical, details = _validated(message, pruned, output_only)
    if output_only == "refuse" and pruned != value:
        details = [*details, *_unknown_and_unset(message, value)]
    if not details:
        return canonical, []
    misspelt = {_meant(detail["loc"], message) for detail in details if detail["type"] == "extra_forbidden"}
    problems = (
        FieldProblem(detail["loc"], _message(detail, message))
        for detail in details
        if detail["type"] != "missing" or detail["loc"] not in misspelt
    )
    return value, sorted(problems, key=lambda problem: str(problem.path))


def unknown_field_text(message: Any, path: KeyPath, others: Iterable[str] = ()) -> str:
    """What is said of an unknown field: below which field it belongs, or which known name is nearest to it.

    `others` are names that are known where it stands, beside those of the message there.
    """
    *above, name = path
    below = find_containing_fields(_schema(message), tuple(above), to_camel(str(name)))
    if below:
        return f"unknown field; it belongs under {join_with_or(below)}"
    return f"unknown field{suggestion_text(str(name), [*_fields_at(message, tuple(above)), *others])}"


def get_value_at(value: Any, path: KeyPath) -> Any:
    """What stands at a path; None where a rule finds something missing."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


@cache
def _adapter(message: Any) -> TypeAdapter[Any]:
    return TypeAdapter(message)


def _validated(message: Any, value: object, output_only: OutputOnly) -> tuple[Any, list[ErrorDetails]]:
    try:
        return _adapter(message).validate_python(value, context={"output_only": output_only}), []
    except ValidationError as error:
        return value, error.errors(include_url=False)


def _unknown_and_unset(message: Any, value: object) -> Iterator[ErrorDetails]:
    """The unknown fields that pruning has taken out of a declaration, as it takes out all that say nothing."""
    for detail in _validated(message, value, "refuse")[1]:
        *above, name = detail["loc"] or ("",)
        is_unset = detail["type"] == "extra_forbidden" and (detail["input"] is None or detail["input"] == [])
        if is_unset and to_camel(str(name)) not in _fields_at(message, tuple(above)):
            yield detail


def _pruned(value: Any) -> Any:
    """Without nulls and empty lists, which mean "unset" in proto JSON; an empty message says something and stays."""
    if isinstance(value, Mapping):
        return {key: _pruned(child) for key, child in value.items() if child is not None and child != []}
    if isinstance(value, list | tuple):
        return [_pruned(child) for child in value]
    return value


def _meant(path: KeyPath, message: Any) -> KeyPath:
    """The field that an unknown one seems to be, or to belong under: where that is missing, to say so as well would be
    to say it twice."""
    *above, name = path
    known = _fields_at(message, tuple(above))
    below = [] if name in known else find_containing_fields(_schema(message), tuple(above), to_camel(str(name)))
    if below:
        return (*above, re.split(r"[.\[]", below[0])[0])
    return (*above, find_closest_name(str(name), known) or name)


def _message(detail: ErrorDetails, message: Any) -> str:
    path = detail["loc"]
    match detail["type"]:
        case "extra_forbidden":
            if path[-1] in _fields_at(message, path[:-1]):
                return f"is there twice, also as {to_snake(str(path[-1]))}"
            return unknown_field_text(message, path)
        case "value_error":
            return str(detail["ctx"]["error"])
        case "missing":
            return "is required"
        case "dict_type" | "mapping_type":
            return MUST_BE_OBJECT
        case "list_type":
            return "must be a list"
        case "literal_error":
            return f"{quote_value(detail['input'])} is not one of {detail['ctx']['expected']}".replace("'", "")
        case _:
            return detail["msg"]


def _fields_at(message: Any, path: KeyPath) -> list[str]:
    """Names of the fields that a user may set in the message at a path."""
    return list(settable_fields(_schema(message), path))


@cache
def _schema(message: Any) -> dict[str, Any]:
    return _adapter(message).json_schema(by_alias=False)
