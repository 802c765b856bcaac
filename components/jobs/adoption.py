"""Adoption by name: a job that was submitted otherwise becomes a resource of the stack, as it is."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.kinds import Kind
from vertex_api.names import ResourceName
from vertex_api.scalars import quote_value
from vertex_api.validation.canonical import CanonicalSpec, restore_spec
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape import format_path

from ..schema import references
from ..schema.references import Tables
from . import drift

NOT_RUN = "an adopted job is not run; take adopt out to run what is declared"


def resource_name(kind: Kind, parent: str, adopt: str) -> str:
    """The name of the job that `lifecycle.adopt` means: it is given whole, or as the job's number below `parent`."""
    return adopt if "/" in adopt else f"projects/{parent.partition('projects/')[2]}/{kind.collection}/{adopt}"


def is_of(adopt: str, job: str) -> bool:
    """Whether two resource names are of one job: the service shows a project's number where people write its ID."""
    one, other = ResourceName.parse(adopt), ResourceName.parse(job)
    same_project = one.project == other.project or one.project.isdigit() != other.project.isdigit()
    return same_project and one[1:] == other[1:]


def broken(kind: Kind, adopt: str, project: str, number: str | None, region: str) -> Iterator[str]:
    """What is wrong with a name to adopt, in a stack of a `project` (with a `number`, where that is known)."""
    try:
        name = ResourceName.parse(resource_name(kind, f"projects/{project}/locations/{region}", adopt))
    except ValueError:
        yield f'"{adopt}" is not the name of a job: projects/P/locations/R/{kind.collection}/ID, or its ID alone'
        return
    if name.kind != kind:
        yield f'"{adopt}" is one of the {name.kind.collection}: declare it there'
    if name.region != region:
        yield f'"{adopt}" is in {name.region}, and the jobs of this stack are in {region}'
    if name.project not in (project, number) and (number or not name.project.isdigit()):
        yield f'"{adopt}" is of another project than this stack\'s, {project}'


def differences(declared: CanonicalSpec, job: Mapping[str, Any], tables: Tables) -> list[str]:
    """A line for each declared field in which a job differs, with both values, and one that says what to do.

    What is not declared may be anything. `tables` are what references in what is declared stand for.
    """
    found = [f"  {line}" for line in _differences(declared.fields, restore_spec(declared.kind, job).fields, tables, ())]
    return [*found, "declare what it has, or take lifecycle.adopt out to run what is declared"] if found else []


def _differences(declared: Any, actual: Any, tables: Tables, path: KeyPath) -> Iterator[str]:
    if isinstance(declared, Mapping) and isinstance(actual, Mapping):
        for key, value in declared.items():
            # A message that the job lacks is as good as an empty one.
            empty: Any = {} if isinstance(value, Mapping) else None
            yield from _differences(value, actual.get(key, empty), tables, (*path, key))
    elif isinstance(declared, list) and isinstance(actual, list) and len(declared) == len(actual):
        for index, pair in enumerate(zip(declared, actual, strict=True)):
            yield from _differences(*pair, tables, (*path, index))
    elif not drift.is_same(declared, actual, tables):
        yield f"{format_path(path)}: {_said(declared, actual, tables)}"


def _said(declared: Any, actual: Any, tables: Tables) -> str:
    if any(reference.startswith("secrets.") for _, reference in references.find_references(declared)):
        return f"the job has another value than {quote_value(declared)}"  # which may be a secret too
    if isinstance(declared, list) and isinstance(actual, list) and isinstance(declared[0], Mapping):
        return f"{len(declared)} declared, and the job has {len(actual)}"
    there = "nothing" if actual is None else quote_value(drift.hidden(actual, tables.get("secrets", {})))
    return f"{quote_value(declared)} declared, and the job has {there}"
