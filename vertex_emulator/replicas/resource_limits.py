"""What a replica may use of this machine, by its pool's machineSpec."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vertex_api.catalog.machines import Machine, get_machine
from vertex_emulator.replicas.executor import HostResources, ResourceLimits

_GB = 1 << 30  # as the machine types' pages count
_WITHOUT_TYPE = Machine("", vcpus=0, memory_gb=0)


def compute_resource_limits(machine_spec: Mapping[str, Any], host: HostResources, turn: int) -> ResourceLimits:
    """The limits of one replica: those of its machine type, within what the host has.

    - Processors are limited only where the machine type has fewer than the host; else replicas share them evenly,
      which Docker does by itself.
    - Memory is the machine type's, or else seven eighths of the host's, so that the kernel ends a replica that takes
      too much rather than anything else here. It is a limit and no reservation.
    - `/dev/shm` is half of that, Linux's own rule for such file systems; what is in it counts as the replica's memory.
    - GPUs: as many as asked for and there; replica number `turn` takes the next ones in a circle.

    A pool without a machine type (on a persistent resource) gets what the host has.
    """
    kind = _machine(machine_spec)
    room = _room(host)
    memory = min(int(kind.memory_gb * _GB) or room, room)
    asked = _gpus_asked(machine_spec)
    first = turn * asked
    count = min(asked, len(host.gpus))
    return ResourceLimits(
        cpus=kind.vcpus if host.limits_cpus and 0 < kind.vcpus < host.cpus else None,
        memory=memory if host.limits_memory else None,
        shared_memory=memory // 2,
        gpus=tuple(host.gpus[(first + index) % len(host.gpus)] for index in range(count)),
    )


def render_shortfall_warnings(pools: Iterable[Mapping[str, Any]], host: HostResources) -> list[str]:
    """A line for the job's log about each thing that machines of its worker pools have and this one does not give."""
    lines = [line for pool in pools for line in _shortfalls(pool.get("machineSpec", {}), host)]
    if not host.limits_memory:
        lines.append("Docker on this machine cannot limit memory: each replica may take all of it.")
    return list(dict.fromkeys(lines))


def _shortfalls(machine_spec: Mapping[str, Any], host: HostResources) -> Iterator[str]:
    kind = _machine(machine_spec)
    room = _room(host)
    if kind.vcpus > host.cpus or kind.memory_gb * _GB > room:
        yield (
            f"{kind.name} has {kind.vcpus} vCPUs and {kind.memory_gb:g} GB of memory; this machine gives a replica "
            f"{min(kind.vcpus, host.cpus)} and {min(kind.memory_gb, room / _GB):.3g} GB."
        )
    asked = _gpus_asked(machine_spec)
    if asked > len(host.gpus):
        given = f"only {len(host.gpus)}" if host.gpus else "none"
        yield f"{machine_spec['acceleratorType']}: {asked} asked for; Docker on this machine gives a replica {given}."
    if kind.is_tpu:
        yield f"{kind.name}: this machine has no TPU; the replica runs without one."


def _machine(machine_spec: Mapping[str, Any]) -> Machine:
    return get_machine(machine_spec.get("machineType", "")) or _WITHOUT_TYPE


def _room(host: HostResources) -> int:
    return host.memory * 7 // 8


def _gpus_asked(machine_spec: Mapping[str, Any]) -> int:
    is_gpu = str(machine_spec.get("acceleratorType", "")).startswith("NVIDIA_")
    return int(machine_spec.get("acceleratorCount", 0)) if is_gpu else 0
