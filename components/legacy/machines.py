"""Scale tiers and machine types of AI Platform Training, as machines that Vertex AI has.

What a tier means: AI Platform Training's discovery document. How many machines it has, and how many GPUs a legacy type
has: Google's former page on machine types. Which types of Compute Engine are their size is from memory of that page and
unverified, which is why the comments ask to check it.
"""

from dataclasses import dataclass
from typing import Any

from vertex_api.catalog.machines import get_machine

ROLES = ("master", "worker", "parameterServer", "evaluator")
"""Roles of replicas; their order is that of Vertex AI's worker pools."""

LEGACY_TYPES: dict[str, tuple[str, str, int]] = {
    # name: Compute Engine's machine type, acceleratorType, acceleratorCount
    "standard": ("n1-standard-4", "", 0),
    "large_model": ("n1-highmem-8", "", 0),
    "complex_model_s": ("n1-standard-8", "", 0),  # 8 vCPUs; Vertex AI has no n1-highcpu-8
    "complex_model_m": ("n1-highcpu-16", "", 0),
    "complex_model_l": ("n1-highcpu-32", "", 0),
    "standard_gpu": ("n1-standard-8", "NVIDIA_TESLA_K80", 1),
    "standard_p100": ("n1-standard-8", "NVIDIA_TESLA_P100", 1),
    "standard_v100": ("n1-standard-8", "NVIDIA_TESLA_V100", 1),
    "large_model_v100": ("n1-highmem-8", "NVIDIA_TESLA_V100", 1),
    "complex_model_m_gpu": ("n1-standard-16", "NVIDIA_TESLA_K80", 4),
    "complex_model_m_p100": ("n1-standard-16", "NVIDIA_TESLA_P100", 4),
    "complex_model_m_v100": ("n1-standard-16", "NVIDIA_TESLA_V100", 4),
    "complex_model_l_gpu": ("n1-standard-32", "NVIDIA_TESLA_K80", 8),
    "complex_model_l_v100": ("n1-standard-32", "NVIDIA_TESLA_V100", 8),
    "cloud_tpu": ("cloud-tpu", "TPU_V2", 8),
}
IN_PLACE_OF: dict[str, tuple[str, str]] = {
    # name: a machine type that Vertex AI has, and one more to choose
    "n1-highcpu-8": ("n1-standard-8", "n1-highcpu-16"),
}
"""Machine types of Compute Engine that AI Platform Training had and that Google's list for Vertex AI is without."""
SCALE_TIERS: dict[str, dict[str, tuple[str, int]]] = {
    # name: the machine type and the number of replicas of each role
    "BASIC": {"master": ("standard", 1)},
    "STANDARD_1": {
        "master": ("complex_model_s", 1),
        "worker": ("complex_model_s", 4),
        "parameterServer": ("standard", 3),
    },
    "PREMIUM_1": {
        "master": ("complex_model_m", 1),
        "worker": ("complex_model_m", 19),
        "parameterServer": ("large_model", 11),
    },
    "BASIC_GPU": {"master": ("standard_gpu", 1)},
    "BASIC_TPU": {"master": ("cloud_tpu", 1)},
}
"""All but CUSTOM."""


@dataclass(frozen=True)
class Replicas:
    """One role's machines: `source` names what in the legacy job asks for them."""

    role: str
    type: str
    count: int
    source: str

    @property
    def is_tpu(self) -> bool:
        """Whether they are hosts of TPUs."""
        return self.type in ("cloud_tpu", "cloud-tpu")


def replicas(training_input: dict[str, Any]) -> list[Replicas]:
    """The roles that have replicas, of a TrainingInput without problems."""
    tier = training_input.get("scaleTier")
    if tier != "CUSTOM" and "masterType" not in training_input:
        parts = SCALE_TIERS[tier or "BASIC"]
        return [Replicas(role, type_, count, f"scaleTier {tier or 'BASIC'}") for role, (type_, count) in parts.items()]
    found = [Replicas("master", training_input["masterType"], 1, "masterType")]
    for role in ROLES[1:]:
        count = training_input.get(f"{role}Count", 0)
        if count:
            found.append(Replicas(role, training_input[f"{role}Type"], count, f"{role}Type"))
    return found


def machine_spec(part: Replicas, accelerator: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The MachineSpec of a role, and comments on what changes. `accelerator` is its AcceleratorConfig, or empty."""
    comments = []
    name, kind, count = LEGACY_TYPES.get(part.type, (part.type, "", 0))
    if part.type in LEGACY_TYPES and not part.is_tpu:
        had = f" with {count} {kind}" if kind else ""
        asked = f"{part.source} {part.type}" if part.source.endswith("Type") else f"{part.source}: the type {part.type}"
        comments.append(f"{asked} is about an {name}{had}; check whether that is its size.")
    if name in IN_PLACE_OF:
        asked, (name, other) = name, IN_PLACE_OF[name]
        text = (
            f"{part.source} {asked}: Vertex AI has none; {name} has as many vCPUs, and {other} is of the same family."
        )
        comments.append(text)
    if accelerator.get("type", "ACCELERATOR_TYPE_UNSPECIFIED") != "ACCELERATOR_TYPE_UNSPECIFIED":
        kind, count = accelerator["type"], accelerator.get("count", 1)
    elif part.is_tpu:
        kind, count = "TPU_V2", 8
    if kind.startswith(("TPU_V2_POD", "TPU_V3_POD")):
        kind = kind.removesuffix("_POD")
    found = get_machine(name)
    if kind == "NVIDIA_TESLA_K80" and found and "NVIDIA_TESLA_T4" in found.gpus:
        counts = found.gpus["NVIDIA_TESLA_T4"]
        fewest = next((possible for possible in counts if possible >= count), counts[-1])
        comments.append(f"NVIDIA_TESLA_K80 is no longer there: {fewest} NVIDIA_TESLA_T4 in place of {count}.")
        kind, count = "NVIDIA_TESLA_T4", fewest
    accelerators = {"acceleratorType": kind, "acceleratorCount": count} if kind else {}
    return {"machineType": name, **accelerators}, comments
