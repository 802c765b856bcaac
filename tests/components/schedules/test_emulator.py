"""EmulatorSchedule: what its provider sends, and what a refresh shows."""

from typing import Any

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.schedules import provider
from vertex_training.schedules.provider import EmulatorScheduleProvider, emulator_status

POOL = {"replicaCount": 1, "containerSpec": {"imageUri": "x"}}
BODY: dict[str, Any] = {"displayName": "a", "jobSpec": {"workerPoolSpecs": [POOL]}}
JOB = {"name": "train", "collection": "customJobs", "body": BODY}
PROPS: dict[str, Any] = {
    "parent": "//local/projects/p/locations/r",
    "scheduleId": "team_dev_nightly",
    "cron": "0 2 * * *",
    "timeZone": "UTC",
    "paused": False,
    "overlap": "skip",
    "jobs": [JOB],
}
PATH = "projects/p/locations/r/schedules/team_dev_nightly"


class Admin:
    """The admin resource of an emulator, as one answer."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = {"nextTimes": ["2026-11-23T02:00:00Z"], "runs": []}
        self.calls: list[tuple[str, str, Any]] = []

    def send(self, method: str, path: str, body: Any, error_prefix: str) -> dict[str, Any] | None:
        self.calls.append((method, path, body))
        return self.answer and {**(body or {}), **self.answer}


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Admin:
    admin = Admin()
    monkeypatch.setattr(provider, "request", admin.send)
    return admin


def test_create_and_update_put_the_schedule(admin: Admin) -> None:
    provider = EmulatorScheduleProvider()
    created = provider.create(PROPS)
    assert created.id == "team_dev_nightly"
    assert created.outs["status"] == {"nextTime": "2026-11-23T02:00:00Z"}
    updated = provider.update(created.id, created.outs, {**PROPS, "paused": True})
    assert updated.outs["status"] == {}
    bodies = [body for method, path, body in admin.calls if (method, path) == ("PUT", PATH)]
    assert [body["paused"] for body in bodies] == [False, True]
    assert bodies[0].keys() == {"cron", "timeZone", "paused", "overlap", "jobs"}


def test_numbers_of_the_engine_are_whole_again(admin: Admin) -> None:
    body = {**BODY, "jobSpec": {"workerPoolSpecs": [{**POOL, "replicaCount": 2.0}]}}
    EmulatorScheduleProvider().create({**PROPS, "jobs": [{**JOB, "body": body}]})
    ((_, _, sent),) = admin.calls
    assert repr(sent["jobs"][0]["body"]["jobSpec"]["workerPoolSpecs"][0]["replicaCount"]) == "2"


def test_a_refresh_shows_the_last_run_and_drift(admin: Admin) -> None:
    run = {"runId": "2026-11-22T02-00-00-1a2b3c4d", "state": "SUCCEEDED", "modelDirs": {"train": "gs://b/model/"}}
    admin.answer = {**PROPS, "cron": "0 3 * * *", "nextTimes": ["2026-11-23T03:00:00Z"], "runs": [{**run, "jobs": {}}]}
    read = EmulatorScheduleProvider().read("team_dev_nightly", {**PROPS, "status": {}})
    assert read.inputs == {**PROPS, "cron": "0 3 * * *"}
    assert read.outs["status"] == {"nextTime": "2026-11-23T03:00:00Z", "lastRun": run}


def test_a_schedule_that_is_gone_leaves_the_state(admin: Admin) -> None:
    admin.answer = None
    assert EmulatorScheduleProvider().read("team_dev_nightly", PROPS).id is None
    EmulatorScheduleProvider().delete("team_dev_nightly", PROPS)
    assert [method for method, _, _ in admin.calls] == ["GET", "DELETE"]
    with pytest.raises(SubmitFailed, match="team_dev_nightly: not scheduled: this emulator has no schedules"):
        EmulatorScheduleProvider().create(PROPS)


def test_a_paused_schedule_has_no_next_time() -> None:
    assert emulator_status({"paused": True, "nextTimes": ["2026-11-23T02:00:00Z"]}) == {}
