"""Limits and PYTHONPATH of containers: the bodies of requests, and what the real Docker makes of them."""

import docker
import pytest

from tests.vertex_emulator.running import IMAGE, until
from vertex_emulator.database.records import Replica
from vertex_emulator.names import new_id
from vertex_emulator.replicas.docker.container_options import build_environment_with_python_path, build_limit_options
from vertex_emulator.replicas.docker.docker_executor import DockerExecutor
from vertex_emulator.replicas.executor_protocol import ReplicaSpec, ReplicaStatus, ResourceLimits

CHIEF = Replica(0, 0)
MB = 1 << 20


def run(executor: DockerExecutor, script: str, resources: ResourceLimits) -> tuple[ReplicaStatus, list[str]]:
    """How a replica with limits ends, and what it wrote."""
    command = ["python3", "-c", script]
    spec = ReplicaSpec(new_id(), CHIEF, IMAGE, command, None, {}, "host-x", "host", {}, ["host"], resources)
    executor.start_replica_unless_started(spec)
    until(lambda: executor.get_replica_statuses(spec.job)[CHIEF].phase == "exited", "its end")
    return executor.get_replica_statuses(spec.job)[CHIEF], [
        line.text for line in executor.iterate_log_lines_so_far(spec.job, CHIEF)
    ]


# The same questions for the two versions of control groups.
ASK = """
import os
def read(*paths):
    return next(open(path).read().split() for path in paths if os.path.exists(path))
cgroup = "/sys/fs/cgroup/"
print(read(cgroup + "memory.max", cgroup + "memory/memory.limit_in_bytes")[0])
quota = read(cgroup + "cpu.max", cgroup + "cpu/cpu.cfs_quota_us")[0]
period = read(cgroup + "cpu.max", cgroup + "cpu/cpu.cfs_period_us")[-1]
print(int(quota) / int(period))
found = os.statvfs("/dev/shm")
print(found.f_blocks * found.f_frsize)
"""


def test_containers_get_their_cpus_memory_and_shared_memory(executor: DockerExecutor) -> None:
    status, lines = run(executor, ASK, ResourceLimits(cpus=1, memory=256 * MB, shared_memory=96 * MB))
    assert status.exit_code == 0, lines
    assert lines == [str(256 * MB), "1.0", str(96 * MB)]


def test_exceeding_its_memory_ends_a_container_as_oom(
    executor: DockerExecutor,
) -> None:
    status, lines = run(executor, "x = b'x' * (1 << 28); print('alive')", ResourceLimits(memory=64 * MB))
    assert (status.exit_code, status.out_of_memory, lines) == (137, True, [])


def test_the_real_host_says_how_large_it_is(executor: DockerExecutor) -> None:
    host = executor.get_host_resources()
    assert host.cpus >= 1
    assert host.memory > 1 << 30
    assert executor.get_host_resources() is host


@pytest.mark.parametrize(
    ("gpus", "driver"), [(("0", "2"), "nvidia"), (("nvidia.com/gpu=0", "nvidia.com/gpu=1"), "cdi")]
)
def test_gpus_are_requested_by_name_from_their_driver(gpus: tuple[str, ...], driver: str) -> None:
    """No machine of ours has a GPU, so this looks at the body of the request."""
    client = docker.APIClient(version="1.41")
    body = client.create_host_config(**build_limit_options(ResourceLimits(gpus=gpus)))
    client.close()
    (request,) = body["DeviceRequests"]
    assert (request["Driver"], request["DeviceIDs"], request["Capabilities"]) == (driver, list(gpus), [["gpu"]])
    assert request["Count"] == 0


def test_a_container_without_resources_has_no_limits() -> None:
    assert build_limit_options(ResourceLimits()) == {}


@pytest.mark.parametrize(
    ("environment", "image_environment", "python_path"),
    [
        ({}, None, "/startup"),
        ({}, ["PATH=/bin", "PYTHONPATH=/image=1"], "/startup:/image=1"),
        ({"PYTHONPATH": "/own:/more"}, ["PYTHONPATH=/image"], "/startup:/own:/more"),
    ],
)
def test_python_path_keeps_the_container_s_or_image_s(
    environment: dict[str, str], image_environment: list[str] | None, python_path: str
) -> None:
    spec = ReplicaSpec(
        "42", CHIEF, IMAGE, None, None, environment, "host-x", "host", {}, ["host"], python_path="/startup"
    )
    assert build_environment_with_python_path(spec, {"Env": image_environment}) == {"PYTHONPATH": python_path}
