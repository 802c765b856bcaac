"""Rules for what a training pipeline has beside its job: the data that it reads, the model that it uploads."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api import types
from vertex_api.messages import KeyPath, message_fields
from vertex_api.scalars import quote
from vertex_api.validation.formats import IMAGE, STORAGE_URI, Format, Violation, check_common, check_set
from vertex_api.validation.pools import check_env


def check_pipeline_fields(pipeline: Mapping[str, Any]) -> Iterator[Violation]:
    """Discovery document, TrainingPipeline: `modelId` is "the ID to use for the uploaded Model", and with `parentModel`
    the `model_to_upload` "will become a new version of this"."""
    yield from check_common(pipeline)
    for name in ("modelId", "parentModel"):
        if pipeline.get(name) and "modelToUpload" not in pipeline:
            yield (name,), "says where a model goes, but there is no modelToUpload"
    yield from check_model_id(pipeline)
    if "modelToUpload" in pipeline:
        yield from check_model(pipeline["modelToUpload"], ("modelToUpload",))
    if "inputDataConfig" in pipeline:
        yield from _check_data(pipeline["inputDataConfig"], ("inputDataConfig",))


_MODEL_ID = re.compile(r"[a-z_][a-z0-9_-]{0,62}")
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


def check_model(model: Mapping[str, Any], at: KeyPath = ()) -> Iterator[Violation]:
    """Find violations of the rules for a canonical Model (discovery document, Model)."""
    yield from check_common(model, at)
    yield from _check_oneofs(types.Model, model, at)
    yield from STORAGE_URI.check(model.get("artifactUri"), (*at, "artifactUri"))
    if "containerSpec" in model:
        yield from _check_container(model["containerSpec"], (*at, "containerSpec"))
    for index, alias in enumerate(model.get("versionAliases", [])):
        yield from _check_alias(alias, (*at, "versionAliases", index))


def _check_oneofs(message_type: Any, message: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """The unions of Google's client (aiplatform_v1), at any depth: at most one field of each is set."""
    fields = [name for name in ONEOFS.get(message_type.__name__, ()) if name in message]
    if len(fields) > 1:
        yield (*at, fields[1]), f"cannot be set beside {fields[0]}"
    for name, field in message_fields(message_type).items():
        if field.message_type is not None and name in message:
            child = message[name]
            if field.cardinality == "one":
                yield from _check_oneofs(field.message_type, child, (*at, name))
            else:
                for key, entry in enumerate(child) if field.cardinality == "list" else child.items():
                    yield from _check_oneofs(field.message_type, entry, (*at, name, key))


def check_alias_changes(merge_request: Mapping[str, Any]) -> Iterator[Violation]:
    """Find violations of the rules for a canonical MergeVersionAliasesRequest: "-" before an alias removes it."""
    for index, alias in enumerate(merge_request.get("versionAliases", [])):
        yield from _check_alias(alias.removeprefix("-"), ("versionAliases", index))


def _check_alias(alias: str, at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `versionAliases`: the format of an alias."""
    if not _ALIAS.fullmatch(alias):
        yield at, f'"{alias}" must be 2 to 128 letters, digits and hyphens, and start with a lower-case letter'


def _check_container(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ModelContainerSpec, Port and EnvVar; a route is an "HTTP path on the container"."""
    yield from IMAGE.require(spec, "imageUri", at)
    for route in ("predictRoute", "healthRoute"):
        if spec.get(route) and not spec[route].startswith("/"):
            yield (*at, route), f"{quote(spec[route])} must start with /"
    for field in ("ports", "grpcPorts"):
        for index, port in enumerate(spec.get(field, ())):
            if (number := port.get("containerPort", 0)) not in _PORTS:
                message = f"{number} is not within {_PORTS.start} to {_PORTS.stop - 1}"
                yield (*at, field, index, "containerPort"), message
    yield from check_env(spec.get("env", ()), _MAX_VARIABLES, (*at, "env"))


def check_model_id(pipeline_or_upload: Mapping[str, Any]) -> Iterator[Violation]:
    """Discovery document, UploadModelRequest: `parentModel` is there "only when uploading a new version", and a
    `modelId` "may be up to 63 characters", of "[a-z0-9_-]", the first of which "cannot be a number or hyphen"."""
    model_id = pipeline_or_upload.get("modelId", "")
    if model_id and pipeline_or_upload.get("parentModel"):
        yield ("modelId",), "names a new model, but parentModel names the one that gets a new version"
    if model_id and not _MODEL_ID.fullmatch(model_id):
        yield ("modelId",), f'"{model_id}" must be at most 63 of [a-z0-9_-], and not start with a number or hyphen'


_ONEOFS = (
    ("fractionSplit", "filterSplit", "predefinedSplit", "timestampSplit", "stratifiedSplit"),
    ("gcsDestination", "bigqueryDestination"),
    ("annotationSchemaUri", "savedQueryId"),
)
_FRACTIONS = ("trainingFraction", "validationFraction", "testFraction")
_ROUNDING = 1e-9
_BIGQUERY = Format(
    re.compile(r"bq://[^./\s]+(\.[^./\s]+){0,2}"), "must have the form bq://{project}[.{dataset}[.{table}]]"
)
_DESTINATIONS = {"gcsDestination": ("outputUriPrefix", STORAGE_URI), "bigqueryDestination": ("outputUri", _BIGQUERY)}


def _check_data(config: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """The oneofs `split` and `destination` of InputDataConfig in Google's client (aiplatform_v1); discovery document,
    `savedQueryId`: "Only one of saved_query_id and annotation_schema_uri should be specified"."""
    yield from check_set(config, ["datasetId"], at)
    for choices in _ONEOFS:
        fields = [name for name in choices if config.get(name) is not None]
        if len(fields) > 1:
            yield (*at, fields[1]), f"cannot be set beside {fields[0]}"
    for name in ("fractionSplit", "timestampSplit", "stratifiedSplit"):
        if name in config:
            yield from _check_fractions(config[name], (*at, name))
    yield from STORAGE_URI.check(config.get("annotationSchemaUri"), (*at, "annotationSchemaUri"))
    for name, (field, form) in _DESTINATIONS.items():
        if name in config:
            yield from form.require(config[name], field, (*at, name))


def _check_fractions(split: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, FractionSplit: they "must sum to up to 1"."""
    outside = [name for name in _FRACTIONS if not 0 <= split.get(name, 0.0) <= 1]
    for name in outside:
        yield (*at, name), f"{split[name]} is not within 0 to 1"
    total = sum(split.get(name, 0.0) for name in _FRACTIONS)
    if total > 1 + _ROUNDING and not outside:
        yield at, f"the fractions sum to {total:.6g}, which is more than 1"
