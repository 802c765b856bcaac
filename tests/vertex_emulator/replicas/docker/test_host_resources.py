"""What Docker's `/info` says of its host. No machine of ours has a GPU: those replies are written after its API."""

from vertex_emulator.replicas.docker.host_resources import build_host_resources
from vertex_emulator.replicas.executor_protocol import HostResources

INFO = {"NCPU": 4, "MemTotal": 1 << 34, "CpuCfsQuota": True, "MemoryLimit": True, "Runtimes": {"runc": {}}}


def test_the_host_has_docker_s_processors_and_memory() -> None:
    assert build_host_resources(INFO, []) == HostResources(cpus=4, memory=1 << 34)


def test_unsupported_kernel_limits_are_recognized() -> None:
    found = build_host_resources({**INFO, "CpuCfsQuota": False, "MemoryLimit": False}, [])
    assert not found.can_limit_cpus
    assert not found.can_limit_memory


def test_gpus_need_docker_s_nvidia_runtime() -> None:
    assert build_host_resources(INFO, ["0", "1"]).gpus == ()
    assert build_host_resources({**INFO, "Runtimes": {"runc": {}, "nvidia": {}}}, ["0", "1"]).gpus == ("0", "1")


def test_gpus_listed_by_cdi_count_once() -> None:
    names = ["nvidia.com/gpu=1", "nvidia.com/gpu=0", "nvidia.com/gpu=all", "nvidia.com/gpu=GPU-8a2c", "other.com/nic=0"]
    info = {**INFO, "DiscoveredDevices": [{"Source": "cdi", "ID": name} for name in names]}
    assert build_host_resources(info, []).gpus == ("nvidia.com/gpu=0", "nvidia.com/gpu=1")
