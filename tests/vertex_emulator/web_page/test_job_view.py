"""What the page is given of one job, on a machine in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.fakes import Clock, Emulator, Machine, use_clock
from tests.vertex_emulator.jobs import IMAGE, LOCATION, custom_job_spec, pool, tuning_job_spec
from tests.vertex_emulator.scheduling.steps import reports
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_api.pipelines import CUSTOM_TASK
from vertex_emulator.database.records import RUNNING, Replica
from vertex_emulator.database.trials import Trials
from vertex_emulator.web_page.job_view import JobViewBuilder


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    clock = Clock()
    use_clock(clock, monkeypatch)
    emulator = Emulator(tmp_path / "data", Machine(clock))
    yield emulator
    emulator.database.close()


def create(emulator: Emulator, kind: Kind, spec: dict[str, Any]) -> str:
    return str(emulator.jobs.create(kind, LOCATION, spec)["name"]).rpartition("/")[2]


def view(emulator: Emulator, kind: Kind, job_id: str) -> dict[str, Any]:
    found = JobViewBuilder(emulator.database, emulator.machine, emulator.data.buckets).build_job_view_or_none(
        kind.collection, job_id
    )
    assert found is not None
    return found


def replicas(emulator: Emulator, job_id: str) -> list[tuple[Any, ...]]:
    shown = view(emulator, CUSTOM_JOB, job_id)["replicas"]
    return [(found["task"], found["state"], found["exitCode"], found["attempt"]) for found in shown]


def test_replicas_are_shown_from_queue_to_exit_code(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec(pool(), pool(replicas=1)))
    assert replicas(emulator, job) == [("workerpool0-0", "PENDING", None, 1), ("workerpool1-0", "PENDING", None, 1)]
    emulator.run(until=lambda found: found.job(job).state == RUNNING)
    assert {state for _, state, _, _ in replicas(emulator, job)} == {"RUNNING"}
    emulator.machine.end(job, Replica(1, 0), 0)
    assert [state for _, state, _, _ in replicas(emulator, job)] == ["RUNNING", "SUCCEEDED"]
    emulator.machine.end(job, Replica(0, 0), 3)
    emulator.queue.add(job)
    emulator.run()
    assert replicas(emulator, job) == [("workerpool0-0", "FAILED", 3, 1), ("workerpool1-0", "SUCCEEDED", 0, 1)]
    assert view(emulator, CUSTOM_JOB, job)["replicas"][0]["image"] == IMAGE


def test_replica_of_ended_job_is_shown_not_started(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec({**pool(), "containerSpec": {"imageUri": "absent:1"}}))
    emulator.run()
    assert replicas(emulator, job) == [("workerpool0-0", "NOT_STARTED", None, 1)]


def test_a_job_is_shown_while_docker_is_down(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec())
    emulator.machine.is_down = True
    assert replicas(emulator, job) == [("workerpool0-0", "PENDING", None, 1)]


def test_output_folders_are_shown_with_local_paths(emulator: Emulator) -> None:
    spec = custom_job_spec(baseOutputDirectory={"outputUriPrefix": "gs://bucket/run"})
    outputs = view(emulator, CUSTOM_JOB, create(emulator, CUSTOM_JOB, spec))["outputs"]
    assert [found["uri"] for found in outputs[:2]] == ["gs://bucket/run", "gs://bucket/run/model/"]
    assert outputs[1]["label"] == "AIP_MODEL_DIR"
    assert outputs[1]["path"] == str(emulator.data.buckets / "bucket/run/model")


def test_trial_job_names_its_study_and_shares_log(emulator: Emulator) -> None:
    study = create(emulator, HYPERPARAMETER_TUNING_JOB, tuning_job_spec())
    emulator.run_ready_steps()
    shown = view(emulator, HYPERPARAMETER_TUNING_JOB, study)
    assert "trials" not in shown["job"]
    trial = view(emulator, CUSTOM_JOB, shown["study"]["trials"][0]["job"])
    assert trial["parent"] == {"collection": "hyperparameterTuningJobs", "id": study, "trial": 1}
    assert trial["log"] == {"job": study, "trial": 1, "tasks": ["service", "workerpool0-0"]}


def test_measurements_of_ended_trials_are_read_once(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator.machine.program = reports
    study = create(emulator, HYPERPARAMETER_TUNING_JOB, tuning_job_spec(trials=3, parallel=1))
    views = JobViewBuilder(emulator.database, emulator.machine, emulator.data.buckets)

    def curves() -> list[Any]:
        shown = views.build_job_view_or_none(HYPERPARAMETER_TUNING_JOB.collection, study)
        assert shown is not None
        return [trial["curve"]["values"]["acc"] for trial in shown["study"]["trials"]]

    emulator.run_ready_steps()
    assert curves() == [[]]  # it runs
    emulator.run()
    assert curves() == [[0.5], [0.5], [0.5]]
    monkeypatch.delattr(Trials, "measurements")
    assert curves() == [[0.5], [0.5], [0.5]]


def test_pipeline_links_to_job_of_its_task(emulator: Emulator) -> None:
    inputs = {"workerPoolSpecs": [pool()]}
    spec = {"displayName": "p", "trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": inputs}
    pipeline = create(emulator, TRAINING_PIPELINE, spec)
    assert "task" not in view(emulator, TRAINING_PIPELINE, pipeline)
    emulator.run()
    shown = view(emulator, TRAINING_PIPELINE, pipeline)
    assert shown["job"]["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert (shown["task"]["collection"], shown["task"]["model"]) == ("customJobs", None)
    assert view(emulator, CUSTOM_JOB, shown["task"]["id"])["job"]["state"] == "JOB_STATE_SUCCEEDED"


def test_an_id_under_another_kind_is_no_job(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec())
    views = JobViewBuilder(emulator.database, emulator.machine, emulator.data.buckets)
    for collection in ("hyperparameterTuningJobs", "models", ""):
        assert views.build_job_view_or_none(collection, job) is None
