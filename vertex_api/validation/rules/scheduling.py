"""Rules for the Scheduling of a CustomJobSpec."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.catalog.machines import find_machine_or_none, get_accelerator_and_count
from vertex_api.name_suggestions import join_with_or
from vertex_api.scalar_types import parse_seconds
from vertex_api.validation.rules.machine_spec import RESERVATION_ONLY_MACHINES, find_machine_violations
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_WEEK_SECONDS = 7 * 24 * 3600
_H100_AND_NEWER = ("NVIDIA_H100_80GB", "NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200")
_FLEX_GPUS = ("NVIDIA_L4", "NVIDIA_TESLA_A100", "NVIDIA_A100_80GB", *_H100_AND_NEWER)


def find_scheduling_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for the `scheduling` of a CustomJobSpec (discovery document, Scheduling)."""
    options, path = spec.get("scheduling", {}), (*at, "scheduling")
    for field in ("timeout", "maxWaitDuration"):
        if parse_seconds(options.get(field, "0s")) < 0:
            yield (*path, field), f'"{options[field]}" must not be negative'
    strategy = options.get("strategy", "STANDARD")
    if strategy == "FLEX_START":
        yield from _find_flex_start_violations(spec, at)
    elif "maxWaitDuration" in options:
        yield (*path, "maxWaitDuration"), f"is for the strategy FLEX_START only, not for {strategy}"
    if strategy == "SPOT":
        yield from _find_machines_not_for_spot(spec, at)


def _find_flex_start_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on scheduling jobs with Dynamic Workload Scheduler."""
    timeout = spec["scheduling"].get("timeout", "0s")
    if parse_seconds(timeout) > _WEEK_SECONDS:
        yield (*at, "scheduling", "timeout"), f'"{timeout}" is longer than the seven days ("604800s") of FLEX_START'
    first = None
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        path: KeyPath = (*at, "workerPoolSpecs", index, "machineSpec")
        machine_spec = pool.get("machineSpec", {})
        # Violations of a machine on its own are reported elsewhere.
        if not pool or any(find_machine_violations(machine_spec, path)):
            continue
        first = index if first is None else first
        kind, _ = get_accelerator_and_count(machine_spec)
        if kind not in _FLEX_GPUS:
            yield (*path, "acceleratorType"), f"{kind or 'no accelerator'}: FLEX_START takes {join_with_or(_FLEX_GPUS)}"
        elif machine_spec != spec["workerPoolSpecs"][first]["machineSpec"]:
            yield path, f"must be that of workerPoolSpecs[{first}]: FLEX_START needs the same machines in all pools"


def _find_machines_not_for_spot(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on Spot VMs: not with TPU pods, which are more than one machine. Nor with what is reserved."""
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        machine_spec = pool.get("machineSpec", {})
        machine = find_machine_or_none(machine_spec.get("machineType", ""))
        if not machine:
            continue
        if machine.name in RESERVATION_ONLY_MACHINES:
            message = f"SPOT is not for {machine.name}, which is had with a reservation only"
            yield (*at, "scheduling", "strategy"), message
            return
        cores = get_accelerator_and_count(machine_spec)[1]
        if machine.count_tpu_machines(machine_spec.get("tpuTopology", ""), cores) > 1:
            path: KeyPath = (*at, "workerPoolSpecs", index, "machineSpec", "machineType")
            yield path, f"{machine.name}: the strategy SPOT is not for TPU pods"
