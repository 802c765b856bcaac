"""The emulator's own methods: the replicas behind jobs of each kind, as `vertex-emulator shell` looks for them."""

import pytest

from tests.vertex_emulator.fakes import Emulator, Machine
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, pool, tuning_job_spec
from tests.vertex_emulator.scheduling.steps import submit, submit_study
from vertex_api.names import TRAINING_PIPELINE
from vertex_api.pipelines import TUNING_TASK
from vertex_api.schedules import NAME_LABEL
from vertex_emulator.api.emulator import EmulatorService
from vertex_emulator.api.faults import RequestFaults
from vertex_emulator.database.records import Replica
from vertex_emulator.errors import ApiError
from vertex_emulator.inside.permissions import Permissions


def service(emulator: Emulator) -> EmulatorService:
    database, data, wake = emulator.database, emulator.data, emulator.scheduler.wake
    faults, permissions = RequestFaults(database), Permissions(database, data.grants)
    return EmulatorService(database, emulator.machine, data, emulator.capacity, faults, wake, permissions)


def test_a_fault_of_no_known_job_says_so(emulator: Emulator) -> None:
    submit(emulator, {**custom_job_spec(), "displayName": "train-1"})
    inject = service(emulator).inject
    assert inject({"kind": "oom", "name": "trian-*"})["known"] == ["train-1"]
    assert [inject({"kind": "oom", "name": name})["known"] for name in ("train-*", "*")] == [[], []]


def test_faults_that_hit_nothing_are_named(emulator: Emulator) -> None:
    for name in ("nobody", "train-1"):
        service(emulator).inject({"kind": "oom", "name": name, "count": 2})
    submit(emulator, {**custom_job_spec(), "displayName": "train-1"})
    cleared = service(emulator).clear_faults()
    assert cleared == {"cleared": 2, "missed": [{"kind": "oom", "name": "nobody", "count": 2}]}


def containers(emulator: Emulator, job: str) -> list[tuple[int | None, str, bool]]:
    """Trial and task of each replica, and whether its container has a name."""
    emulator.run_ready_steps()
    replicas = service(emulator).replicas(job)["replicas"]
    for each in replicas:
        assert each["container"] in (None, f"container-{each['job']}-{each['task']}-0")
    return [(each["trial"], each["task"], each["container"] is not None) for each in replicas]


def test_only_running_replicas_have_containers(emulator: Emulator, machine: Machine) -> None:
    job = submit(emulator, custom_job_spec(pool(), pool()))
    assert service(emulator).replicas(job)["state"] == "JOB_STATE_PENDING"
    assert containers(emulator, job) == [(None, "workerpool0-0", True), (None, "workerpool1-0", True)]
    machine.end(job, Replica(1, 0))
    assert containers(emulator, job) == [(None, "workerpool0-0", True), (None, "workerpool1-0", False)]


def test_studies_show_replicas_of_running_trials(emulator: Emulator, machine: Machine) -> None:
    study = submit_study(emulator, trials=3, parallel=2)
    assert containers(emulator, study) == [(1, "workerpool0-0", True), (2, "workerpool0-0", True)]
    ended = machine.finish_one()
    assert ended is not None
    emulator.queue.add(ended)
    assert containers(emulator, study)[0][0] == 2


def test_pipelines_show_replicas_of_their_jobs(emulator: Emulator) -> None:
    task = {key: value for key, value in tuning_job_spec().items() if key != "displayName"}
    body = {"displayName": "p", "trainingTaskDefinition": TUNING_TASK, "trainingTaskInputs": task}
    pipeline = str(emulator.jobs.create(TRAINING_PIPELINE, LOCATION, body)["name"]).rpartition("/")[2]
    assert containers(emulator, pipeline) == [(1, "workerpool0-0", True), (2, "workerpool0-0", True)]


def test_unknown_replicas_are_an_error(emulator: Emulator, machine: Machine) -> None:
    job = submit(emulator)
    machine.is_down = True
    for job_id, status in ((job, "UNAVAILABLE"), ("99", "NOT_FOUND")):
        with pytest.raises(ApiError) as raised:
            service(emulator).replicas(job_id)
        assert raised.value.status == status


def test_a_name_means_its_newest_job(emulator: Emulator) -> None:
    def created(name: str, label: str = "") -> str:
        labels = {"labels": {NAME_LABEL: label}} if label else {}
        return submit(emulator, {**custom_job_spec(), "displayName": name, **labels})

    def found(reference: str) -> str:
        return str(service(emulator).job(reference)["name"]).rpartition("/")[2]

    older, newer, other = created("digits"), created("digits"), created("digits 2")
    assert (found("digits"), found("digits 2"), found(older)) == (newer, other, older)
    assert found(str(service(emulator).job(older)["name"])) == older
    by_schedule, slashed = created("train-2026-11-26", label="train"), created("team/digits")
    assert (found("train"), found("team/digits")) == (by_schedule, slashed)
    numbered = created(older)
    assert found(older) == older and found(numbered) == numbered
    task = {key: value for key, value in tuning_job_spec().items() if key != "displayName"}
    body = {"displayName": "p", "trainingTaskDefinition": TUNING_TASK, "trainingTaskInputs": task}
    created_pipeline = emulator.jobs.create(TRAINING_PIPELINE, LOCATION, {**body, "labels": {NAME_LABEL: "whole"}})
    emulator.run_ready_steps()
    assert found("whole") == found("p") == str(created_pipeline["name"]).rpartition("/")[2]
    study = submit_study(emulator, displayName="digits")
    with pytest.raises(ApiError) as raised:
        found("digits")
    kinds = f"customJobs/{newer}, hyperparameterTuningJobs/{study}"
    assert str(raised.value) == f'jobs of several kinds are called "digits": {kinds}; give one of these ids'
    with pytest.raises(ApiError, match=r"There is no job dig here\. One that was deleted, replaced or pruned is gone"):
        found("dig")


def strike(emulator: Emulator, job: str, kind: str) -> None:
    emulator.run_ready_steps()
    service(emulator).strike(job, {"kind": kind})
    for _ in range(2):  # as Docker says that the container has ended
        emulator.run_ready_steps()
        emulator.queue.add(job)


@pytest.mark.parametrize(
    ("kind", "strategy", "state", "attempt"),
    [
        ("restart", {}, "JOB_STATE_RUNNING", 1),
        ("preempt", {"strategy": "SPOT"}, "JOB_STATE_RUNNING", 1),
        ("preempt", {}, "JOB_STATE_FAILED", 0),
        ("oom", {}, "JOB_STATE_FAILED", 0),
    ],
)
def test_a_running_job_is_struck(
    emulator: Emulator,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    strategy: dict[str, str],
    state: str,
    attempt: int,
) -> None:
    monkeypatch.setattr("vertex_emulator.api.emulator.now_ns", machine.clock.now_ns)
    job = submit(emulator, custom_job_spec(scheduling=strategy))
    strike(emulator, job, kind)
    found = emulator.job(job)
    assert (found.state, found.current_replicas[0].attempt) == (state, attempt)
    if kind == "oom":
        assert found.ending is not None and "low on memory" in found.ending.message


def test_only_what_runs_is_struck(emulator: Emulator) -> None:
    job = submit(emulator)
    with pytest.raises(ApiError, match="no custom job or pipeline with a replica that runs"):
        service(emulator).strike(job, {"kind": "oom"})
    with pytest.raises(ApiError, match="no custom job"):
        service(emulator).strike(submit_study(emulator), {"kind": "oom"})
    with pytest.raises(ApiError, match="must be preempt, oom, restart"):
        service(emulator).strike(job, {"kind": "stockout"})
