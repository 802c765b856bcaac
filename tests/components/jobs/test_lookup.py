"""What a training pipeline came to: its own names, and what the job that it runs has found."""

from typing import Any

import pytest
from vertex_training.jobs.lookup import jobs

from tests.components.fakes import FakeClient
from tests.components.jobs.test_completion import LABELS, PARENT, SUCCEEDED, failure_of, trial, wait
from tests.vertex_api.jobs import edited, pipeline, tuning_pipeline
from vertex_api import errors
from vertex_api.job import job_results

TRAIN, SEARCH = f"{PARENT}/trainingPipelines/1", f"{PARENT}/trainingPipelines/2"
JOB, STUDY, MODEL = f"{PARENT}/customJobs/3", f"{PARENT}/hyperparameterTuningJobs/4", f"{PARENT}/models/5"
FOLDER = {"outputUriPrefix": "gs://b/out"}
RUNNING, DONE = "PIPELINE_STATE_RUNNING", "PIPELINE_STATE_SUCCEEDED"

pytestmark = pytest.mark.usefixtures("clock", "models")


def add_training(api: FakeClient, *states: str, **fields: Any) -> None:
    spec = edited(pipeline(), "trainingTaskInputs", "baseOutputDirectory", to=FOLDER)
    held = {"trainingTaskMetadata": {"backingCustomJob": JOB}, "labels": LABELS, "state": "PIPELINE_STATE_PENDING"}
    api.add(TRAIN, **{**spec, **held, **fields})
    api.coming[TRAIN] = list(states)


def add_search(api: FakeClient, *states: str, labels: dict[str, str] = LABELS) -> None:
    spec = edited(tuning_pipeline(), "trainingTaskInputs", "trialJobSpec", "baseOutputDirectory", to=FOLDER)
    held = {"trainingTaskMetadata": {"backingHyperparameterTuningJob": STUDY}, "labels": LABELS}
    api.add(SEARCH, **spec, **held, state="PIPELINE_STATE_PENDING")
    api.coming[SEARCH] = list(states)
    study = {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}]}
    found = {"studySpec": study, "trialJobSpec": {"baseOutputDirectory": FOLDER}, "maxTrialCount": 2}
    trials = [trial(1, value=0.5), trial(2, value=0.1)]
    api.add(STUDY, labels=labels, **found, trials=trials, state=SUCCEEDED)


def test_a_pipeline_has_job_model_and_folder(api: FakeClient) -> None:
    add_training(api, RUNNING, DONE, modelToUpload={"displayName": "digits", "name": MODEL})
    assert wait(digits=TRAIN) == {
        "digits": {"state": DONE, "backingJob": JOB, "model": MODEL, "modelDir": "gs://b/out/model/"}
    }


def test_a_new_pipeline_names_no_job_or_model(api: FakeClient) -> None:
    add_training(api, trainingTaskMetadata=None)
    (job,) = jobs(f"//local/{PARENT}", "team/dev", {"digits": TRAIN}).values()
    assert job_results(job) == {"state": "PIPELINE_STATE_PENDING", "modelDir": "gs://b/out/model/"}


def test_a_tuning_pipeline_s_trials_take_one_list(api: FakeClient) -> None:
    add_training(api, DONE)
    add_search(api, DONE)
    result = wait(digits=TRAIN, search=SEARCH)["search"]
    assert api.calls == ["list", "list", "log_lines"]
    assert (result["state"], result["backingJob"]) == (DONE, STUDY)
    assert result["bestTrial"]["id"] == "2"
    assert [row["id"] for row in result["trials"]] == ["1", "2"]
    assert result["modelDir"] == "gs://b/out/2/model/"


def test_without_tuning_no_further_call_is_made(api: FakeClient) -> None:
    add_training(api, DONE)
    wait(digits=TRAIN)
    assert api.calls == ["list"]


def test_an_unlabelled_search_is_read_by_name(api: FakeClient) -> None:
    add_search(api, DONE, labels={})
    assert wait(search=SEARCH)["search"]["bestTrial"]["id"] == "2"
    assert api.calls == ["list", "list", "get", "log_lines"]


def test_a_deleted_search_leaves_no_trials(api: FakeClient) -> None:
    add_search(api, DONE)
    del api.jobs[STUDY]
    result = wait(search=SEARCH)["search"]
    assert (result["state"], result["bestTrial"], result["trials"]) == (DONE, None, [])


def test_pipeline_progress_reads_like_job_progress(api: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    add_training(api, RUNNING, DONE)
    add_search(api, DONE)
    wait(digits=TRAIN, search=SEARCH)
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "digits: RUNNING",
        "digits: SUCCEEDED",
        "search: SUCCEEDED, 2 of 2 trials done, best loss 0.1 in trial 2",
    ]


def test_a_failed_pipeline_shows_its_job_s_log(api: FakeClient) -> None:
    add_training(api, "PIPELINE_STATE_FAILED", error={"code": 3, "message": "exited with 1"})
    api.logs[JOB] = ["ValueError: no data"]
    message = failure_of(digits=TRAIN)
    assert message.startswith("digits failed: exited with 1\n")
    assert "    ValueError: no data" in message


def test_a_pipeline_failed_without_job_is_reported(api: FakeClient) -> None:
    add_training(api, "PIPELINE_STATE_FAILED", trainingTaskMetadata=None, error={"message": "quota"})
    api.failing["log_lines"] = errors.NotFound("no such job")
    assert failure_of(digits=TRAIN).startswith("digits failed: quota\n")
