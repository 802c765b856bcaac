"""Quota: what jobs take of Vertex AI's quotas, what a project is granted, and what is short."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf
from typing import Any

from vertex_api.job import Job
from vertex_api.jobspec import boot_disk, replica_count
from vertex_api.machines import machine_of

METRIC_PREFIX = "aiplatform.googleapis.com/custom_model_training_"
UNKNOWN_METRIC = "*"
"""Marks what is counted where the metric's name is not on file, such as `a4 vCPUs*`."""

_CPUS = {"n1": "cpus", "e2": "cpus"} | {
    family: f"{family}_cpus" for family in ("n2", "n4", "c2", "m1", "g2", "a2", "a3")
}
_GPUS = {
    "NVIDIA_TESLA_P4": "nvidia_p4_gpus",
    "NVIDIA_TESLA_T4": "nvidia_t4_gpus",
    "NVIDIA_TESLA_V100": "nvidia_v100_gpus",
    "NVIDIA_L4": "nvidia_l4_gpus",
    "NVIDIA_TESLA_A100": "nvidia_a100_gpus",
    "NVIDIA_A100_80GB": "nvidia_a100_80gb_gpus",
    "NVIDIA_H100_80GB": "nvidia_h100_gpus",
    "NVIDIA_H100_MEGA_80GB": "nvidia_h100_mega_gpus",
    "NVIDIA_H200_141GB": "nvidia_h200_gpus",
    "NVIDIA_B200": "nvidia_b200_gpus",
}
_TPUS = {"TPU_V2": "tpu_v2", "TPU_V3": "tpu_v3", "ct5lp": "tpu_v5e", "ct6e": "tpu_v6e"}
"""Of H200, B200 and v6e, Google's samples have the ids of quotas (`quota_id`), which the names follow. Of GB200, RTX
PRO 6000 and 7x, and of the vCPUs of their machines, no public source has any."""
_DISKS = {"pd-ssd": "pd_ssd"}


def quota_page(project: str) -> str:
    """Return the address of the page where a project's quotas are seen, and more is asked for."""
    return f"https://console.cloud.google.com/iam-admin/quotas?project={project}"


def needed_quota(job: Job) -> dict[str, int]:
    """Return how much a job needs of each metric, by its name without `METRIC_PREFIX`.

    That is vCPUs, GPUs, TPU cores (v2, v3) or chips, and GiB of boot disk, over all replicas of all trials that run at
    once. If a metric's name is not on file, the name is what is counted, followed by `UNKNOWN_METRIC`.
    """
    return {name: amount * job.parallel_trials for name, amount in quota_of_run(job.job_spec).items()}


