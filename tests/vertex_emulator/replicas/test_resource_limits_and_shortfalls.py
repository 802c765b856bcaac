import pytest

from vertex_emulator.replicas.executor_protocol import HostResources, ResourceLimits
from vertex_emulator.replicas.resource_limits_and_shortfalls import compute_resource_limits, render_shortfall_warnings

GB = 1 << 30
WORKSTATION = HostResources(cpus=16, memory=64 * GB, gpus=("0", "1", "2"))
LAPTOP = HostResources(cpus=2, memory=16 * GB)


def machine(name: str, gpus: int = 0) -> dict[str, object]:
    """A MachineSpec."""
    return {"machineType": name, **({"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": gpus} if gpus else {})}


def test_a_smaller_machine_gets_its_own_size() -> None:
    given = compute_resource_limits(machine("n1-standard-4"), WORKSTATION, replica_index=0)
    assert given == ResourceLimits(cpus=4, memory=15 * GB, shared_memory=15 * GB // 2)
    assert render_shortfall_warnings([{"machineSpec": machine("n1-standard-4")}], WORKSTATION) == []


def test_a_larger_machine_leaves_memory_to_the_host() -> None:
    given = compute_resource_limits(machine("n1-standard-64"), LAPTOP, replica_index=0)
    assert given == ResourceLimits(cpus=None, memory=14 * GB, shared_memory=7 * GB)


def test_a_machine_type_shortfall_is_warned_about_once() -> None:
    pools = [{"machineSpec": machine("n1-standard-64")}, {}, {"machineSpec": machine("n1-standard-64")}]
    assert render_shortfall_warnings(pools, LAPTOP) == [
        "n1-standard-64 has 64 vCPUs and 240 GB of memory; this machine gives a replica 2 and 14 GB."
    ]


def test_all_processors_of_the_host_need_no_limit() -> None:
    assert compute_resource_limits(machine("n1-standard-16"), WORKSTATION, replica_index=0).cpus is None


def test_without_machine_type_a_pool_gets_the_host() -> None:
    assert compute_resource_limits({}, LAPTOP, replica_index=0) == ResourceLimits(memory=14 * GB, shared_memory=7 * GB)
    assert render_shortfall_warnings([{}], LAPTOP) == []


def test_a_kernel_without_limits_causes_a_warning() -> None:
    rootless = HostResources(cpus=16, memory=64 * GB, can_limit_cpus=False, can_limit_memory=False)
    assert compute_resource_limits(machine("n1-standard-4"), rootless, replica_index=0) == ResourceLimits(
        shared_memory=15 * GB // 2
    )
    (line,) = render_shortfall_warnings([{"machineSpec": machine("n1-standard-4")}], rootless)
    assert "cannot limit memory" in line


def test_parallel_replicas_take_gpus_in_a_circle() -> None:
    given = [compute_resource_limits(machine("n1-standard-4", gpus=2), WORKSTATION, turn).gpus for turn in range(3)]
    assert given == [("0", "1"), ("2", "0"), ("1", "2")]


@pytest.mark.parametrize(
    ("host", "gpus", "said"),
    [
        (LAPTOP, (), "NVIDIA_TESLA_T4: 4 asked for; Docker on this machine gives a replica none."),
        (WORKSTATION, ("0", "1", "2"), "NVIDIA_TESLA_T4: 4 asked for; Docker on this machine gives a replica only 3."),
    ],
)
def test_missing_gpus_are_warned_about(host: HostResources, gpus: tuple[str, ...], said: str) -> None:
    spec = machine("n1-highcpu-16", gpus=4)
    assert compute_resource_limits(spec, host, replica_index=0).gpus == gpus
    assert said in render_shortfall_warnings([{"machineSpec": spec}], host)


@pytest.mark.parametrize("name", ["cloud-tpu", "ct5lp-hightpu-4t", "tpu7x-standard-4t"])
def test_a_tpu_is_always_reported_missing(name: str) -> None:
    spec = {"machineType": name, "acceleratorType": "TPU_V3", "acceleratorCount": 8}
    assert compute_resource_limits(spec, WORKSTATION, replica_index=0).gpus == ()
    assert f"{name}: this machine has no TPU; the replica runs without one." in render_shortfall_warnings(
        [{"machineSpec": spec}], WORKSTATION
    )
