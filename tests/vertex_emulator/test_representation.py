from dataclasses import replace
from typing import Any

import pytest

from tests.vertex_emulator.jobs import LOCATION, custom_job, tuning_job, tuning_job_spec
from vertex_api.names import TRAINING_PIPELINE
from vertex_api.pipelines import TUNING_TASK
from vertex_emulator.database.records import CANCELLED, FAILED, SUCCEEDED, Ending, PipelineProgress, Trial
from vertex_emulator.representation import job_json, pipeline_json

SECOND = 10**9


def test_int64_is_text_and_int32_a_number() -> None:
    shown = job_json(custom_job())
    assert shown["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == "1"
    study = job_json(tuning_job())
    assert (study["maxTrialCount"], study["parallelTrialCount"]) == (3, 2)


def test_label_named_like_a_field_stays_string() -> None:
    spec = {"displayName": "x", "labels": {"replicaCount": "many"}, "jobSpec": {"workerPoolSpecs": [{}]}}
    assert job_json(custom_job(spec))["labels"] == {"replicaCount": "many"}


def test_times_are_rfc_3339_in_utc() -> None:
    shown = job_json(custom_job(created=1_700_000_000_123_456_789))
    assert shown["createTime"] == "2023-11-14T22:13:20.123456Z"
    assert "endTime" not in shown


def test_only_ended_unsuccessful_jobs_have_an_error() -> None:
    failure = Ending(FAILED, 3, "it broke", 5)
    assert job_json(custom_job(state=FAILED, ending=failure))["error"] == {"code": 3, "message": "it broke"}
    assert "error" not in job_json(custom_job(ending=failure))
    assert "error" not in job_json(custom_job(state=SUCCEEDED, ending=Ending(SUCCEEDED, 0, "", 5)))


def test_trials_show_parameters_and_result_only() -> None:
    final = {"stepCount": 3, "elapsedDuration": "1.500000s", "metrics": [{"metricId": "acc", "value": 0.5}]}
    trial = Trial("7", 1, "SUCCEEDED", {"n": 3, "kind": "a"}, "99", 10**9, 2 * 10**9, (final,), final)
    shown = job_json(tuning_job(), [trial])["trials"][0]
    assert shown["id"] == "1"
    assert shown["parameters"] == [{"parameterId": "n", "value": 3}, {"parameterId": "kind", "value": "a"}]
    assert shown["finalMeasurement"]["stepCount"] == "3"
    assert shown.keys() == {"id", "state", "parameters", "finalMeasurement", "startTime", "endTime"}
    assert shown["finalMeasurement"].keys() == {"stepCount", "metrics"}


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        ({"started": None}, ["01.250000Z", None, None, "03.500000Z"]),
        ({"started": 2 * SECOND + 1}, ["01.250000Z", "03Z", None, "03.500000Z"]),
        (
            {"started": 2 * SECOND, "ended": 3 * SECOND + 1, "state": SUCCEEDED},
            ["01.250000Z", "02Z", "04Z", "04Z"],
        ),
        (
            {"started": 1_300_000_000, "ended": 1_400_000_000, "state": FAILED},
            ["01.250000Z", "02Z", "02Z", "03.500000Z"],
        ),
        (
            {"started": 2_300_000_000, "ended": 2_400_000_000, "state": CANCELLED},
            ["01.250000Z", "02.400000Z", "02.400000Z", "03.500000Z"],
        ),
        (
            {"started": None, "ended": 2_400_000_000, "state": CANCELLED},
            ["01.250000Z", "02.400000Z", "02.400000Z", "03.500000Z"],
        ),
        ({"started": None, "ended": 2_400_000_000, "state": FAILED}, ["01.250000Z", None, "03Z", "03.500000Z"]),
    ],
)
def test_jobs_start_and_end_at_whole_seconds(fields: dict[str, Any], times: list[str | None]) -> None:
    job = custom_job(**{"created": 1_250_000_000, "updated": 3_500_000_000, **fields})
    shown = job_json(job)
    found = [shown.get(name) for name in ("createTime", "startTime", "endTime", "updateTime")]
    assert found == [None if time is None else f"1970-01-01T00:00:{time}" for time in times]
    known = [time for time in (job.created, job.started, job.ended) if time]
    assert known == sorted(known)


def test_pipelines_name_the_best_trials_job() -> None:
    inputs = {**tuning_job_spec(), "displayName": ""}
    spec = {"displayName": "p", "trainingTaskDefinition": TUNING_TASK, "trainingTaskInputs": inputs}
    pipeline = replace(custom_job(), kind=TRAINING_PIPELINE, spec=spec)
    parent = LOCATION.name
    assert pipeline_json(pipeline, PipelineProgress("8", None, "99"))["trainingTaskMetadata"] == {
        "backingHyperparameterTuningJob": f"{parent}/hyperparameterTuningJobs/8",
        "bestTrialBackingCustomJob": f"{parent}/customJobs/99",
    }