def persistent_quota(pools: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how much of each metric a persistent resource with these ResourcePools needs at its largest.

    Google's overview of persistent resources: all use the quota of training.
    """
    return needed_quota(Job.of_pools(pools, "max"))


def quota_of_run(job_spec: Mapping[str, Any]) -> dict[str, int]:
    """Return how much one run with a CustomJobSpec needs of each metric, as in `needed_quota`."""
    amounts: dict[str, int] = {}
    if job_spec.get("persistentResourceId"):
        return amounts
    # Google's pages on Spot VMs and on Dynamic Workload Scheduler: both count against the "preemptible" quotas.
    is_preemptible = job_spec.get("scheduling", {}).get("strategy") in ("SPOT", "FLEX_START")
    for pool in filter(None, job_spec["workerPoolSpecs"]):
        for name, amount in _per_machine(pool, is_preemptible):
            amounts[name] = amounts.get(name, 0) + amount * replica_count(pool)
    return amounts


def _per_machine(pool: Mapping[str, Any], is_preemptible: bool) -> Iterator[tuple[str, int]]:
    machine = machine_of(pool)
    if machine is None:
        if name := pool.get("machineSpec", {}).get("machineType"):
            yield f"{name} machines{UNKNOWN_METRIC}", 1  # how many vCPUs it has is not on file
        return
    family = machine.family
    kind, count = machine.accelerator(pool)
    if machine.is_tpu:
        # v2 and v3 are counted by the core, newer ones by the chip.
        counted = family if machine.topologies else kind
        chips = machine.chips * machine.hosts(pool["machineSpec"].get("tpuTopology", ""), 0)
        amount = chips if machine.topologies else count
        # Whether preemptible TPUs have quotas of their own is not on file.
        yield (None if is_preemptible else _TPUS.get(str(counted))) or f"{counted}{UNKNOWN_METRIC}", amount
    else:
        # Preemptible vCPUs of all families share one: the service's errors for T4 and A100 machines both name it.
        cpu_metric = "preemptible_cpus" if is_preemptible else _CPUS.get(family)
        yield cpu_metric or f"{family} vCPUs{UNKNOWN_METRIC}", machine.vcpus
        if kind:
            prefix = "preemptible_" if is_preemptible else ""
            yield f"{prefix}{_GPUS[kind]}" if kind in _GPUS else f"{kind}{UNKNOWN_METRIC}", count
    disk, size = boot_disk(pool)
    yield _DISKS.get(disk) or f"{disk} GB{UNKNOWN_METRIC}", size


SERVICE = "aiplatform.googleapis.com"
"""The service whose quotas training counts against."""
UNLIMITED = inf


def granted_quota(quota_infos: Iterable[Mapping[str, Any]], region: str) -> dict[str, float]:
    """Return what is granted in a region by metric, in full (`aiplatform.googleapis.com/…`).

    A metric whose value is missing or no number is left out. Of several quotas of one metric the lowest one counts.
    """
    granted: dict[str, float] = {}
    for info in quota_infos:
        value = _granted(info.get("dimensionsInfos") or (), region)
        if value is not None:
            granted[info["metric"]] = min(value, granted.get(info["metric"], UNLIMITED))
    return granted


def _granted(dimensions_infos: Iterable[Mapping[str, Any]], region: str) -> float | None:
    """Return the value of the most specific entry that covers all of a region; None if no entry has one."""
    for info in dimensions_infos:
        dimensions = info.get("dimensions") or {}
        locations = info.get("applicableLocations") or (region,)
        covers_region = dimensions in ({}, {"region": region}) and (region in locations or "global" in locations)
        value = next((detail.get("value") for detail in info.get("details") or ()), None)
        if covers_region and value is not None:
            return _amount(value)
    return None


def _amount(text: str) -> float | None:
    try:
        amount = int(text)
    except ValueError:
        return None
    return UNLIMITED if amount < 0 else float(amount)


def granted_limit(consumer_metric: Mapping[str, Any], region: str) -> float | None:
    """Return what is granted in a region of a ConsumerQuotaMetric of Service Usage; None if it does not say so.

    Of several limits the lowest one counts, and of the buckets of each the last that covers the region: they run from
    the least specific to the most (Service Usage's REST reference).
    """
    limits = [
        [
            bucket.get("effectiveLimit")
            for bucket in limit.get("quotaBuckets", ())
            if (bucket.get("dimensions") or {}) in ({}, {"region": region})
        ]
        for limit in consumer_metric.get("consumerQuotaLimits", ())
    ]
    found = [_amount(str(buckets[-1])) for buckets in limits if buckets]
    return min((amount for amount in found if amount is not None), default=None)


def quota_id(metric: str) -> str:
    """Return the id that Cloud Quotas has for a metric, by the scheme of Google's own samples.

    `nvidia_a100_80gb_gpus` is `CustomModelTrainingA10080GBGPUsPerProjectPerRegion` (`get_quota_id` of
    GoogleCloudPlatform/vertex-ai-samples, common_util.py).
    """
    name = metric.removeprefix(METRIC_PREFIX)
    kind, name = ("Preemptible", name.removeprefix("preemptible_")) if name.startswith("preemptible_") else ("", name)
    if match := re.fullmatch(r"tpu_(v\d)(e?)", name):
        name = f"{match[1]}{match[2]}".upper() + ("TPU" if match[2] else "TPUs")
    else:
        stem = re.sub(r"_?(cpus|gpus)$", "", name.removeprefix("nvidia_")).replace("_", "").upper()
        name = f"{stem}{'GPUs' if name.endswith('gpus') else 'CPUs' if name.endswith('cpus') else ''}"
    return f"CustomModelTraining{kind}{name}PerProjectPerRegion"


@dataclass(frozen=True)
class Shortage:
    """A metric of which less is granted than needed.

    If `is_by_job`, each job in `needed_by_job` alone needs more than is granted, so it can never run. Otherwise only
    all jobs together do (`needed`), so some wait until others have ended. The job that needs the most comes first.
    """

    metric: str
    granted: float
    needed: int
    needed_by_job: Mapping[str, int]
    is_by_job: bool


def find_shortages(needed_by_job: Mapping[str, Mapping[str, int]], granted: Mapping[str, float]) -> list[Shortage]:
    """Return the shortages by metric: `needed_by_job` by job and metric, `granted` by the same names of metrics."""
    needed = sum(map(Counter, needed_by_job.values()), Counter[str]())
    shortages = []
    for metric in sorted(needed.keys() & granted.keys()):
        amounts = {job: metrics[metric] for job, metrics in needed_by_job.items() if metrics.get(metric)}
        amounts = dict(sorted(amounts.items(), key=lambda item: (-item[1], item[0])))
        limit = granted[metric]
        above = {job: amount for job, amount in amounts.items() if amount > limit}
        if needed[metric] > limit:
            shortages.append(Shortage(metric, limit, needed[metric], above or amounts, bool(above)))
    return shortages


_START, _MIDDLE = "Quota in ", ": needed by all jobs at once, and granted to "
_ROW = re.compile(r"  (\S.*?) {2,}(\S+) {2,}(\S+)")
_COLUMNS = ("quota", "needed", "granted")


def quota_table(
    project: str, region: str, needed_by_job: Mapping[str, Mapping[str, int]], granted: Mapping[str, float]
) -> list[str]:
    """Return the lines of a table of the metrics that are needed: what all jobs need at once, and what is granted."""
    names = sorted(set().union(*needed_by_job.values()))
    needed = {name: sum(metrics.get(name, 0) for metrics in needed_by_job.values()) for name in names}
    rows = [_COLUMNS]
    rows += [(name, f"{needed[name]:,}", show_grant(granted.get(name))) for name in names]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"{_START}{region}{_MIDDLE}{project}"]
    lines += [f"  {name:{widths[0]}}  {need:>{widths[1]}}  {grant:>{widths[2]}}" for name, need, grant in rows]
    if granted.keys() < set(names):
        lines.append(f"  ? no such quota is listed for the project, or its name is not on file ({UNKNOWN_METRIC})")
    return lines


def show_grant(amount: float | None) -> str:
    """Return an amount as texts show it, `?` for `None`."""
    if amount is None:
        return "?"
    return "unlimited" if isinf(amount) else f"{amount:,.0f}"


def parse_quota_table(preview_messages: Iterable[str]) -> dict[str, str]:
    """Return what is granted, as the tables among a preview's messages show it; nothing without a table.

    A program with stacks in several projects or regions has a table of each: `42 or 8` where they differ.
    """
    found: dict[str, dict[str, None]] = {}
    for message in preview_messages:
        title, *lines = message.splitlines() or [""]
        if title.startswith(_START) and _MIDDLE in title:
            for name, _, granted in (row.groups() for line in lines if (row := _ROW.fullmatch(line))):
                if (name, granted) != (_COLUMNS[0], _COLUMNS[2]):
                    found.setdefault(name, {})[granted] = None
    return {name: " or ".join(amounts) for name, amounts in found.items()}
