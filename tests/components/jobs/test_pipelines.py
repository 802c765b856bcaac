"""The provider of training pipelines: one pipeline a declaration, and neither it nor its job is left behind."""

from typing import Any

import pytest
from vertex_training.jobs.provider import (
    TrainingPipelineProvider,
)

from tests.components.fakes import Clock, FakeClient
from tests.components.jobs.test_provider import PARENT, create, engine_s, inputs
from tests.vertex_api.jobs import edited, pipeline, tuning_job, tuning_pipeline
from vertex_api import errors

FIRST, BACKING = f"{PARENT}/trainingPipelines/1", f"{PARENT}/customJobs/2"
STUDY = f"{PARENT}/hyperparameterTuningJobs/3"
ARGS = ("trainingTaskInputs", "workerPoolSpecs", 0, "containerSpec", "args")

piped = TrainingPipelineProvider()


def submitted(api: FakeClient, state: str, **given: Any) -> dict[str, Any]:
    """A pipeline that has begun its job, as the service shows it."""
    create(piped, **{"spec": pipeline(), **given})
    api.add(BACKING, state="JOB_STATE_SUCCEEDED")
    api.jobs[FIRST] |= {"state": state, "trainingTaskMetadata": {"backingCustomJob": BACKING}}
    api.calls.clear()
    return api.jobs[FIRST]


@pytest.mark.parametrize("spec", [pipeline(), tuning_pipeline()], ids=["custom", "tuning"])
def test_a_submitted_pipeline_is_read_without_drift(api: FakeClient, spec: Any) -> None:
    state = create(piped, spec=spec)
    (sent,) = api.sent
    assert {name: sent[name] for name in spec} == spec
    held = api.jobs[state["id"]]
    held |= {"state": "PIPELINE_STATE_SUCCEEDED", "startTime": "2026-01-31T12:00:00Z"}
    held.setdefault("modelToUpload", {})["name"] = f"{PARENT}/models/1"
    checked = piped.check({}, engine_s(inputs(spec))).inputs
    assert piped.read(state["id"], engine_s(checked)).inputs == checked


def test_other_spellings_and_added_fields_are_no_drift(api: FakeClient) -> None:
    held = submitted(api, "PIPELINE_STATE_RUNNING")
    held["trainingTaskInputs"] = {
        "worker_pool_specs": [
            {
                "machine_spec": {"machine_type": "n1-standard-4"},
                "replica_count": "1",
                "added_by_a_later_version": {"a": 1},
                "container_spec": {"image_uri": "trainer:1", "args": ["--epochs=3"]},
            }
        ]
    }
    assert piped.read(FIRST, inputs(pipeline())).inputs == inputs(pipeline())


def test_a_changed_task_is_read_as_drift(api: FakeClient) -> None:
    held = submitted(api, "PIPELINE_STATE_RUNNING")
    held["trainingTaskInputs"]["workerPoolSpecs"][0]["containerSpec"]["args"] = ["--epochs=99"]
    read = piped.read(FIRST, inputs(pipeline()))
    assert read.inputs == inputs(edited(pipeline(), *ARGS, to=["--epochs=99"]))


def test_secrets_are_sent_and_stored_as_inputs_only(api: FakeClient) -> None:
    spec = edited(pipeline(), *ARGS, to=["--token=${secrets.token}"])
    spec["modelToUpload"]["containerSpec"]["env"] = [{"name": "TOKEN", "value": "${secrets.token}"}]
    state = create(piped, spec=spec, secrets={"token": "hunter2"})
    (sent,) = api.sent
    assert sent["trainingTaskInputs"]["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--token=hunter2"]
    assert sent["modelToUpload"]["containerSpec"]["env"] == [{"name": "TOKEN", "value": "hunter2"}]
    read = piped.read(FIRST, {**inputs(spec, secrets={"token": "hunter2"}), "run": state["run"]})
    for found in (state, read.outs, read.inputs):
        assert found is not None
        assert found.pop("secrets") == {"token": "hunter2"}
        assert "hunter2" not in str(found)


@pytest.mark.parametrize(("state", "is_adopted"), [("RUNNING", True), ("SUCCEEDED", True), ("FAILED", False)])
def test_a_pipeline_is_adopted_like_a_job(api: FakeClient, state: str, is_adopted: bool) -> None:
    submitted(api, f"PIPELINE_STATE_{state}")
    create(piped, spec=pipeline())
    assert api.calls == ["list", "get" if is_adopted else "create"]


def test_a_pipeline_s_log_is_its_job_s(api: FakeClient) -> None:
    submitted(api, "PIPELINE_STATE_RUNNING")
    outs = piped.read(FIRST, inputs(pipeline())).outs
    assert outs is not None
    assert outs["run"]["logs"] == "vertex-emulator logs 2"
    assert outs["run"]["page"] == "http://127.0.0.1:1/jobs/trainingPipelines/1"


