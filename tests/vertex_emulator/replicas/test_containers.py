"""What the emulator relies on in Docker, shown on the real one."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest
import requests

from tests.vertex_emulator.running import IMAGE, until
from vertex_emulator.database.records import Replica
from vertex_emulator.names import new_id
from vertex_emulator.replicas import containers
from vertex_emulator.replicas.containers import ContainerSettings, ReplicaStatus
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.replicas.mounts import Mount
from vertex_emulator.replicas.size import Limits
from vertex_emulator.replicas.spec import ReplicaSpec

CHIEF = Replica(0, 0)


def replica_spec(folder: Path, script: str, job: str) -> ReplicaSpec:
    return ReplicaSpec(
        job, CHIEF, IMAGE, ["sh", "-c", script], None, {}, "host-x", "host", [Mount(str(folder), "/out")], ["host"]
    )


def test_ended_replica_is_not_started_again(executor: Executor, tmp_path: Path) -> None:
    replica = replica_spec(tmp_path, "echo ran >> /out/runs", new_id())
    executor.start(replica)
    until(lambda: executor.statuses(replica.job)[CHIEF].phase == "exited", "its end")
    executor.start(replica)
    assert executor.statuses(replica.job)[CHIEF].phase == "exited"
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_created_replica_is_started(executor: Executor, tmp_path: Path) -> None:
    replica = replica_spec(tmp_path, "echo ran >> /out/runs", new_id())
    executor.start(replica)
    until(lambda: executor.statuses(replica.job)[CHIEF].phase == "exited", "its end")
    client = docker.APIClient()
    (found,) = client.containers(all=True, filters={"label": f"vertex-training.emulator.job={replica.job}"})
    labels, name = found["Labels"], found["Names"][0].lstrip("/")
    client.remove_container(name)
    client.create_container(IMAGE, ["sleep", "60"], name=name, labels=labels)
    assert executor.statuses(replica.job)[CHIEF].phase == "created"
    executor.start(replica)
    assert executor.statuses(replica.job)[CHIEF].phase == "running"
    executor.signal(replica.job, CHIEF, "SIGKILL")
    until(lambda: executor.statuses(replica.job)[CHIEF].exit_code == 137, "its death")
    client.close()


def test_signalling_and_removing_missing_replicas_succeed(executor: Executor) -> None:
    executor.signal("1", CHIEF, "SIGKILL")
    executor.remove("1")
    assert list(executor.read_log("1", CHIEF)) == []
    assert executor.statuses("1") == {}


def test_changes_name_job_whose_container_ended(executor: Executor, tmp_path: Path) -> None:
    replica = replica_spec(tmp_path, "true", new_id())
    changes = executor.watch(lambda: executor.start(replica))
    assert next(changes) == replica.job
    changes.close()  # type: ignore[attr-defined]


def test_removal_awaits_one_that_has_begun(executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An emulator that is killed while it removes a container leaves Docker at it, and a reset may follow at once."""
    replica = replace(replica_spec(tmp_path, "sleep 600", new_id()), peers=["host", "other"])
    executor.start(replica)
    client, removals = docker.APIClient(), list[threading.Timer]()
    remove = client.remove_container

    def begin_removal(_: docker.APIClient, container: str, **options: bool) -> None:
        removals.append(threading.Timer(1, remove, [container], options))
        removals[-1].start()
        reply = requests.Response()
        reply.status_code = 409
        raise docker.errors.APIError("removal of container is already in progress", reply)

    with monkeypatch.context() as patch:
        patch.setattr(docker.APIClient, "remove_container", begin_removal)
        executor.remove(replica.job)
    assert executor.job_ids() == set()
    (removal,) = removals
    removal.join()
    client.close()


