"""Where training has which accelerators, and what to change in a job for which its region has no machines."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from vertex_api.estimates.prices import TPU_PRICE_NAMES
from vertex_api.job import Job
from vertex_api.jobspec import DEFAULT_MAX_WAIT
from vertex_api.machines import MACHINES, Machine, machine_of
from vertex_api.validation.pools import check_scheduling

AS_OF = "2026-11-21"
"""The date of both tables."""
PAGE = "https://cloud.google.com/vertex-ai/docs/general/locations"

_LISTED = """
africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 asia-northeast3 asia-south1 asia-south2
asia-southeast1 asia-southeast2 australia-southeast1 australia-southeast2 europe-central2 europe-north1 europe-north2
europe-southwest1 europe-west1 europe-west2 europe-west3 europe-west4 europe-west6 europe-west8 europe-west9
europe-west12 me-central1 me-central2 me-west1 northamerica-northeast1 northamerica-northeast2 southamerica-east1
southamerica-west1 us-central1 us-east1 us-east4 us-east5 us-east7 us-south1 us-west1 us-west2 us-west3 us-west4
us-west8
"""
REGIONS = frozenset(_LISTED.split())
"""Regions that have training."""
_SHORT_NAMES = {
    "A100": "NVIDIA_TESLA_A100",
    "A100-80": "NVIDIA_A100_80GB",
    "B200": "NVIDIA_B200",
    "GB200": "NVIDIA_GB200",
    "H100": "NVIDIA_H100_80GB",
    "H100M": "NVIDIA_H100_MEGA_80GB",
    "H200": "NVIDIA_H200_141GB",
    "L4": "NVIDIA_L4",
    "P4": "NVIDIA_TESLA_P4",
    "RTX6000": "NVIDIA_RTX_PRO_6000",
    "T4": "NVIDIA_TESLA_T4",
    "V100": "NVIDIA_TESLA_V100",
    "v2": "TPU_V2",
    "v3": "TPU_V3",
    "v5e": "TPU_V5_LITEPOD",
    "v6e": "TPU_V6E",
    "7x": "TPU7X",
}
_OFFERED = {
    "asia-east1": "T4 V100 H100M v2",
    "asia-east2": "T4",
    "asia-northeast1": "H100 H100M B200 T4 v6e",
    "asia-northeast3": "A100 H100 L4 T4",
    "asia-south1": "H100 H200 L4 T4",
    "asia-south2": "H200 RTX6000",
    "asia-southeast1": "A100 A100-80 B200 H100 H100M L4 P4 T4 RTX6000",
    "asia-southeast2": "T4",
    "australia-southeast1": "H100M P4 T4",
    "europe-central2": "T4",
    "europe-north1": "H100M",
    "europe-west1": "H100 H100M H200 T4",
    "europe-west2": "H100 L4 T4",
    "europe-west3": "H100 H100M T4",
    "europe-west4": "A100 A100-80 H100 H100M H200 B200 L4 P4 T4 V100 RTX6000 v2 v3 v6e",
    "me-central2": "L4",
    "me-west1": "A100",
    "northamerica-northeast1": "P4 T4",
    "northamerica-northeast2": "H100 L4",
    "southamerica-east1": "T4",
    "southamerica-west1": "v6e",
    "us-central1": "A100 A100-80 B200 GB200 H100 H100M H200 L4 P4 T4 V100 RTX6000 v2 v3 v5e v6e 7x",
    "us-east1": "A100 B200 L4 T4 V100 RTX6000 v5e v6e",
    "us-east4": "A100-80 H100 H100M H200 B200 GB200 L4 P4 T4 RTX6000",
    "us-east5": "A100-80 H100 H100M H200 v6e",
    "us-south1": "v6e B200 H200",
    "us-west1": "H100 H100M H200 L4 T4 V100 v5e",
    "us-west2": "P4 T4 B200",
    "us-west3": "A100 B200",
    "us-west4": "A100 H100 H100M T4 v5e",
}


@cache
def accelerator_regions() -> Mapping[str, tuple[str, ...]]:
    """Return the regions that offer each accelerator; TPUs without an acceleratorType go by the name of their price."""
    pairs = [(region, short) for region, shorts in _OFFERED.items() for short in shorts.split()]
    return {name: tuple(region for region, short in pairs if short == key) for key, name in _SHORT_NAMES.items()}


def missing_accelerators(pools: Iterable[Mapping[str, Any]], region: str) -> set[str]:
    """Return the accelerators of pools (each with a `machineSpec`) that are not known to be available in a region."""
    return {name for name in required_accelerators(pools) if region not in accelerator_regions().get(name, ())}


def required_accelerators(pools: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the accelerators of pools, by the names of `accelerator_regions`."""
    return {name for pool in pools for name in _required(pool)}


