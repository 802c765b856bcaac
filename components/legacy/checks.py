"""What is wrong with a legacy job: what AI Platform Training's discovery document says of its fields."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.catalog.machines import machines
from vertex_api.spelling import suggestion_text
from vertex_api.validation.rules import Violation

from .machines import IN_PLACE_OF, LEGACY_TYPES, ROLES

_NEEDED = {
    "DOUBLE": ("maxValue",),
    "INTEGER": ("maxValue",),
    "CATEGORICAL": ("categoricalValues",),
    "DISCRETE": ("discreteValues",),
}


def broken(training_input: Mapping[str, Any]) -> Iterator[Violation]:
    """Problems of a TrainingInput whose shape is right, with paths from it."""
    of_types = [*_tier(training_input)]
    for role in ROLES:
        name = f"{role}Type"
        if name in training_input:
            of_types += _machine_type(name, training_input[name])
    yield from of_types
    for role in ROLES:
        yield from _container(training_input, role, is_type_refused=((f"{role}Type",) in dict(of_types)))
    for index, spec in enumerate(training_input.get("hyperparameters", {}).get("params", ())):
        for path, message in _parameter(spec):
            yield ("hyperparameters", "params", index, *path), message


def _tier(given: Mapping[str, Any]) -> Iterator[Violation]:
    """A cluster is described by a tier, or piece by piece with CUSTOM."""
    tier = given.get("scaleTier")
    pieces = [f"{role}{name}" for role in ROLES for name in ("Type", "Count") if given.get(f"{role}{name}")]
    if tier not in ("CUSTOM", None):
        for piece in pieces:
            yield (piece,), f"is for scaleTier CUSTOM only, not for {tier}"
    elif (tier or pieces) and "masterType" not in given:
        yield ("masterType",), "is required with scaleTier CUSTOM"
    for role in ROLES[1:]:
        if given.get(f"{role}Count", 0) < 0:
            yield (f"{role}Count",), f"{given[f'{role}Count']} must not be negative"
        elif given.get(f"{role}Count") and f"{role}Type" not in given and tier in ("CUSTOM", None):
            yield (f"{role}Type",), f"is required with {role}Count"


def _machine_type(name: str, value: str) -> Iterator[Violation]:
    known = {*LEGACY_TYPES, *machines()}
    if value not in known and value not in IN_PLACE_OF:
        near = suggestion_text(value, known)
        advice = near if near.startswith("; did") else f"; name one of Vertex AI's, or {', '.join(LEGACY_TYPES)}"
        yield (name,), f'"{value}" is no machine type that is known{advice}'


def _container(given: Mapping[str, Any], role: str, *, is_type_refused: bool) -> Iterator[Violation]:
    config = given.get(f"{role}Config", {})
    at = f"{role}Config"
    if "containerArgs" in config and "args" in given:
        yield (at, "containerArgs"), "and args exclude one another; keep one of them"
    has_image = "imageUri" in config or "imageUri" in given.get("masterConfig", {})
    for name in ("containerArgs", "containerCommand"):
        if name in config and not has_image:
            yield (at, name), "needs an image: set masterConfig.imageUri"
    accelerator = config.get("acceleratorConfig", {})
    if accelerator.get("count", 1) < 1:
        yield (at, "acceleratorConfig", "count"), f"{accelerator['count']} is less than 1"
    kind = accelerator.get("type", "")
    if is_type_refused:
        return
    if accelerator and not kind.startswith("TPU") and given.get(f"{role}Type") not in {*machines(), *IN_PLACE_OF}:
        yield (at, "acceleratorConfig"), f"goes with a machine type of Compute Engine: name one as {role}Type"
    elif accelerator and not kind:
        yield (at, "acceleratorConfig", "type"), "is required"


def _parameter(spec: Mapping[str, Any]) -> Iterator[Violation]:
    kind = spec["type"]
    if kind == "PARAMETER_TYPE_UNSPECIFIED":
        yield ("type",), "is required: DOUBLE, INTEGER, CATEGORICAL or DISCRETE"
    for name in _NEEDED.get(kind, ()):
        if name not in spec and (name != "maxValue" or "minValue" not in spec):  # JSON leaves out a limit of zero
            yield (name,), f"is required with type {kind}"
    for name in ("minValue", "maxValue"):
        if kind == "INTEGER" and not float(spec.get(name, 0)).is_integer():
            yield (name,), f"{spec[name]} is not a whole number, and type is INTEGER"
