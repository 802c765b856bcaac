"""The rules that a legacy job's TrainingInput must follow, from AI Platform Training's discovery document."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.validation.formats import Violation

from .pools import LEGACY_TYPES, ROLES

_NEEDED = {
    "DOUBLE": ("maxValue",),
    "INTEGER": ("maxValue",),
    "CATEGORICAL": ("categoricalValues",),
    "DISCRETE": ("discreteValues",),
}


def violations(training_input: Mapping[str, Any]) -> Iterator[Violation]:
    """Find every rule that a TrainingInput of the right shape breaks."""
    machine_violations = [*_tier_violations(training_input)]
    yield from machine_violations
    for role in ROLES:
        is_machine_type_valid = (f"{role}Type",) not in dict(machine_violations)
        yield from _role_violations(training_input, role, is_machine_type_valid=is_machine_type_valid)
    for index, parameter in enumerate(training_input.get("hyperparameters", {}).get("params", ())):
        for path, message in _parameter_violations(parameter):
            yield ("hyperparameters", "params", index, *path), message


def _tier_violations(training_input: Mapping[str, Any]) -> Iterator[Violation]:
    """A cluster is described by a tier, or piece by piece with CUSTOM."""
    tier = training_input.get("scaleTier")
    pieces = [f"{role}{name}" for role in ROLES for name in ("Type", "Count") if training_input.get(f"{role}{name}")]
    if tier not in ("CUSTOM", None):
        for piece in pieces:
            yield (piece,), f"is for scaleTier CUSTOM only, not for {tier}"
    elif (tier or pieces) and "masterType" not in training_input:
        yield ("masterType",), "is required with scaleTier CUSTOM"
    for role in ROLES[1:]:
        if training_input.get(f"{role}Count", 0) < 0:
            yield (f"{role}Count",), f"{training_input[f'{role}Count']} must not be negative"
        elif training_input.get(f"{role}Count") and f"{role}Type" not in training_input and tier in ("CUSTOM", None):
            yield (f"{role}Type",), f"is required with {role}Count"


def _role_violations(
    training_input: Mapping[str, Any], role: str, *, is_machine_type_valid: bool
) -> Iterator[Violation]:
    at = f"{role}Config"
    config = training_input.get(at, {})
    if "containerArgs" in config and "args" in training_input:
        yield (at, "containerArgs"), "and args exclude one another; keep one of them"
    has_image = "imageUri" in config or "imageUri" in training_input.get("masterConfig", {})
    for name in ("containerArgs", "containerCommand"):
        if name in config and not has_image:
            yield (at, name), "needs an image: set masterConfig.imageUri"
    accelerator = config.get("acceleratorConfig", {})
    if accelerator.get("count", 1) < 1:
        yield (at, "acceleratorConfig", "count"), f"{accelerator['count']} is less than 1"
    kind = accelerator.get("type", "")
    if not is_machine_type_valid or not accelerator:
        return
    if not kind.startswith("TPU") and training_input.get(f"{role}Type", "") in {"", *LEGACY_TYPES}:
        yield (at, "acceleratorConfig"), f"goes with a machine type of Compute Engine: name one as {role}Type"
    elif not kind:
        yield (at, "acceleratorConfig", "type"), "is required"


def _parameter_violations(parameter: Mapping[str, Any]) -> Iterator[Violation]:
    kind = parameter["type"]
    if kind == "PARAMETER_TYPE_UNSPECIFIED":
        yield ("type",), "is required: DOUBLE, INTEGER, CATEGORICAL or DISCRETE"
    for name in _NEEDED.get(kind, ()):
        # JSON leaves out a limit of zero.
        if name not in parameter and (name != "maxValue" or "minValue" not in parameter):
            yield (name,), f"is required with type {kind}"
    for name in ("minValue", "maxValue"):
        if kind == "INTEGER" and not float(parameter.get(name, 0)).is_integer():
            yield (name,), f"{parameter[name]} is not a whole number, and type is INTEGER"
