"""Scale tiers and machine types of AI Platform Training, and the machines of Vertex AI that replace them.

Sources: AI Platform Training's discovery document for the tiers, Google's former page on machine types for counts of
machines and GPUs. The equivalent Compute Engine types are unverified, so comments ask to check them.
"""

from dataclasses import dataclass
from typing import Any

from vertex_api.machines import find_machine

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
REPLACEMENTS = {"n1-highcpu-8": ("n1-standard-8", "n1-highcpu-16")}
"""By a machine type that Vertex AI does not have: one with as many vCPUs, and one of the same family."""
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
    """One role's machines. `source` is the field of the legacy job that asks for them."""

    role: str
    type: str
    count: int
    source: str

    @property
    def is_tpu(self) -> bool:
        """Whether they are hosts of TPUs."""
        return self.type in ("cloud_tpu", "cloud-tpu")


def list_replicas(training_input: dict[str, Any]) -> list[Replicas]:
    """Return the replicas of each role that a valid TrainingInput asks for."""
    tier = training_input.get("scaleTier")
    if tier != "CUSTOM" and "masterType" not in training_input:
        source = f"scaleTier {tier or 'BASIC'}"
        return [Replicas(role, *machines, source) for role, machines in SCALE_TIERS[tier or "BASIC"].items()]
    counts = {"master": 1, **{role: training_input.get(f"{role}Count", 0) for role in ROLES[1:]}}
    return [
        Replicas(role, training_input[f"{role}Type"], counts[role], f"{role}Type") for role in ROLES if counts[role]
    ]


def build_machine_spec_and_comments(
    replicas: Replicas, accelerator: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the MachineSpec of a role, and comments on what changes. `accelerator` is its AcceleratorConfig or {}."""
    comments, source = [], f"{replicas.source} {replicas.type}"
    name, kind, count = LEGACY_TYPES.get(replicas.type, (replicas.type, "", 0))
    if replicas.type in LEGACY_TYPES and not replicas.is_tpu:
        source = source if replicas.source.endswith("Type") else f"{replicas.source}: the type {replicas.type}"
        gpus = f" with {count} {kind}" if kind else ""
        comments.append(f"{source} is about an {name}{gpus}; check whether that is its size.")
    if name in REPLACEMENTS:
        name, other = REPLACEMENTS[name]
        text = f"Vertex AI has none; {name} has as many vCPUs, and {other} is of the same family."
        comments.append(f"{source}: {text}")
    if accelerator.get("type", "ACCELERATOR_TYPE_UNSPECIFIED") != "ACCELERATOR_TYPE_UNSPECIFIED":
        kind, count = accelerator["type"], accelerator.get("count", 1)
    elif replicas.is_tpu:
        kind, count = "TPU_V2", 8
    if kind.startswith(("TPU_V2_POD", "TPU_V3_POD")):
        kind = kind.removesuffix("_POD")
    machine = find_machine(name)
    if kind == "NVIDIA_TESLA_K80" and machine and "NVIDIA_TESLA_T4" in machine.gpus:
        counts = machine.gpus["NVIDIA_TESLA_T4"]
        t4_count = next((possible for possible in counts if possible >= count), counts[-1])
        comments.append(f"NVIDIA_TESLA_K80 is no longer there: {t4_count} NVIDIA_TESLA_T4 in place of {count}.")
        kind, count = "NVIDIA_TESLA_T4", t4_count
    return {"machineType": name, **({"acceleratorType": kind, "acceleratorCount": count} if kind else {})}, comments
