"""Rule for fields of which a message holds one at most: the oneofs of the API's protos, which JSON does not show."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.fields import get_fields
from vertex_api.validation.rules.violation import KeyPath, Violation

UNIONS = {
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


def find_union_violations(message: Any, value: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """A finding wherever a message, or one below it, holds two fields of which it may hold one."""
    given = [name for name in UNIONS.get(message.__name__, ()) if name in value]
    if len(given) > 1:
        yield (*at, given[1]), f"cannot be set beside {given[0]}"
    for name, field in get_fields(message).items():
        if field.message is not None and name in value:
            for key, child in _list_child_messages(value[name], field.holds):
                yield from find_union_violations(field.message, child, (*at, name, *key))


def _list_child_messages(value: Any, holds: str) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    if holds == "one":
        yield (), value
    else:
        for key, child in enumerate(value) if holds == "list" else value.items():
            yield (key,), child
