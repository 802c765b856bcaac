"""The resources of the machine that Docker runs on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vertex_emulator.replicas.executor_protocol import HostResources

_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")  # a folder per GPU, made by NVIDIA's driver
_WINDOWS_GPU = Path("/dev/dxg")  # under WSL, where NVIDIA's runtime knows no numbers
_CDI_GPU = "nvidia.com/gpu="


def build_host_resources(docker_info: Mapping[str, Any], machine_gpu_ids: Sequence[str]) -> HostResources:
    """Build the host's resources from Docker's `/info` and this machine's NVIDIA GPUs.

    A GPU counts only when Docker can hand it to a container: by NVIDIA's runtime, or by the Container Device Interface,
    whose devices newer daemons list.
    """
    gpus = list(machine_gpu_ids)
    if "nvidia" not in (docker_info.get("Runtimes") or {}):
        devices = [device["ID"] for device in docker_info.get("DiscoveredDevices") or []]
        gpus = sorted(id_ for id_ in devices if id_.startswith(_CDI_GPU) and id_.removeprefix(_CDI_GPU).isdigit())
    return HostResources(
        cpus=docker_info["NCPU"],
        memory=docker_info["MemTotal"],
        gpus=tuple(gpus),
        can_limit_cpus=docker_info.get("CpuCfsQuota", True),
        can_limit_memory=docker_info.get("MemoryLimit", True),
    )


def list_nvidia_gpu_ids() -> list[str]:
    """List the GPUs of this machine by the names that NVIDIA's runtime accepts."""
    if _NVIDIA_GPUS.is_dir():
        return [str(number) for number, _ in enumerate(_NVIDIA_GPUS.iterdir())]
    return ["all"] if _WINDOWS_GPU.exists() else []
