"""Adoption of a job by name, and comparison of a declared spec with what the service holds."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job import stored_job
from vertex_api.messages import KeyPath, show_path
from vertex_api.names import JobJson, ResourceName
from vertex_api.scalars import quote

from ..errors import SubmitFailed
from ..runtime.target import Target
from ..schema import interpolation
from ..schema.interpolation import Tables
from .inputs import Inputs


def is_same_job(name: str, other_name: str) -> bool:
    """Return whether two resource names mean one job, though one may have the project's number in place of its ID."""
    one, other = ResourceName.parse(name), ResourceName.parse(other_name)
    same_project = one.project == other.project or one.project.isdigit() != other.project.isdigit()
    return same_project and one[1:] == other[1:]


def adopt(api: Target, inputs: Inputs, name: str, tables: Tables) -> JobJson:
    """Return the job to adopt. Raises VertexError, and SubmitFailed if it differs from what is declared."""
    job = api.client.require(ResourceName.parse(name))
    actual = stored_job(inputs.spec.kind, job).fields
    if lines := list(_differences(inputs.spec.fields, actual, tables)):
        advice = "declare what it has, or take lifecycle.adopt out to run what is declared"
        headline = f"{inputs.error_prefix}, as it is not the job that is declared:"
        raise SubmitFailed("\n".join([headline, *lines, advice]))
    return job


def _differences(declared: Any, actual: Any, tables: Tables, path: KeyPath = ()) -> Iterator[str]:
    """Yield a line for each declared field in which a job differs, with both values. Other fields may be anything."""
    if isinstance(declared, Mapping) and isinstance(actual, Mapping):
        for key, value in declared.items():
            # A message that the job lacks equals an empty one.
            empty: Any = {} if isinstance(value, Mapping) else None
            yield from _differences(value, actual.get(key, empty), tables, (*path, key))
    elif isinstance(declared, list) and isinstance(actual, list) and len(declared) == len(actual):
        for index, pair in enumerate(zip(declared, actual, strict=True)):
            yield from _differences(*pair, tables, (*path, index))
    elif not _is_equal(declared, actual, tables):
        yield f"  {show_path(path)}: {_describe_difference(declared, actual, tables)}"


def _describe_difference(declared: Any, actual: Any, tables: Tables) -> str:
    """Return both values, without secrets."""
    if any(reference.startswith("secrets.") for _, reference in interpolation.references(declared)):
        return f"the job has another value than {quote(declared)}"  # which may be a secret too
    if isinstance(declared, list) and isinstance(actual, list) and isinstance(declared[0], Mapping):
        return f"{len(declared)} declared, and the job has {len(actual)}"
    shown = "nothing" if actual is None else quote(_hide_secrets(actual, tables))
    return f"{quote(declared)} declared, and the job has {shown}"


def drifted_spec(declared: Any, actual: Any, tables: Tables) -> Any:
    """Return the declared fields as the service holds them: equal to `declared` unless something in it differs.

    Fields that only the service has (its defaults) are left out. References in `declared` stay where the service holds
    their values, which `tables` has by table (`secrets`, `jobs`) and name.
    """
    if isinstance(declared, Mapping) and isinstance(actual, Mapping):
        fields = {key: drifted_spec(value, actual.get(key), tables) for key, value in declared.items()}
        return {key: value for key, value in fields.items() if value is not None}
    if isinstance(declared, list) and isinstance(actual, list) and len(declared) == len(actual):
        return [drifted_spec(*pair, tables) for pair in zip(declared, actual, strict=True)]
    return declared if _is_equal(declared, actual, tables) else _hide_secrets(actual, tables)


def _is_equal(declared: Any, actual: Any, tables: Tables) -> bool:
    """Return whether a declared value equals, as a whole, the service's: defaults inside it count as differences."""
    if actual is None:
        # Proto JSON leaves zeros out; the zero of an enum is its name for "not specified".
        return not declared or str(declared).endswith("_UNSPECIFIED")
    submitted = interpolation.expand(declared, tables)
    # The service ends the URI of a folder with a slash (discovery document, GcsDestination).
    return bool(actual == submitted or (isinstance(submitted, str) and actual == f"{submitted}/"))


def _hide_secrets(value: Any, tables: Tables) -> Any:
    """Return a value with references in place of the values of secrets."""
    longest_first = sorted(tables.get("secrets", {}).items(), key=lambda item: -len(item[1]))

    def hide(text: str) -> str:
        for name, secret in longest_first:
            text = text.replace(secret, f"${{secrets.{name}}}") if secret else text
        return text

    return interpolation.map_texts(value, hide)
