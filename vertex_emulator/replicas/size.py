"""What a replica may use: the size of its pool's machine type, within what this machine has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_api.machines import MACHINES, Machine

_GB = 1 << 30  # as the machine types' pages count
_WITHOUT_TYPE = Machine("", vcpus=0, memory_gb=0)
_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")  # a folder per GPU, made by NVIDIA's driver
_WINDOWS_GPU = Path("/dev/dxg")  # under WSL, where NVIDIA's runtime knows no numbers
_CDI_GPU = "nvidia.com/gpu="


@dataclass(frozen=True)
class Host:
    """The machine that containers run on.

    `memory` in bytes; `gpus` are the names by which Docker hands them out; the others say whether its kernel lets
    Docker limit a container's processors and memory.
    """

    cpus: int
    memory: int
    gpus: tuple[str, ...] = ()
    can_limit_cpus: bool = True
    can_limit_memory: bool = True

    @classmethod
    def parse(cls, docker_info: Mapping[str, Any], machine_gpus: Sequence[str]) -> "Host":
        """Read Docker's `/info`, with this machine's NVIDIA GPUs.

        A GPU counts only when Docker can hand it to a container: by NVIDIA's runtime, or by the Container Device
        Interface, whose devices newer daemons list.
        """
        gpus = list(machine_gpus)
        if "nvidia" not in (docker_info.get("Runtimes") or {}):
            devices = [device["ID"] for device in docker_info.get("DiscoveredDevices") or []]
            gpus = sorted(id_ for id_ in devices if id_.startswith(_CDI_GPU) and id_.removeprefix(_CDI_GPU).isdigit())
        return cls(
            cpus=docker_info["NCPU"],
            memory=docker_info["MemTotal"],
            gpus=tuple(gpus),
            can_limit_cpus=docker_info.get("CpuCfsQuota", True),
            can_limit_memory=docker_info.get("MemoryLimit", True),
        )

    @property
    def replica_memory(self) -> int:
        """The most memory of a replica."""
        return self.memory * 7 // 8


def nvidia_gpus() -> list[str]:
    """The GPUs of this machine by the names that NVIDIA's runtime accepts."""
    if _NVIDIA_GPUS.is_dir():
        return [str(number) for number, _ in enumerate(_NVIDIA_GPUS.iterdir())]
    return ["all"] if _WINDOWS_GPU.exists() else []


@dataclass(frozen=True)
class Limits:
    """What a container may use of its host.

    `cpus` None leaves it all processors, `memory` (bytes) None all memory. `shared_memory` is the size of `/dev/shm` in
    bytes, None for Docker's own. `gpus` are names of the host's.
    """

    cpus: int | None = None
    memory: int | None = None
    shared_memory: int | None = None
    gpus: tuple[str, ...] = ()


def limits(machine_spec: Mapping[str, Any], host: Host, turn: int) -> Limits:
    """The limits of one replica: those of its machine type, within what the host has.

    - Processors are limited only where the machine type has fewer than the host; else replicas share them evenly,
      which Docker does by itself.
    - Memory is the machine type's, or else seven eighths of the host's, so that the kernel kills a replica that takes
      too much and nothing else on the host. It is a limit, not a reservation.
    - `/dev/shm` is half of that, Linux's own rule for such file systems; what is in it counts as the replica's memory.
    - GPUs: as many as requested and available; replica number `turn` takes the next ones, round robin.

    A pool without a machine type (on a persistent resource) gets what the host has.
    """
    machine = _machine(machine_spec)
    memory = min(int(machine.memory_gb * _GB) or host.replica_memory, host.replica_memory)
    requested = _requested_gpus(machine_spec)
    first = turn * requested
    count = min(requested, len(host.gpus))
    return Limits(
        cpus=machine.vcpus if host.can_limit_cpus and 0 < machine.vcpus < host.cpus else None,
        memory=memory if host.can_limit_memory else None,
        shared_memory=memory // 2,
        gpus=tuple(host.gpus[(first + index) % len(host.gpus)] for index in range(count)),
    )


def warnings(pools: Iterable[Mapping[str, Any]], host: Host) -> list[str]:
    """A warning for each resource that the machine types of worker pools have and this machine lacks."""
    lines = [line for pool in pools for line in _shortfalls(pool.get("machineSpec", {}), host)]
    if not host.can_limit_memory:
        lines.append("Docker on this machine cannot limit memory: each replica may take all of it.")
    return list(dict.fromkeys(lines))


def _shortfalls(machine_spec: Mapping[str, Any], host: Host) -> Iterator[str]:
    machine = _machine(machine_spec)
    if machine.vcpus > host.cpus or machine.memory_gb * _GB > host.replica_memory:
        vcpus, memory_gb = min(machine.vcpus, host.cpus), min(machine.memory_gb, host.replica_memory / _GB)
        yield (
            f"{machine.name} has {machine.vcpus} vCPUs and {machine.memory_gb:g} GB of memory; "
            f"this machine gives a replica {vcpus} and {memory_gb:.3g} GB."
        )
    requested = _requested_gpus(machine_spec)
    if requested > len(host.gpus):
        name, available = machine_spec["acceleratorType"], f"only {len(host.gpus)}" if host.gpus else "none"
        yield f"{name}: {requested} asked for; Docker on this machine gives a replica {available}."
    if machine.is_tpu:
        yield f"{machine.name}: this machine has no TPU; the replica runs without one."


def _machine(machine_spec: Mapping[str, Any]) -> Machine:
    return MACHINES.get(machine_spec.get("machineType", "")) or _WITHOUT_TYPE


def _requested_gpus(machine_spec: Mapping[str, Any]) -> int:
    is_gpu = str(machine_spec.get("acceleratorType", "")).startswith("NVIDIA_")
    return int(machine_spec.get("acceleratorCount", 0)) if is_gpu else 0
