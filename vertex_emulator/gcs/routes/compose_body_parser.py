"""The body of `objects.compose`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.client_set_metadata_fields import parse_object_fields

MAX_COMPONENTS = 32  # Cloud Storage, "Composite objects"


@dataclass(frozen=True)
class Component:
    """A source: an object in the same bucket, with the generation and the preconditions that it must have."""

    name: str
    generation: str | None
    preconditions: Mapping[str, str]


@dataclass(frozen=True)
class Composition:
    """The sources in order, and the metadata of the object that is made of them."""

    components: list[Component]
    fields: Mapping[str, Any]


def parse_composition(body: Mapping[str, Any]) -> Composition:
    """Parse a ComposeRequest (Cloud Storage, Objects: compose). Raises ApiError that names the field."""
    for name, value in body.items():
        if value and name not in ("kind", "sourceObjects", "destination"):
            raise _build_field_error(name, "is not supported")
    sources, destination = body.get("sourceObjects"), body.get("destination") or {}
    if not isinstance(sources, list) or not 1 <= len(sources) <= MAX_COMPONENTS:
        raise _build_field_error("sourceObjects", f"must be a list of 1 to {MAX_COMPONENTS} objects")
    if not isinstance(destination, Mapping):
        raise _build_field_error("destination", "must be an object")
    components = [_parse_component(source, f"sourceObjects[{index}]") for index, source in enumerate(sources)]
    return Composition(components, parse_object_fields(destination))


def _parse_component(source: Any, field_path: str) -> Component:
    if not isinstance(source, Mapping) or not isinstance(source.get("name"), str) or not source["name"]:
        raise _build_field_error(field_path, "must be an object with the name of one")
    conditions = source.get("objectPreconditions") or {}
    if not isinstance(conditions, Mapping) or conditions.keys() - {"ifGenerationMatch"}:
        raise _build_field_error(f"{field_path}.objectPreconditions", "must be an object with ifGenerationMatch")
    generation = source.get("generation")
    preconditions = {name: str(value) for name, value in conditions.items() if value is not None}
    return Component(source["name"], None if generation is None else str(generation), preconditions)


def _build_field_error(field: str, text: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"{field}: {text}.", [(field, text)])
