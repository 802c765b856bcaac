"""Rules for a MachineSpec: a machine type and its accelerators."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.catalog.machines import (
    Machine,
    find_machine_or_none,
    get_accelerator_and_count,
    get_machines_by_name,
)
from vertex_api.name_suggestions import find_closest_name_or_none, join_with_or
from vertex_api.validation.rules.text_formats import TextFormat
from vertex_api.validation.rules.violation_type import KeyPath, Violation

RESERVATION_ONLY_MACHINES = ("a4x-highgpu-4g",)
"""Machine types that need a reservation (Google's page on configuring compute resources)."""
_PARTITION = TextFormat(re.compile(r"[0-9]+g\.[0-9]+gb"), "must be the size of a GPU partition, such as 1g.10gb")
_BOTH = "Both `accelerator_type` and `accelerator_count` should be specified or none."


def find_machine_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for a MachineSpec (discovery document). The message for unknown machine types is the
    service's own, on Google's troubleshooting page."""
    name = spec.get("machineType", "")
    machine = find_machine_or_none(name)
    if not name:
        yield (*at, "machineType"), "is required"
    elif not machine:
        yield (*at, "machineType"), f"Machine type {name} is not supported. {_render_closest_machine_or_families(name)}"
    yield from _find_accelerator_violations(spec, machine, at)
    yield from _find_topology_violations(spec, machine, at)
    yield from _find_partition_violations(spec, at)
    if "reservationAffinity" in spec:
        yield from _find_reservation_violations(spec["reservationAffinity"], (*at, "reservationAffinity"))


def _render_closest_machine_or_families(machine_type: str) -> str:
    closest = find_closest_name_or_none(machine_type, get_machines_by_name())
    families = dict.fromkeys(known.rpartition("-")[0] or known for known in get_machines_by_name())
    return f"Did you mean {closest}?" if closest else f"Use one of {', '.join(families)}."


def _find_accelerator_violations(spec: Mapping[str, Any], machine: Machine | None, at: KeyPath) -> Iterator[Violation]:
    """The service's own texts, quoted in public; which go together: Google's page on configuring compute resources."""
    kind, count = get_accelerator_and_count(spec)
    counts_by_type = machine.accelerator_counts_by_type if machine else {}
    if count < 0:
        yield (*at, "acceleratorCount"), f"{count} must not be negative"
    elif bool(kind) != bool(count):
        yield (*at, "acceleratorType"), _BOTH
    elif not machine:
        return
    elif kind is None:
        if not machine.can_omit_accelerator:
            yield (*at, "acceleratorType"), f"{machine.name} needs an accelerator: {join_with_or(counts_by_type)}"
    elif kind not in counts_by_type:
        takes = join_with_or(counts_by_type) if counts_by_type else "no accelerator"
        message = f'Accelerator "{kind}" is not supported for machine type "{machine.name}"; it takes {takes}'
        yield (*at, "acceleratorType"), message
    elif not spec.get("gpuPartitionSize") and (counts := counts_by_type[kind]) and count not in counts:
        message = f"{count} {kind} cannot be attached to {machine.name}; possible: {_render_counts(counts)}"
        yield (*at, "acceleratorCount"), message


def _render_counts(counts: tuple[int, ...]) -> str:
    """Return a few counts in full, many as the first ones and the last."""
    return join_with_or(counts) if len(counts) <= 5 else f"{', '.join(map(str, counts[:4]))} … {counts[-1]}"


def _find_topology_violations(spec: Mapping[str, Any], machine: Machine | None, at: KeyPath) -> Iterator[Violation]:
    """Google's page on training with TPUs: v5e and newer need a topology, nothing else has one."""
    topology = spec.get("tpuTopology")
    if not machine:
        return
    if topology and not machine.topologies:
        yield (*at, "tpuTopology"), f'"{topology}": {machine.name} takes no topology'
    elif machine.topologies and topology not in machine.topologies:
        text = f'"{topology}" is not one that {machine.name} has' if topology else f"is required for {machine.name}"
        yield (*at, "tpuTopology"), f"{text}: {join_with_or(machine.topologies)}"


def _find_partition_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `gpuPartitionSize`: "the accelerator_count should be set to 1"."""
    size = spec.get("gpuPartitionSize")
    yield from _PARTITION.find_violations_if_set(size, (*at, "gpuPartitionSize"))
    if size and get_accelerator_and_count(spec)[1] != 1:
        yield (*at, "acceleratorCount"), f"must be 1 with gpuPartitionSize {size}"


def _find_reservation_violations(affinity: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ReservationAffinity: key and values target a specific reservation."""
    kind = affinity.get("reservationAffinityType", "TYPE_UNSPECIFIED")
    if kind == "TYPE_UNSPECIFIED":
        yield (*at, "reservationAffinityType"), "is required: NO_RESERVATION, ANY_RESERVATION or SPECIFIC_RESERVATION"
    for field in ("key", "values"):
        if kind == "SPECIFIC_RESERVATION" and not affinity.get(field):
            yield (*at, field), "is required with SPECIFIC_RESERVATION"
        elif kind in ("NO_RESERVATION", "ANY_RESERVATION") and affinity.get(field):
            yield (*at, field), f"is for SPECIFIC_RESERVATION only, not for {kind}"