def test_container_that_ended_before_daemon_watched_is_named(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon answers a request for events before it begins to collect them."""
    replica, later = (replica_spec(tmp_path, "true", new_id()) for _ in range(2))
    request_events = docker.APIClient.events

    def end_replica_and_request_events(client: docker.APIClient, **options: Any) -> Any:
        executor.start(replica)
        until(lambda: executor.statuses(replica.job)[CHIEF].phase == "exited", "its end")
        return request_events(client, **options)

    monkeypatch.setattr(docker.APIClient, "events", end_replica_and_request_events)
    changes = executor.watch(lambda: executor.start(later))
    assert next(changes) == replica.job
    changes.close()  # type: ignore[attr-defined]


MB = 1 << 20


def run(executor: Executor, script: str, resources: Limits) -> tuple[ReplicaStatus, list[str]]:
    """How a replica with limits ends, and what it wrote."""
    command = ["python3", "-c", script]
    spec = ReplicaSpec(new_id(), CHIEF, IMAGE, command, None, {}, "host-x", "host", [], ["host"], resources)
    executor.start(spec)
    until(lambda: executor.statuses(spec.job)[CHIEF].phase == "exited", "its end")
    return executor.statuses(spec.job)[CHIEF], [line.text for line in executor.read_log(spec.job, CHIEF)]


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


def test_containers_get_their_cpus_memory_and_shared_memory(executor: Executor) -> None:
    status, lines = run(executor, ASK, Limits(cpus=1, memory=256 * MB, shared_memory=96 * MB))
    assert status.exit_code == 0, lines
    assert lines == [str(256 * MB), "1.0", str(96 * MB)]


def test_exceeding_its_memory_ends_container_as_oom(
    executor: Executor,
) -> None:
    status, lines = run(executor, "x = b'x' * (1 << 28); print('alive')", Limits(memory=64 * MB))
    assert (status.exit_code, status.out_of_memory, lines) == (137, True, [])


def test_real_host_says_how_large_it_is(executor: Executor) -> None:
    host = executor.host()
    assert host.cpus >= 1
    assert host.memory > 1 << 30
    assert executor.host() is host


@pytest.mark.parametrize(
    ("gpus", "driver"), [(("0", "2"), "nvidia"), (("nvidia.com/gpu=0", "nvidia.com/gpu=1"), "cdi")]
)
def test_gpus_are_requested_by_name_from_their_driver(gpus: tuple[str, ...], driver: str) -> None:
    """No machine of ours has a GPU, so this looks at the body of the request."""
    client = docker.APIClient(version="1.41")
    body = client.create_host_config(**containers.limit_options(Limits(gpus=gpus)))
    client.close()
    (request,) = body["DeviceRequests"]
    assert (request["Driver"], request["DeviceIDs"], request["Capabilities"]) == (driver, list(gpus), [["gpu"]])
    assert request["Count"] == 0


def test_folder_is_mounted_at_each_place() -> None:
    mounts = [Mount("/a", "/x"), Mount("/a", "/y", read_only=True)]
    spec = ReplicaSpec("42", CHIEF, IMAGE, None, None, {}, "host-x", "host", mounts, ["host"])
    client = docker.APIClient(version="1.41")
    config = containers.host_config(client, spec, "bridge", {}, ContainerSettings())
    client.close()
    assert config["Binds"] == ["/a:/x:rw", "/a:/y:ro"]


def test_container_without_resources_has_no_limits() -> None:
    assert containers.limit_options(Limits()) == {}


@pytest.mark.parametrize(
    ("environment", "image_environment", "python_path"),
    [
        ({}, {}, "/startup"),
        ({}, {"PATH": "/bin", "PYTHONPATH": "/image=1"}, "/startup:/image=1"),
        ({"PYTHONPATH": "/own:/more"}, {"PYTHONPATH": "/image"}, "/startup:/own:/more"),
    ],
)
def test_python_path_keeps_container_or_image(
    environment: dict[str, str], image_environment: dict[str, str], python_path: str
) -> None:
    spec = leading_spec(environment, {"PYTHONPATH": "/startup"})
    assert containers.environment(spec, {IMAGE: image_environment}.__getitem__) == {"PYTHONPATH": python_path}


@pytest.mark.parametrize(
    ("environment", "image_environment", "options"),
    [
        ({}, {}, "-Da=1"),
        ({}, {"JAVA_TOOL_OPTIONS": "-Xmx1g"}, "-Da=1 -Xmx1g"),
        ({"JAVA_TOOL_OPTIONS": ""}, {}, "-Da=1"),
    ],
)
def test_java_options_of_the_image_count_last(
    environment: dict[str, str], image_environment: dict[str, str], options: str
) -> None:
    spec = leading_spec({"OWN": "1", **environment}, {"JAVA_TOOL_OPTIONS": "-Da=1"})
    found = containers.environment(spec, {IMAGE: image_environment}.__getitem__)
    assert found == {"OWN": "1", "JAVA_TOOL_OPTIONS": options}


def leading_spec(environment: dict[str, str], leading: dict[str, str]) -> ReplicaSpec:
    return ReplicaSpec("42", CHIEF, IMAGE, None, None, environment, "host-x", "host", [], ["host"], leading=leading)
