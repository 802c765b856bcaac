"""Resolution: a declared value with its vars filled in, and the references that remain in it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from vertex_api.errors import first_problems, too_many
from vertex_api.messages import KeyPath
from vertex_api.names import KINDS, did_you_mean
from vertex_api.validation.formats import Violation

from ..schema import interpolation
from ..schema.declared_job import LIFECYCLE_KEY
from .declaration_loading import Entry

_JOB_TABLES = ("vars", "images", "packages", "secrets", interpolation.JOBS)
_CONTAINERS, _SECRET_FIELDS = {"containerSpec", "pythonPackageSpec"}, {"env", "args", "command"}


@dataclass(frozen=True)
class Resolution:
    """The `value` of an entry with its vars filled in, the `used_vars`, and the `violations` of its references.

    `results` are the references to results of jobs with their paths: `(("jobSpec", …), "tune.modelDir")`.
    """

    entry: Entry
    value: Any
    violations: list[Violation]
    used_vars: set[str]
    results: list[tuple[KeyPath, str]]


def resolve_known_references_and_find_violations(
    entry: Entry, declared_names: Mapping[str, Collection[str] | None], tables: interpolation.Tables
) -> Resolution:
    """Fill in the references of an entry into `tables`, and check all others.

    `declared_names` are those of each table, or None for an invalid table, in which all names pass.
    """
    unclosed = dict(interpolation.unclosed(entry.value))
    violations = first_problems(unclosed.items())
    used_vars, results = set[str](), list[tuple[KeyPath, str]]()
    for path, reference in interpolation.references(entry.value):
        if path in unclosed:
            continue
        if too_many(violations):
            break
        table, _, name = reference.partition(".")
        allowed_tables = _get_allowed_tables(entry.section, path)
        if table == "vars":
            used_vars.add(name)
        if table not in allowed_tables:
            violations.append((path, interpolation.not_allowed(reference, allowed_tables)))
        elif table == interpolation.JOBS:
            results.append((path, name))
        elif (known := declared_names[table]) is not None and name not in known:
            violations.append((path, f"${{{reference}}} is not declared{did_you_mean(name, known)}"))
    value = interpolation.resolve(entry.value, tables)
    return Resolution(entry, value, violations, used_vars, results)


def _get_allowed_tables(section: str, path: KeyPath) -> tuple[str, ...]:
    """Return the tables that a reference at a path of an image, a package or a job may name."""
    if section in KINDS and path[:1] != (LIFECYCLE_KEY,):
        return _JOB_TABLES if _may_have_secrets(path) else tuple(table for table in _JOB_TABLES if table != "secrets")
    return ("vars", "secrets") if section == "images" and path[:1] == ("secrets",) else ("vars",)


def _may_have_secrets(path: KeyPath) -> bool:
    """Whether a path is a part of a container's environment or command line.

    All other fields end in plain places: names and labels in lists and links, output folders in outputs and logs.
    """
    parts = [to_camel(str(part)) for part in path]
    return bool(_CONTAINERS & {*parts}) and bool(_SECRET_FIELDS & {*parts})
