"""What Docker's `/info` says of its host. No machine of ours has a GPU: those replies are written after its API."""

import pytest

from vertex_emulator.replicas import size
from vertex_emulator.replicas.size import Host, Limits

GB = 1 << 30
WORKSTATION = Host(cpus=16, memory=64 * GB, gpus=("0", "1", "2"))
LAPTOP = Host(cpus=2, memory=16 * GB)


def machine(name: str, gpus: int = 0) -> dict[str, object]:
    """A MachineSpec."""
    return {"machineType": name, **({"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": gpus} if gpus else {})}


def test_smaller_machine_gets_its_own_size() -> None:
    given = size.limits(machine("n1-standard-4"), WORKSTATION, turn=0)
    assert given == Limits(cpus=4, memory=15 * GB, shared_memory=15 * GB // 2)
    assert size.warnings([{"machineSpec": machine("n1-standard-4")}], WORKSTATION) == []


def test_larger_machine_leaves_memory_to_host() -> None:
    given = size.limits(machine("n1-standard-64"), LAPTOP, turn=0)
    assert given == Limits(cpus=None, memory=14 * GB, shared_memory=7 * GB)


def test_machine_type_shortfall_is_warned_about_once() -> None:
    pools = [{"machineSpec": machine("n1-standard-64")}, {}, {"machineSpec": machine("n1-standard-64")}]
    assert size.warnings(pools, LAPTOP) == [
        "n1-standard-64 has 64 vCPUs and 240 GB of memory; this machine gives a replica 2 and 14 GB."
    ]


def test_all_processors_of_host_need_no_limit() -> None:
    assert size.limits(machine("n1-standard-16"), WORKSTATION, turn=0).cpus is None


def test_without_machine_type_pool_gets_host() -> None:
    assert size.limits({}, LAPTOP, turn=0) == Limits(memory=14 * GB, shared_memory=7 * GB)
    assert size.warnings([{}], LAPTOP) == []


def test_kernel_without_limits_causes_warning() -> None:
    rootless = Host(cpus=16, memory=64 * GB, can_limit_cpus=False, can_limit_memory=False)
    assert size.limits(machine("n1-standard-4"), rootless, turn=0) == Limits(shared_memory=15 * GB // 2)
    (line,) = size.warnings([{"machineSpec": machine("n1-standard-4")}], rootless)
    assert "cannot limit memory" in line


def test_parallel_replicas_take_gpus_in_circle() -> None:
    given = [size.limits(machine("n1-standard-4", gpus=2), WORKSTATION, turn).gpus for turn in range(3)]
    assert given == [("0", "1"), ("2", "0"), ("1", "2")]


@pytest.mark.parametrize(
    ("host", "gpus", "said"),
    [
        (LAPTOP, (), "NVIDIA_TESLA_T4: 4 asked for; Docker on this machine gives a replica none."),
        (WORKSTATION, ("0", "1", "2"), "NVIDIA_TESLA_T4: 4 asked for; Docker on this machine gives a replica only 3."),
    ],
)
def test_missing_gpus_are_warned_about(host: Host, gpus: tuple[str, ...], said: str) -> None:
    spec = machine("n1-highcpu-16", gpus=4)
    assert size.limits(spec, host, turn=0).gpus == gpus
    assert said in size.warnings([{"machineSpec": spec}], host)


@pytest.mark.parametrize("name", ["cloud-tpu", "ct5lp-hightpu-4t", "tpu7x-standard-4t"])
def test_tpu_is_always_reported_missing(name: str) -> None:
    spec = {"machineType": name, "acceleratorType": "TPU_V3", "acceleratorCount": 8}
    assert size.limits(spec, WORKSTATION, turn=0).gpus == ()
    assert f"{name}: this machine has no TPU; the replica runs without one." in size.warnings(
        [{"machineSpec": spec}], WORKSTATION
    )


INFO = {"NCPU": 4, "MemTotal": 1 << 34, "CpuCfsQuota": True, "MemoryLimit": True, "Runtimes": {"runc": {}}}


def test_host_has_docker_processors_and_memory() -> None:
    assert Host.parse(INFO, []) == Host(cpus=4, memory=1 << 34)


def test_unsupported_kernel_limits_are_recognized() -> None:
    found = Host.parse({**INFO, "CpuCfsQuota": False, "MemoryLimit": False}, [])
    assert not found.can_limit_cpus
    assert not found.can_limit_memory


def test_gpus_need_docker_nvidia_runtime() -> None:
    assert Host.parse(INFO, ["0", "1"]).gpus == ()
    assert Host.parse({**INFO, "Runtimes": {"runc": {}, "nvidia": {}}}, ["0", "1"]).gpus == ("0", "1")


def test_gpus_listed_by_cdi_count_once() -> None:
    names = ["nvidia.com/gpu=1", "nvidia.com/gpu=0", "nvidia.com/gpu=all", "nvidia.com/gpu=GPU-8a2c", "other.com/nic=0"]
    info = {**INFO, "DiscoveredDevices": [{"Source": "cdi", "ID": name} for name in names]}
    assert Host.parse(info, []).gpus == ("nvidia.com/gpu=0", "nvidia.com/gpu=1")
