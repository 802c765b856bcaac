from tests.vertex_emulator.jobs import custom_job, tuning_job
from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Trial
from vertex_emulator.resource_json import serialize_job


def test_int64_fields_are_strings_and_int32_fields_numbers() -> None:
    shown = serialize_job(custom_job())
    assert shown["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == "1"
    study = serialize_job(tuning_job())
    assert (study["maxTrialCount"], study["parallelTrialCount"]) == (3, 2)


def test_label_named_like_a_field_stays_string() -> None:
    spec = {"displayName": "x", "labels": {"replicaCount": "many"}, "jobSpec": {"workerPoolSpecs": [{}]}}
    assert serialize_job(custom_job(spec))["labels"] == {"replicaCount": "many"}


def test_times_are_rfc_3339_in_utc() -> None:
    shown = serialize_job(custom_job(created=1_700_000_000_123_456_789))
    assert shown["createTime"] == "2023-11-14T22:13:20.123456Z"
    assert "endTime" not in shown


def test_only_ended_unsuccessful_jobs_have_an_error() -> None:
    failure = Ending(FAILED, 3, "it broke", 5)
    assert serialize_job(custom_job(state=FAILED, ending=failure))["error"] == {"code": 3, "message": "it broke"}
    assert "error" not in serialize_job(custom_job(ending=failure))
    assert "error" not in serialize_job(custom_job(state=SUCCEEDED, ending=Ending(SUCCEEDED, 0, "", 5)))


def test_a_trial_shows_parameters_measurements_and_its_job() -> None:
    final = {"stepCount": 3, "elapsedDuration": "1.500000s", "metrics": [{"metricId": "acc", "value": 0.5}]}
    trial = Trial("7", 1, "SUCCEEDED", {"n": 3, "kind": "a"}, "99", 10**9, 2 * 10**9, (final,), final)
    shown = serialize_job(tuning_job(), [trial])["trials"][0]
    assert shown["id"] == "1"
    assert shown["parameters"] == [{"parameterId": "n", "value": 3}, {"parameterId": "kind", "value": "a"}]
    assert shown["finalMeasurement"]["stepCount"] == "3"
    assert shown["customJob"].endswith("/customJobs/99")