def test_a_refresh_shows_tuning_progress_once(api: FakeClient) -> None:
    held = submitted(api, "PIPELINE_STATE_RUNNING", spec=tuning_pipeline())
    held["trainingTaskMetadata"] = {"backingHyperparameterTuningJob": STUDY}
    given = inputs(tuning_pipeline())
    before = piped.read(FIRST, given).outs or {}
    assert "trials" not in before["run"] and api.calls == ["get", "get"]
    measured = {"finalMeasurement": {"metrics": [{"metricId": "accuracy", "value": 0.5}]}}
    api.add(
        STUDY, **tuning_job(), trials=[{"id": "1", "state": "SUCCEEDED", **measured}, {"id": "2", "state": "ACTIVE"}]
    )
    read = piped.read(FIRST, given).outs or {}
    best = {"id": "1", "state": "SUCCEEDED", "parameters": {}, "metrics": {"accuracy": 0.5}}
    assert read["run"] == {**before["run"], "trials": {"ended": 1, "of": 8}, "bestTrial": best}
    assert piped.read(FIRST, read).outs == read
    assert (piped.create({**given, "adopt": FIRST}).outs or {})["run"] == read["run"]


def test_a_refreshed_pipeline_took_the_time_of_its_trials(api: FakeClient) -> None:
    held = submitted(api, "PIPELINE_STATE_SUCCEEDED", spec=tuning_pipeline())
    held["trainingTaskMetadata"] = {"backingHyperparameterTuningJob": STUDY}
    held |= {"startTime": "2026-01-31T12:00:00Z", "endTime": "2026-01-31T14:00:00Z"}
    times = {"startTime": "2026-01-31T12:10:00Z", "endTime": "2026-01-31T13:10:00Z"}
    metrics = {"finalMeasurement": {"metrics": [{"metricId": "accuracy", "value": 0.5}]}}
    trials = [{"id": str(number), "state": "SUCCEEDED", **times, **metrics} for number in (1, 2)]
    api.add(STUDY, **tuning_job(), trials=trials)
    took = (piped.read(FIRST, inputs(tuning_pipeline())).outs or {})["run"]["took"]
    assert took.startswith("2026-01-31T14:00:00Z 7200 s, 7200 s of 2 trials on ")
    assert took.endswith("; accuracy 0.5")


def test_refreshing_a_pipeline_without_tuning_takes_one_call(api: FakeClient) -> None:
    submitted(api, "PIPELINE_STATE_RUNNING")
    piped.read(FIRST, inputs(pipeline()))
    assert api.calls == ["get"]


def test_a_running_pipeline_is_cancelled_then_deleted(api: FakeClient, clock: Clock) -> None:
    submitted(api, "PIPELINE_STATE_RUNNING")
    api.coming[FIRST] = [f"PIPELINE_STATE_{state}" for state in ("RUNNING", "CANCELLING", "CANCELLED")]
    piped.delete(FIRST, engine_s(inputs(pipeline())))
    assert api.calls == ["get", "cancel", "get", "get", "get", "delete", "delete"]
    assert api.jobs == {}


def test_a_pipeline_without_its_job_is_deleted(api: FakeClient) -> None:
    submitted(api, "PIPELINE_STATE_FAILED")
    del api.jobs[BACKING]
    piped.delete(FIRST, inputs(pipeline()))
    assert api.jobs == {}


@pytest.mark.parametrize("elsewhere", ["projects/other/locations/us-central1", PARENT.replace("central", "east")])
def test_a_job_of_another_project_or_region_stays(api: FakeClient, elsewhere: str) -> None:
    submitted(api, "PIPELINE_STATE_SUCCEEDED")
    other = api.add(BACKING.replace(PARENT, elsewhere), state="JOB_STATE_SUCCEEDED")["name"]
    api.jobs[FIRST]["trainingTaskMetadata"] = {"backingCustomJob": other}
    piped.delete(FIRST, inputs(pipeline()))
    assert [*api.jobs] == [BACKING, other]


def test_an_undeletable_job_does_not_block_its_pipeline(api: FakeClient) -> None:
    submitted(api, "PIPELINE_STATE_SUCCEEDED")

    def refuse_once(verb: str) -> None:
        refusal = errors.InvalidRequest("the job belongs to a pipeline")
        api.failing = {"delete": refusal} if verb == "delete" and "delete" not in api.calls[:-1] else {}

    api.before = refuse_once
    piped.delete(FIRST, inputs(pipeline()))
    assert list(api.jobs) == [BACKING]


def test_cancelling_a_pipeline_keeps_both_records(api: FakeClient, clock: Clock) -> None:
    submitted(api, "PIPELINE_STATE_RUNNING")
    api.coming[FIRST] = ["PIPELINE_STATE_RUNNING", "PIPELINE_STATE_CANCELLED"]
    piped.delete(FIRST, inputs(pipeline(), lifecycle={"onDelete": "cancel"}))
    assert api.calls == ["get", "cancel", "get"]
    assert list(api.jobs) == [FIRST, BACKING]
