"""Rule for the oneofs of the API's protos, which JSON schemas do not show: at most one of their fields may be set."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.message_fields import get_fields_by_name
from vertex_api.validation.rules.violations import KeyPath, Violation

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
"""Of the messages below a Model, by name (Google's client, aiplatform_v1). Those of jobs have rules of their own."""


def find_doubly_set_oneofs(message_type: Any, message: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find messages, at any depth, in which two fields of one oneof are set."""
    fields = [name for name in ONEOFS.get(message_type.__name__, ()) if name in message]
    if len(fields) > 1:
        yield (*at, fields[1]), f"cannot be set beside {fields[0]}"
    for name, field in get_fields_by_name(message_type).items():
        if field.message_type is not None and name in message:
            child = message[name]
            if field.cardinality == "one":
                yield from find_doubly_set_oneofs(field.message_type, child, (*at, name))
            else:
                for key, entry in enumerate(child) if field.cardinality == "list" else child.items():
                    yield from find_doubly_set_oneofs(field.message_type, entry, (*at, name, key))
