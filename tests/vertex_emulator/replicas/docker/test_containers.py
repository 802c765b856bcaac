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
from vertex_emulator.replicas.docker.docker_executor import DockerExecutor
from vertex_emulator.replicas.executor_protocol import ReplicaSpec

CHIEF = Replica(0, 0)


def spec(folder: Path, script: str, job: str) -> ReplicaSpec:
    return ReplicaSpec(
        job, CHIEF, IMAGE, ["sh", "-c", script], None, {}, "host-x", "host", {str(folder): "/out"}, ["host"]
    )


def test_an_ended_replica_is_not_started_again(executor: DockerExecutor, tmp_path: Path) -> None:
    replica = spec(tmp_path, "echo ran >> /out/runs", new_id())
    executor.start_replica_unless_started(replica)
    until(lambda: executor.get_replica_statuses(replica.job)[CHIEF].phase == "exited", "its end")
    executor.start_replica_unless_started(replica)
    assert executor.get_replica_statuses(replica.job)[CHIEF].phase == "exited"
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_a_created_replica_is_started(executor: DockerExecutor, tmp_path: Path) -> None:
    replica = spec(tmp_path, "echo ran >> /out/runs", new_id())
    executor.start_replica_unless_started(replica)
    until(lambda: executor.get_replica_statuses(replica.job)[CHIEF].phase == "exited", "its end")
    client = docker.APIClient()
    (found,) = client.containers(all=True, filters={"label": f"vertex-training.emulator.job={replica.job}"})
    labels, name = found["Labels"], found["Names"][0].lstrip("/")
    client.remove_container(name)
    client.create_container(IMAGE, ["sleep", "60"], name=name, labels=labels)
    assert executor.get_replica_statuses(replica.job)[CHIEF].phase == "created"
    executor.start_replica_unless_started(replica)
    assert executor.get_replica_statuses(replica.job)[CHIEF].phase == "running"
    executor.signal_replica_if_running(replica.job, CHIEF, "SIGKILL")
    until(lambda: executor.get_replica_statuses(replica.job)[CHIEF].exit_code == 137, "its death")
    client.close()


def test_signalling_and_removing_missing_replicas_succeed(executor: DockerExecutor) -> None:
    executor.signal_replica_if_running("1", CHIEF, "SIGKILL")
    executor.remove_containers_and_network("1")
    assert list(executor.iterate_log_lines_so_far("1", CHIEF)) == []
    assert executor.get_replica_statuses("1") == {}


def test_changes_name_the_job_whose_container_ended(executor: DockerExecutor, tmp_path: Path) -> None:
    replica = spec(tmp_path, "true", new_id())
    changes = executor.iterate_job_ids_of_container_exits(lambda: executor.start_replica_unless_started(replica))
    assert next(changes) == replica.job
    changes.close()  # type: ignore[attr-defined]


def test_removal_awaits_one_that_has_begun(
    executor: DockerExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An emulator that is killed while it removes a container leaves Docker at it, and a reset may follow at once."""
    replica = replace(spec(tmp_path, "sleep 600", new_id()), peers=["host", "other"])
    executor.start_replica_unless_started(replica)
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
        executor.remove_containers_and_network(replica.job)
    assert executor.list_ids_of_jobs_with_containers_or_network() == set()
    (removal,) = removals
    removal.join()
    client.close()


def test_a_container_that_ended_before_the_daemon_watched_is_named(
    executor: DockerExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon answers a request for events before it begins to collect them."""
    replica, later = (spec(tmp_path, "true", new_id()) for _ in range(2))
    request_events = docker.APIClient.events

    def end_replica_and_request_events(client: docker.APIClient, **options: Any) -> Any:
        executor.start_replica_unless_started(replica)
        until(lambda: executor.get_replica_statuses(replica.job)[CHIEF].phase == "exited", "its end")
        return request_events(client, **options)

    monkeypatch.setattr(docker.APIClient, "events", end_replica_and_request_events)
    changes = executor.iterate_job_ids_of_container_exits(lambda: executor.start_replica_unless_started(later))
    assert next(changes) == replica.job
    changes.close()  # type: ignore[attr-defined]
