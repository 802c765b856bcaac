"""ScheduleStatus: the last run among all jobs of a schedule, and when it runs next."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from vertex_training.runtime import engine, holders
from vertex_training.schedules.provider import (
    ScheduleStatusProvider,
    execution_status,
    last_run,
    next_time,
    run_status,
)

from tests.blocks import taken
from tests.components.fakes import FakeClient
from vertex_api.errors import Unavailable

NOW = datetime(2026, 10, 23, 12, tzinfo=UTC)
FIRST, LAST = "2026-11-21T02-00-00-1a2b3c4d", "2026-11-22T02-00-00-00000000"
PARENT = "projects/p/locations/us-central1"
PROPS: dict[str, Any] = {
    "parent": f"//local/{PARENT}",
    "scheduleId": "team_dev_nightly",
    "cron": "0 2 * * *",
    "timeZone": "UTC",
    "paused": True,
    "jobs": [{"name": "a.b", "collection": "customJobs"}, {"name": "last", "collection": "trainingPipelines"}],
}


def job(run: str, name: str, state: str) -> dict[str, Any]:
    folder = {"outputUriPrefix": f"gs://b/nightly/{run}/{name}"}
    return {
        "displayName": f"{name}-{run}",
        "state": state,
        "labels": {"pulumi_schedule": "team_dev_nightly", "pulumi_name": name},
        "jobSpec": {
            "baseOutputDirectory": folder,
            "workerPoolSpecs": [{"replicaCount": 1, "containerSpec": {"imageUri": "x"}}],
        },
    }


def pipeline(run: str, state: str) -> dict[str, Any]:
    inputs = job(run, "last", state).pop("jobSpec")
    return {
        **{key: value for key, value in job(run, "last", state).items() if key != "jobSpec"},
        "trainingTaskDefinition": "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml",
        "trainingTaskInputs": inputs,
    }


def test_the_last_run_is_that_of_the_latest_time() -> None:
    jobs = [job(LAST, "a-b", "JOB_STATE_SUCCEEDED"), job(FIRST, "a-b", "JOB_STATE_FAILED")]
    assert last_run(jobs) == (LAST, jobs[:1])
    assert last_run([{**jobs[0], "displayName": "by hand"}]) == ("", [])
    assert last_run([]) == ("", [])


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (("JOB_STATE_SUCCEEDED", "PIPELINE_STATE_SUCCEEDED"), "SUCCEEDED"),
        (("JOB_STATE_SUCCEEDED", "PIPELINE_STATE_RUNNING"), "RUNNING"),
        (("JOB_STATE_SUCCEEDED",), "RUNNING"),
        (("JOB_STATE_PENDING",), "RUNNING"),
        (("JOB_STATE_FAILED",), "FAILED"),
        (("JOB_STATE_SUCCEEDED", "PIPELINE_STATE_CANCELLED"), "FAILED"),
    ],
)
def test_a_run_succeeds_once_all_its_jobs_have(states: tuple[str, ...], state: str) -> None:
    jobs = [job(LAST, "a-b", states[0]), *(pipeline(LAST, each) for each in states[1:])]
    found = run_status(LAST, jobs, ["a.b", "last"])
    assert (found["runId"], found["state"]) == (LAST, state)
    folders = {"a.b": f"gs://b/nightly/{LAST}/a-b/model/", "last": f"gs://b/nightly/{LAST}/last/model/"}
    succeeded = [name for name, each in zip(folders, states, strict=False) if each.endswith("SUCCEEDED")]
    assert found["modelDirs"] == {name: folders[name] for name in succeeded}


def execution(state: str, id_: str = LAST[-8:], **fields: Any) -> dict[str, Any]:
    name = f"{PARENT}/workflows/team_dev_nightly/executions/{id_}-1111-2222-3333-444444444444"
    return {"name": name, "state": state, "startTime": "2026-11-22T02:00:01Z", **fields}


@pytest.mark.parametrize(
    ("last", "second", "state"),
    [
        (execution("FAILED"), None, "FAILED"),
        (execution("CANCELLED"), None, "FAILED"),
        (execution("ACTIVE"), None, "RUNNING"),
        (execution("FAILED", "99999999"), None, "RUNNING"),
        (execution("SUCCEEDED"), "PIPELINE_STATE_RUNNING", "RUNNING"),
    ],
)
def test_an_incomplete_run_fails_with_its_execution(last: Any, second: str | None, state: str) -> None:
    jobs = [job(LAST, "a-b", "JOB_STATE_SUCCEEDED"), *([pipeline(LAST, second)] if second else [])]
    assert run_status(LAST, jobs, ["a.b", "last"], [last])["state"] == state


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"error": {"payload": '{"message": "train is not submitted"}'}}, {"error": "train is not submitted"}),
        (
            {"error": {"payload": '{"message": "code 403", "body": {"error": {"message": "denied"}}}'}},
            {"error": "code 403: denied"},
        ),
        (
            {"error": {"payload": '{"message": "no", "answer": {"message": "no account", "tags": ["AuthError"]}}'}},
            {"error": "no: no account"},
        ),
        ({"error": {"payload": '{"message": "no", "body": "<html>"}'}}, {"error": "no: <html>"}),
        ({"error": {"payload": "a text"}}, {"error": "a text"}),
        (
            {"result": '{"run": "r", "skipped": "the last run"}'},
            {"skipped": "the last run"},
        ),
        ({"result": '{"run": "r", "jobs": {}}'}, {}),
    ],
)
def test_an_execution_shows_how_it_ended(fields: Any, shown: Any) -> None:
    expected = {"state": "ENDED", "start": "2026-11-22T02:00:01Z", **shown}
    assert execution_status(execution("ENDED", **fields)) == expected


def test_a_night_without_a_job_is_seen(api: FakeClient) -> None:
    api.add(f"{PARENT}/customJobs/1", **job(FIRST, "a-b", "JOB_STATE_RUNNING"))
    refused = execution("FAILED", error={"payload": '{"message": "refused"}'})
    api.executions[f"{PARENT}/workflows/team_dev_nightly"] = [refused, execution("FAILED", FIRST[-8:])]
    status = ScheduleStatusProvider().create(PROPS).outs["status"]
    assert status["lastRun"] == {"runId": FIRST, "state": "FAILED", "modelDirs": {}}
    assert status["lastExecution"] == {"state": "FAILED", "start": "2026-11-22T02:00:01Z", "error": "refused"}


def test_a_refresh_lists_each_collection_once_by_label(api: FakeClient) -> None:
    for number, each in enumerate((job(FIRST, "a-b", "JOB_STATE_FAILED"), job(LAST, "a-b", "JOB_STATE_RUNNING"))):
        api.add(f"{PARENT}/customJobs/{number}", **each)
    provider = ScheduleStatusProvider()
    created = provider.create(PROPS)
    assert created.outs["status"] == {"lastRun": {"runId": LAST, "state": "RUNNING", "modelDirs": {}}}
    assert api.filters == ['labels.pulumi_schedule="team_dev_nightly"'] * 2
    api.jobs.clear()
    read = provider.read("team_dev_nightly", {**created.outs, "paused": False})
    assert read.outs["status"].keys() == {"nextTime"}
    assert read.outs["status"]["nextTime"].endswith("T02:00:00Z")
    assert read.inputs == {**PROPS, "paused": False}


def test_an_api_that_does_not_answer_is_one_line(api: FakeClient) -> None:
    api.failing["list"] = Unavailable("try later")
    with pytest.raises(Exception, match="team_dev_nightly: its runs are not read: try later"):
        ScheduleStatusProvider().create(PROPS)


def test_a_schedule_that_moves_without_an_alias_is_refused(
    recorded: holders.State, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = "urn:pulumi:dev::team::vertex-training:index:Schedule$pulumi-python:dynamic/vertex-training:ScheduleStatus::n"
    recorded.ids["team_dev_nightly"] = [old]
    urns = [old, old.replace("::vertex", "::team:index:Squad$vertex")]
    monkeypatch.setattr(engine, "requested_urn", lambda: urns[0])
    provider = ScheduleStatusProvider()
    assert provider.check(PROPS, PROPS).failures == []
    assert provider.check({}, PROPS).failures == [], "--replace"
    urns.pop(0)
    (failure,) = provider.check({}, PROPS).failures
    assert failure.reason.startswith("team_dev_nightly: is Schedule::n in the state, and Google Cloud has its workflow")


def test_the_next_time_is_in_utc() -> None:
    assert next_time("0 2 * * *", "Europe/Berlin", False, NOW) == "2026-10-24T00:00:00Z"
    assert next_time("0 2 * * *", "Europe/Berlin", True, NOW) is None


def test_the_page_shows_a_status(api: FakeClient) -> None:
    (shown,) = taken("docs/schedules.md", "json")
    ((name, page),) = json.loads(shown).items()
    run, (declared,) = page["lastRun"]["runId"], page["lastRun"]["modelDirs"]
    found = job(run, declared, "JOB_STATE_SUCCEEDED")
    found["jobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": f"gs://team-dev/{name}/{run}/{declared}"}
    api.add(f"{PARENT}/customJobs/1", **found)
    ended = execution("SUCCEEDED", run[-8:], startTime="2026-11-22T01:00:00.123456Z")
    api.executions[f"{PARENT}/workflows/team_dev_nightly"] = [ended]
    jobs = [{"name": declared, "collection": "customJobs"}]
    status = ScheduleStatusProvider().create({**PROPS, "jobs": jobs}).outs["status"]
    time = next_time("0 2 * * *", "Europe/Berlin", False, datetime(2026, 11, 22, 12, tzinfo=UTC))
    assert {"nextTime": time, **status} == page
