"""Runs of a schedule: their ids, and what is filled in when one starts."""

from datetime import UTC, datetime, timedelta, timezone

from vertex_api.schedules import (
    RUN_ID,
    RUN_ID_LENGTH,
    ScheduledJob,
    ScheduleRequest,
    fill_results,
    fill_run_id,
    new_run_id,
    result_references,
)

BODY = {
    "displayName": f"train-{RUN_ID}",
    "jobSpec": {
        "baseOutputDirectory": {"outputUriPrefix": f"gs://b/nightly/{RUN_ID}/train"},
        "workerPoolSpecs": [
            {"replicaCount": 1, "containerSpec": {"args": ["--lr=${jobs.t.a.bestTrial.parameters.lr}"]}}
        ],
    },
    "count": "${jobs.t.a.bestTrial.id}",
}


def test_a_run_id_has_the_time_in_utc() -> None:
    berlin = timezone(timedelta(hours=1))
    run_id = new_run_id(datetime(2026, 11, 22, 3, tzinfo=berlin), "1a2b3c4d-5e6f")
    assert run_id == "2026-11-22T02-00-00-1a2b3c4d"
    assert len(run_id) == RUN_ID_LENGTH
    assert new_run_id(datetime(2026, 11, 22, 2, tzinfo=UTC), "1a2b3c4d") == run_id


def test_a_run_id_is_filled_in_everywhere() -> None:
    filled = fill_run_id(BODY, "R")
    assert filled["displayName"] == "train-R"
    assert filled["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"] == "gs://b/nightly/R/train"
    assert RUN_ID in BODY["displayName"]


def test_results_are_looked_up_as_a_whole() -> None:
    assert result_references(BODY) == ["t.a.bestTrial.parameters.lr", "t.a.bestTrial.id"]
    filled = fill_results(BODY, {"t.a.bestTrial.parameters.lr": 0.5, "t.a.bestTrial.id": 7})
    assert filled["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--lr=0.5"]
    assert filled["count"] == 7
    assert fill_results(BODY, {}) == BODY


def test_a_request_as_json_lacks_its_id() -> None:
    request = ScheduleRequest("p-s-n", "0 2 * * *", "UTC", False, "skip", (ScheduledJob("a", "customJobs", {}),))
    assert request.to_json() == {
        "cron": "0 2 * * *",
        "timeZone": "UTC",
        "paused": False,
        "overlap": "skip",
        "jobs": [{"name": "a", "collection": "customJobs", "body": {}}],
    }
