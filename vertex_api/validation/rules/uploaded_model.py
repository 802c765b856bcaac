"""Rules for a model to upload."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api import types
from vertex_api.scalar_types import quote_value
from vertex_api.typed_dict_fields import get_fields_by_name
from vertex_api.validation.rules import common_fields
from vertex_api.validation.rules.container_and_package_specs import find_environment_violations
from vertex_api.validation.rules.text_formats import IMAGE, STORAGE_URI
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_ID = re.compile(r"[a-z_][a-z0-9_-]{0,62}")
_MAX_VARIABLES = 200
_PORTS = range(1, 65_536)
_ALIAS = re.compile(r"[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")
ONEOFS = {
    "Examples": ("nearestNeighborSearchConfig", "presets"),
    "ExplanationMetadataOutputMetadata": ("indexDisplayNameMapping", "displayNameMappingKey"),
    "ExplanationParameters": (
        "sampledShapleyAttribution",
        "integratedGradientsAttribution",
        "xraiAttribution",
        "examples",
    ),
    "ModelBaseModelSource": ("modelGardenSource", "genieSource"),
    "Probe": ("exec", "httpGet", "grpc", "tcpSocket"),
    "SmoothGradConfig": ("noiseSigma", "featureNoiseSigma"),
}
"""The oneofs of the messages below a Model, by name (Google's client, aiplatform_v1): JSON schemas do not show them.

At most one field of each may be set. Those of jobs have rules of their own.
"""


def find_model_violations(model: Mapping[str, Any], at: KeyPath = ()) -> Iterator[Violation]:
    """Find violations of the rules for a canonical Model (discovery document, Model)."""
    yield from common_fields.find_common_field_violations(model, at)
    yield from _find_doubly_set_oneofs(types.Model, model, at)
    yield from STORAGE_URI.find_violations_if_set(model.get("artifactUri"), (*at, "artifactUri"))
    if "containerSpec" in model:
        yield from _find_serving_container_violations(model["containerSpec"], (*at, "containerSpec"))
    for index, alias in enumerate(model.get("versionAliases", [])):
        yield from _find_version_alias_violations(alias, (*at, "versionAliases", index))


def _find_doubly_set_oneofs(message_type: Any, message: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find messages, at any depth, in which two fields of one of `ONEOFS` are set."""
    fields = [name for name in ONEOFS.get(message_type.__name__, ()) if name in message]
    if len(fields) > 1:
        yield (*at, fields[1]), f"cannot be set beside {fields[0]}"
    for name, field in get_fields_by_name(message_type).items():
        if field.message_type is not None and name in message:
            child = message[name]
            if field.cardinality == "one":
                yield from _find_doubly_set_oneofs(field.message_type, child, (*at, name))
            else:
                for key, entry in enumerate(child) if field.cardinality == "list" else child.items():
                    yield from _find_doubly_set_oneofs(field.message_type, entry, (*at, name, key))


def find_version_alias_change_violations(merge_request: Mapping[str, Any]) -> Iterator[Violation]:
    """Find violations of the rules for a canonical MergeVersionAliasesRequest: "-" before an alias removes it."""
    for index, alias in enumerate(merge_request.get("versionAliases", [])):
        yield from _find_version_alias_violations(alias.removeprefix("-"), ("versionAliases", index))


def _find_version_alias_violations(alias: str, at: KeyPath) -> Iterator[Violation]:
    if not _ALIAS.fullmatch(alias):
        yield at, f'"{alias}" must be 2 to 128 letters, digits and hyphens, and start with a lower-case letter'


def _find_serving_container_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ModelContainerSpec, Port and EnvVar; a route is an "HTTP path on the container"."""
    yield from IMAGE.find_required_field_violations(spec, "imageUri", at)
    for route in ("predictRoute", "healthRoute"):
        if spec.get(route) and not spec[route].startswith("/"):
            yield (*at, route), f"{quote_value(spec[route])} must start with /"
    for field in ("ports", "grpcPorts"):
        for index, port in enumerate(spec.get(field, ())):
            if (number := port.get("containerPort", 0)) not in _PORTS:
                message = f"{number} is not within {_PORTS.start} to {_PORTS.stop - 1}"
                yield (*at, field, index, "containerPort"), message
    yield from find_environment_violations(spec.get("env", ()), _MAX_VARIABLES, (*at, "env"))


def find_model_id_violations(pipeline_or_upload: Mapping[str, Any]) -> Iterator[Violation]:
    """Find violations of the rules for the `modelId` of a pipeline or an upload (discovery document,
    UploadModelRequest)."""
    model_id = pipeline_or_upload.get("modelId", "")
    if model_id and pipeline_or_upload.get("parentModel"):
        yield ("modelId",), "names a new model, but parentModel names the one that gets a new version"
    if model_id and not _ID.fullmatch(model_id):
        yield ("modelId",), f'"{model_id}" must be at most 63 of [a-z0-9_-], and not start with a number or hyphen'
