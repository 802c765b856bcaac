"""Validation of a job against the API's messages and rules, with every problem reported at once."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import ErrorDetails

from vertex import rules
from vertex.kinds import Kind
from vertex.rules import Finding, KeyPath
from vertex.scalars import shown
from vertex.spelling import choices, closest, nearest

OutputOnly = Literal["refuse", "drop"]
OpenText = Callable[[object], bool]
"""Tells the texts that are filled in later, and that no rule can judge yet."""
_DEEPEST, _FEW = 2, 2
NO_OBJECT = "must be an object with named fields"


@dataclass(frozen=True)
class Problem:
    """What is wrong at one field: `path` from the root of the job, and a message that says how to mend it."""

    path: KeyPath
    message: str

    @property
    def field(self) -> str:
        """The path as the API writes it: `jobSpec.workerPoolSpecs[0].replicaCount`."""
        return dotted(self.path)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.path else self.message


def dotted(path: KeyPath) -> str:
    """`("a", 0, "b")` → `a[0].b`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def never_open(_value: object) -> bool:
    """The OpenText of what is whole."""
    return False


def validate(
    kind: Kind,
    body: Mapping[str, Any],
    *,
    output_only: OutputOnly = "refuse",
    open_text: OpenText = never_open,
) -> tuple[dict[str, Any], list[Problem]]:
    """The canonical form of a job, and every problem it has: its shape's, or else those of the service's rules.

    The canonical form is only meaningful when its shape is right. `vertex.jobs.validated` is for pipelines too.
    """
    canonical, problems = shape(kind.message, body, output_only=output_only)
    return canonical, problems or judged(rules.broken(kind, canonical), canonical, open_text)


def judged(found: Iterable[Finding], value: Any, open_text: OpenText) -> list[Problem]:
    """What rules have found in a canonical value, without what they say of open texts."""
    return [Problem(path, message) for path, message in found if not open_text(value_at(value, path))]


def shape(message: Any, value: object, *, output_only: OutputOnly = "refuse") -> tuple[Any, list[Problem]]:
    """The canonical form of a value of one of `vertex.types`' messages (or another TypedDict), and its problems.

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
    misspelt = {_meant(detail, message) for detail in details if detail["type"] == "extra_forbidden"}
    problems = (
        Problem(detail["loc"], _message(detail, message))
        for detail in details
        if detail["type"] != "missing" or detail["loc"] not in misspelt
    )
    return value, sorted(problems, key=lambda problem: str(problem.path))


def unknown(message: Any, path: KeyPath, others: Iterable[str] = ()) -> str:
    """What is said of an unknown field: below which field it belongs, or which known name is nearest to it.

    `others` are names that are known where it stands, beside those of the message there.
    """
    *above, name = path
    below = _holders(message, tuple(above), to_camel(str(name)))
    if below:
        return f"unknown field; it belongs under {choices(below)}"
    return f"unknown field{nearest(str(name), [*_fields_at(message, tuple(above)), *others])}"


def value_at(value: Any, path: KeyPath) -> Any:
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


def _meant(detail: ErrorDetails, message: Any) -> KeyPath:
    """The field that an unknown one seems to be, or to belong under: where that is missing, to say so as well would be
    to say it twice."""
    *above, name = detail["loc"]
    below = _holders(message, tuple(above), to_camel(str(name)))
    if below:
        return (*above, re.split(r"[.\[]", below[0])[0])
    return (*above, closest(str(name), _fields_at(message, tuple(above))) or name)


def _message(detail: ErrorDetails, message: Any) -> str:
    path = detail["loc"]
    match detail["type"]:
        case "extra_forbidden":
            if path[-1] in _fields_at(message, path[:-1]):
                return f"is there twice, also as {to_snake(str(path[-1]))}"
            return unknown(message, path)
        case "value_error":
            return str(detail["ctx"]["error"])
        case "missing":
            return "is required"
        case "dict_type" | "mapping_type":
            return NO_OBJECT
        case "list_type":
            return "must be a list"
        case "literal_error":
            return f"{shown(detail['input'])} is not one of {detail['ctx']['expected']}".replace("'", "")
        case _:
            return detail["msg"]


def _fields_at(message: Any, path: KeyPath) -> list[str]:
    """Names of the fields that a user may set in the message at a path."""
    return list(_settable(_node_at(message, path), _schema(message)))


def _holders(message: Any, path: KeyPath, name: str) -> list[str]:
    """The fields below the message at a path that hold one of a name, the nearest: of a job `jobSpec.scheduling` that
    holds `timeout`."""
    root = _schema(message)
    level = {"": _node_at(message, path)}
    for _ in range(_DEEPEST):
        level = {f"{at}.{inner}": node for at, above in level.items() for inner, node in _messages(above, root)}
        found = [at.lstrip(".") for at, node in level.items() if name in _settable(node, root)]
        if found:
            return found if len(found) <= _FEW else []
    return []


def _node_at(message: Any, path: KeyPath) -> dict[str, Any]:
    root = _schema(message)
    node = root
    for part in path:
        node = _resolved(node, root)
        node = (
            node["items"]
            if isinstance(part, int)
            else node.get("properties", {}).get(part) or node["additionalProperties"]
        )
    return node


def _settable(node: dict[str, Any], root: dict[str, Any]) -> dict[str, dict[str, Any]]:
    fields = _resolved(node, root).get("properties", {})
    return {name: field for name, field in fields.items() if not field.get("readOnly")}


def _messages(node: dict[str, Any], root: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fields of a message that hold messages, one each or lists of them."""
    for name, field in _settable(node, root).items():
        inner = _resolved(field, root)
        yield (f"{name}[]", inner["items"]) if "items" in inner else (name, inner)


def _resolved(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    return node


@cache
def _schema(message: Any) -> dict[str, Any]:
    return _adapter(message).json_schema(by_alias=False)
