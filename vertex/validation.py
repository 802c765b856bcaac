"""Validation of a job against the API's messages and rules, with every problem reported at once."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from vertex import rules
from vertex.kinds import Kind
from vertex.rules import Path


@dataclass(frozen=True)
class Problem:
    """What is wrong at one field: `path` from the root of the job, and a message that says how to mend it."""

    path: Path
    message: str

    @property
    def field(self) -> str:
        """The path as the API writes it: `jobSpec.workerPoolSpecs[0].replicaCount`."""
        return dotted(self.path)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.path else self.message


def dotted(path: Path) -> str:
    """`("a", 0, "b")` → `a[0].b`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the known name that is spelled most alike, else the list of known names."""
    known = sorted(known)
    folded = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.replace("_", "").lower(), folded, n=1)
    if close:
        return f"; did you mean {folded[close[0]]}?"
    return f"; known: {', '.join(known)}" if known else ""


def validate(
    kind: Kind, body: Mapping[str, Any], *, output_only: Literal["refuse", "drop"] = "refuse"
) -> tuple[dict[str, Any], list[Problem]]:
    """The canonical form of a job, and every problem it has.

    Canonical: camelCase names, enum names, whole numbers as int, unset and empty fields absent. The body is only
    meaningful when there is no problem. `output_only` says what to do with fields that the service sets: a declaration
    must not hold them, a request may (they are ignored, Google's AIP-203).
    """
    try:
        canonical = _adapter(kind).validate_python(_pruned(body), context={"output_only": output_only})
    except ValidationError as error:
        return dict(body), sorted(_problems(error, kind), key=lambda problem: str(problem.path))
    return canonical, [Problem(path, message) for path, message in rules.broken(kind, canonical)]


@cache
def _adapter(kind: Kind) -> TypeAdapter[Any]:
    return TypeAdapter(kind.message)


def _pruned(value: Any) -> Any:
    """Without nulls and empty lists, which mean "unset" in proto JSON; an empty message says something and stays."""
    if isinstance(value, Mapping):
        return {key: _pruned(child) for key, child in value.items() if child is not None and child != []}
    if isinstance(value, list | tuple):
        return [_pruned(child) for child in value]
    return value


def _problems(error: ValidationError, kind: Kind) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        path: Path = tuple(detail["loc"])
        yield Problem(path, _message(detail, path, kind))


def _message(detail: ErrorDetails, path: Path, kind: Kind) -> str:
    match detail["type"]:
        case "extra_forbidden":
            return f"unknown field{nearest(str(path[-1]), _fields_at(kind, path[:-1]))}"
        case "missing":
            return "is required"
        case "dict_type" | "mapping_type":
            return "must be an object with named fields"
        case "list_type":
            return "must be a list"
        case _:
            return detail["msg"]


def _fields_at(kind: Kind, path: Path) -> list[str]:
    """Names of the fields of the message at a path."""
    schema = _schema(kind)
    node = schema
    for part in path:
        node = _resolved(node, schema)
        node = node["items"] if isinstance(part, int) else node["properties"].get(part, {})
    properties: dict[str, Any] = _resolved(node, schema).get("properties", {})
    return list(properties)


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node


@cache
def _schema(kind: Kind) -> dict[str, Any]:
    return _adapter(kind).json_schema(by_alias=False)
