"""Which of Vertex AI's quotas a job counts against, and how much of each it takes while it runs.

The names are those of the service's own refusals ("The following quota metrics exceed quota limits: …") and of Google's
samples, as they have been quoted in public up to 2026-11. For what none of them names, none is made up.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.catalog.job_spec_defaults import get_boot_disk_type_and_size
from vertex_api.catalog.machines import find_machine_or_none, get_accelerator_and_count_per_machine
from vertex_api.validation.canonical_spec import CanonicalSpec

METRIC_PREFIX = "aiplatform.googleapis.com/custom_model_training_"
UNKNOWN_METRIC_MARK = "*"
"""Marks what is counted where the metric's name is not on file, such as `a4 vCPUs*`."""

_CPUS = {"n1": "cpus", "e2": "cpus"} | {
    family: f"{family}_cpus" for family in ("n2", "n4", "c2", "m1", "g2", "a2", "a3")
}
_GPUS = {
    "NVIDIA_TESLA_P4": "nvidia_p4_gpus",
    "NVIDIA_TESLA_P100": "nvidia_p100_gpus",
    "NVIDIA_TESLA_T4": "nvidia_t4_gpus",
    "NVIDIA_TESLA_V100": "nvidia_v100_gpus",
    "NVIDIA_L4": "nvidia_l4_gpus",
    "NVIDIA_TESLA_A100": "nvidia_a100_gpus",
    "NVIDIA_A100_80GB": "nvidia_a100_80gb_gpus",
    "NVIDIA_H100_80GB": "nvidia_h100_gpus",
    "NVIDIA_H100_MEGA_80GB": "nvidia_h100_mega_gpus",
    "NVIDIA_H200_141GB": "nvidia_h200_gpus",
}
_TPUS = {"TPU_V2": "tpu_v2", "TPU_V3": "tpu_v3", "ct5lp": "tpu_v5e"}
_DISKS = {"pd-ssd": "pd_ssd"}


def build_quota_page_url(project: str) -> str:
    """Return the address of the page where a project's quotas are seen, and more is asked for."""
    return f"https://console.cloud.google.com/iam-admin/quotas?project={project}"


def estimate_quota_by_metric(spec: CanonicalSpec) -> dict[str, int]:
    """Return how much a job needs of each metric, by its name without `METRIC_PREFIX`.

    That is vCPUs, GPUs, TPU cores (v2, v3) or chips, and GiB of boot disk, over all replicas of all trials that run at
    once. If a metric's name is not on file, the name is what is counted, followed by `UNKNOWN_METRIC_MARK`.
    """
    parallel_trials = spec.backing_spec_or_self.fields.get("parallelTrialCount", 1)
    return {name: amount * parallel_trials for name, amount in estimate_job_spec_quota_by_metric(spec.job_spec).items()}


def estimate_job_spec_quota_by_metric(job_spec: Mapping[str, Any]) -> dict[str, int]:
    """Return how much one run with a CustomJobSpec needs of each metric, as in `estimate_quota_by_metric`."""
    amounts: dict[str, int] = {}
    if job_spec.get("persistentResourceId"):
        return amounts
    is_preemptible = is_counted_as_preemptible(job_spec)
    for pool in job_spec["workerPoolSpecs"]:
        for name, amount in _iterate_metrics_and_amounts_per_machine(pool, is_preemptible) if pool else ():
            amounts[name] = amounts.get(name, 0) + amount * pool.get("replicaCount", 1)
    return amounts


def is_counted_as_preemptible(job_spec: Mapping[str, Any]) -> bool:
    """Return whether a CustomJobSpec counts against the quotas named "preemptible".

    Google's pages on Spot VMs and on Dynamic Workload Scheduler: spot and flexible start do.
    """
    return job_spec.get("scheduling", {}).get("strategy") in ("SPOT", "FLEX_START")


def _iterate_metrics_and_amounts_per_machine(
    pool: Mapping[str, Any], is_preemptible: bool
) -> Iterator[tuple[str, int]]:
    spec = pool.get("machineSpec", {})
    machine = find_machine_or_none(spec.get("machineType", ""))
    if machine is None:
        return
    family = machine.name.partition("-")[0]
    kind, count = get_accelerator_and_count_per_machine(pool, machine)
    if machine.is_tpu:
        counted = kind if family == "cloud" else family
        chips = machine.chips * machine.count_tpu_machines(spec.get("tpuTopology", ""), 0)
        amount = count if family == "cloud" else chips
        # Whether preemptible TPUs have quotas of their own is not on file.
        yield (None if is_preemptible else _TPUS.get(str(counted))) or f"{counted}{UNKNOWN_METRIC_MARK}", amount
    else:
        # Preemptible vCPUs of all families share one: the service's errors for T4 and A100 machines both name it.
        cpu_metric = "preemptible_cpus" if is_preemptible else _CPUS.get(family)
        yield cpu_metric or f"{family} vCPUs{UNKNOWN_METRIC_MARK}", machine.vcpus
        if kind:
            prefix = "preemptible_" if is_preemptible else ""
            yield f"{prefix}{_GPUS[kind]}" if kind in _GPUS else f"{kind}{UNKNOWN_METRIC_MARK}", count
    disk, size = get_boot_disk_type_and_size(pool)
    yield _DISKS.get(disk) or f"{disk} GB{UNKNOWN_METRIC_MARK}", size
