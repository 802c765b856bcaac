"""The resource limits of a replica, by its pool's machineSpec and the host, and warnings of what the host lacks."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vertex_api.machines import MACHINES, Machine
from vertex_emulator.replicas.executor_protocol import HostResources, ResourceLimits

_GB = 1 << 30  # as the machine types' pages count
_WITHOUT_TYPE = Machine("", vcpus=0, memory_gb=0)


def compute_resource_limits(machine_spec: Mapping[str, Any], host: HostResources, replica_index: int) -> ResourceLimits:
    """Compute the limits of one replica: those of its machine type, within what the host has.

    - Processors are limited only where the machine type has fewer than the host; else replicas share them evenly,
      which Docker does by itself.
    - Memory is the machine type's, or else seven eighths of the host's, so that the kernel kills a replica that takes
      too much and nothing else on the host. It is a limit, not a reservation.
    - `/dev/shm` is half of that, Linux's own rule for such file systems; what is in it counts as the replica's memory.
    - GPUs: as many as requested and available; replica number `replica_index` takes the next ones, round robin.

    A pool without a machine type (on a persistent resource) gets what the host has.
    """
    machine = _get_machine_or_placeholder(machine_spec)
    available_memory = _compute_max_replica_memory(host)
    memory = min(int(machine.memory_gb * _GB) or available_memory, available_memory)
    requested = _count_requested_gpus(machine_spec)
    first = replica_index * requested
    count = min(requested, len(host.gpus))
    return ResourceLimits(
        cpus=machine.vcpus if host.can_limit_cpus and 0 < machine.vcpus < host.cpus else None,
        memory=memory if host.can_limit_memory else None,
        shared_memory=memory // 2,
        gpus=tuple(host.gpus[(first + index) % len(host.gpus)] for index in range(count)),
    )


def render_shortfall_warnings(worker_pools: Iterable[Mapping[str, Any]], host: HostResources) -> list[str]:
    """Render a warning for each resource that the machine types of the pools have and this machine lacks."""
    lines = [line for pool in worker_pools for line in _iterate_shortfall_warnings(pool.get("machineSpec", {}), host)]
    if not host.can_limit_memory:
        lines.append("Docker on this machine cannot limit memory: each replica may take all of it.")
    return list(dict.fromkeys(lines))


def _iterate_shortfall_warnings(machine_spec: Mapping[str, Any], host: HostResources) -> Iterator[str]:
    machine = _get_machine_or_placeholder(machine_spec)
    available_memory = _compute_max_replica_memory(host)
    if machine.vcpus > host.cpus or machine.memory_gb * _GB > available_memory:
        vcpus, memory_gb = min(machine.vcpus, host.cpus), min(machine.memory_gb, available_memory / _GB)
        yield (
            f"{machine.name} has {machine.vcpus} vCPUs and {machine.memory_gb:g} GB of memory; "
            f"this machine gives a replica {vcpus} and {memory_gb:.3g} GB."
        )
    requested = _count_requested_gpus(machine_spec)
    if requested > len(host.gpus):
        name, available = machine_spec["acceleratorType"], f"only {len(host.gpus)}" if host.gpus else "none"
        yield f"{name}: {requested} asked for; Docker on this machine gives a replica {available}."
    if machine.is_tpu:
        yield f"{machine.name}: this machine has no TPU; the replica runs without one."


def _get_machine_or_placeholder(machine_spec: Mapping[str, Any]) -> Machine:
    return MACHINES.get(machine_spec.get("machineType", "")) or _WITHOUT_TYPE


def _compute_max_replica_memory(host: HostResources) -> int:
    return host.memory * 7 // 8


def _count_requested_gpus(machine_spec: Mapping[str, Any]) -> int:
    is_gpu = str(machine_spec.get("acceleratorType", "")).startswith("NVIDIA_")
    return int(machine_spec.get("acceleratorCount", 0)) if is_gpu else 0
