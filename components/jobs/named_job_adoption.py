"""Adoption by name: a job that exists already becomes a resource of the stack, as it is."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job import stored_job
from vertex_api.messages import KeyPath, show_path
from vertex_api.names import Kind, ResourceName
from vertex_api.scalars import quote

from ..errors import SubmitFailed
from ..runtime.target import Target
from ..schema import interpolation
from ..schema.interpolation import Tables
from .drifted_spec import is_equal_after_resolving_references, replace_secrets_with_references
from .provider_inputs import JobInputs

Job = Mapping[str, Any]
RERUN_MESSAGE = "an adopted job is not run; take adopt out to run what is declared"


def expand_to_resource_name(kind: Kind, parent: str, name_or_id: str) -> str:
    """Return the resource name of a job, of which `name_or_id` is that name or the job's number in `parent`."""
    if "/" in name_or_id:
        return name_or_id
    return f"projects/{parent.partition('projects/')[2]}/{kind.collection}/{name_or_id}"


def is_same_job(resource_name: str, other_name: str) -> bool:
    """Return whether two resource names mean one job, though one may have the project's number in place of its ID."""
    one, other = ResourceName.parse(resource_name), ResourceName.parse(other_name)
    same_project = one.project == other.project or one.project.isdigit() != other.project.isdigit()
    return same_project and one[1:] == other[1:]


def find_adoption_violation_messages(
    kind: Kind, name_or_id: str, project: str, project_number: str | None, region: str
) -> Iterator[str]:
    """Yield why a job cannot be adopted in a stack of this project, whose number may be unknown, and region."""
    try:
        name = ResourceName.parse(expand_to_resource_name(kind, f"projects/{project}/locations/{region}", name_or_id))
    except ValueError:
        yield f'"{name_or_id}" is not the name of a job: projects/P/locations/R/{kind.collection}/ID, or its ID alone'
        return
    if name.kind != kind:
        yield f'"{name_or_id}" is one of the {name.kind.collection}: declare it there'
    if name.region != region:
        yield f'"{name_or_id}" is in {name.region}, and the jobs of this stack are in {region}'
    if name.project not in (project, project_number) and (project_number or not name.project.isdigit()):
        yield f'"{name_or_id}" is of another project than this stack\'s, {project}'


def fetch_and_verify_adopted_job(api: Target, inputs: JobInputs, resource_name: str, reference_tables: Tables) -> Job:
    """Return the job to adopt. Raises VertexError, and SubmitFailed if it differs from what is declared."""
    job = api.client.require(ResourceName.parse(resource_name))
    actual = stored_job(inputs.spec.kind, job).fields
    if lines := list(_iterate_difference_lines(inputs.spec.fields, actual, reference_tables)):
        advice = "declare what it has, or take lifecycle.adopt out to run what is declared"
        headline = f"{inputs.error_prefix}, as it is not the job that is declared:"
        raise SubmitFailed("\n".join([headline, *lines, advice]))
    return job


def _iterate_difference_lines(
    declared: Any, actual: Any, reference_tables: Tables, path: KeyPath = ()
) -> Iterator[str]:
    """Yield a line for each declared field in which a job differs, with both values. Other fields may be anything."""
    if isinstance(declared, Mapping) and isinstance(actual, Mapping):
        for key, value in declared.items():
            # A message that the job lacks equals an empty one.
            empty: Any = {} if isinstance(value, Mapping) else None
            yield from _iterate_difference_lines(value, actual.get(key, empty), reference_tables, (*path, key))
    elif isinstance(declared, list) and isinstance(actual, list) and len(declared) == len(actual):
        for index, pair in enumerate(zip(declared, actual, strict=True)):
            yield from _iterate_difference_lines(*pair, reference_tables, (*path, index))
    elif not is_equal_after_resolving_references(declared, actual, reference_tables):
        yield f"  {show_path(path)}: {_describe_value_difference_without_secrets(declared, actual, reference_tables)}"


def _describe_value_difference_without_secrets(declared: Any, actual: Any, reference_tables: Tables) -> str:
    if any(reference.startswith("secrets.") for _, reference in interpolation.references(declared)):
        return f"the job has another value than {quote(declared)}"  # which may be a secret too
    if isinstance(declared, list) and isinstance(actual, list) and isinstance(declared[0], Mapping):
        return f"{len(declared)} declared, and the job has {len(actual)}"
    actual_text = quote(replace_secrets_with_references(actual, reference_tables))
    return f"{quote(declared)} declared, and the job has {'nothing' if actual is None else actual_text}"