def _required(pool: Mapping[str, Any]) -> Iterator[str]:
    machine = machine_of(pool)
    if machine and machine.topologies:
        yield TPU_PRICE_NAMES[machine.family]
    elif machine and (kind := machine.accelerator(pool)[0]):
        yield kind


MAX_NAMES = 4
"""How many machine types or regions an alternative names."""


def alternatives(job: Job, region: str) -> Iterator[str]:
    """Yield a line for each change of a job that may get it machines, the least change first."""
    if resource := job.persistent_resource:
        yield f"more machines in the persistent resource {resource}, or a job without persistentResourceId"
        return
    yield from _strategies(job.job_spec)
    yield from dict.fromkeys(line for pool in job.pools if (line := _machines(pool, region)))
    yield _regions(required_accelerators(job.pools), region)


def _strategies(job_spec: Mapping[str, Any]) -> Iterator[str]:
    scheduling = job_spec.get("scheduling", {})
    current = scheduling.get("strategy", "STANDARD")
    if current == "FLEX_START":
        wait = scheduling.get("maxWaitDuration", DEFAULT_MAX_WAIT)
        yield f'a longer scheduling.maxWaitDuration than "{wait}"; "0s" waits without limit'
    elif _is_allowed(job_spec, "FLEX_START"):
        yield (
            f"scheduling: {{strategy: FLEX_START, maxWaitDuration: {DEFAULT_MAX_WAIT}}}: the job waits for machines, "
            "here for at most a day, and starts when all are there; it takes preemptible quota"
        )
    if current == "SPOT":
        yield "scheduling: {strategy: STANDARD}: machines on demand, which are not taken back"
    elif _is_allowed(job_spec, "SPOT"):
        yield "scheduling: {strategy: SPOT}: spare machines, which may be taken back; it takes preemptible quota"


def _is_allowed(job_spec: Mapping[str, Any], strategy: str) -> bool:
    """Return whether a job may have a strategy, by the rules for its machines and its timeout."""
    options = {key: value for key, value in job_spec.get("scheduling", {}).items() if key != "maxWaitDuration"}
    changed = {**job_spec, "scheduling": {**options, "strategy": strategy}}
    return not any(check_scheduling(changed, ()))


def _machines(pool: Mapping[str, Any], region: str) -> str | None:
    """Return the machine types nearest to a pool's, with its accelerator if it has one; None if there are none."""
    machine = machine_of(pool)
    if machine is None or machine.is_tpu:
        return None
    kind, count = machine.accelerator(pool)
    if kind and region not in accelerator_regions().get(kind, ()):
        return None
    others = _with_accelerator(machine, kind, count) if kind else _without_accelerator(machine)
    if not others:
        return None
    return f"another machineType{f' with {kind}' if kind else ''}: {', '.join(others[:MAX_NAMES])}"


def _with_accelerator(machine: Machine, kind: str, count: int) -> list[str]:
    """Return the other machines that have an accelerator: those of this count first, then of more, then of fewer."""
    others = [each for each in MACHINES.values() if kind in each.gpus and each.name != machine.name]
    counts = {each.name: min(each.gpus[kind], key=lambda known: (known < count, abs(known - count))) for each in others}
    distance = {name: (known < count, abs(known - count)) for name, known in counts.items()}
    others.sort(key=lambda each: (*distance[each.name], abs(each.vcpus - machine.vcpus), each.name))
    names = [each.name for each in others]
    return [name if counts[name] == count else f"{name} (acceleratorCount {counts[name]})" for name in names]


def _without_accelerator(machine: Machine) -> list[str]:
    """Return the smallest machine of each other family that has as many vCPUs and as much memory."""
    smallest: dict[str, Machine] = {}
    for each in sorted(MACHINES.values(), key=lambda each: (each.vcpus, each.memory_gb)):
        if each.can_omit_accelerator and each.vcpus >= machine.vcpus and each.memory_gb >= machine.memory_gb:
            smallest.setdefault(each.family, each)
    return [each.name for family, each in smallest.items() if family != machine.family and not each.is_tpu]


def _regions(accelerators: set[str], region: str) -> str:
    offering: list[set[str]] = [set(accelerator_regions().get(each, ())) for each in accelerators]
    regions = set.intersection(*offering) - {region} if offering else set()
    if accelerators and not regions:
        return f"another accelerator: no other region is known to offer {' and '.join(sorted(accelerators))}"
    with_all = f" that offers {' and '.join(sorted(accelerators))}" if accelerators else ""
    more = f", and {len(regions) - MAX_NAMES} more" if len(regions) > MAX_NAMES else ""
    # Those of the same part of the world first.
    nearest = sorted(regions, key=lambda each: (each.partition("-")[0] != region.partition("-")[0], each))
    names = f": {', '.join(nearest[:MAX_NAMES])}{more}" if regions else ""
    return f"a second stack in another region{with_all}{names} (`vertex-training docs regions`)"
