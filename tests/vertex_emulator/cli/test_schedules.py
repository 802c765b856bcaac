"""`vertex-emulator schedules` against a real emulator."""

import json
from typing import Any

import pytest

from tests.vertex_emulator.running import PARENT, RunningEmulator, command, custom_job, pool
from vertex_emulator.cli.emulator import find_schedule
from vertex_emulator.errors import EmulatorError

IDS = ("team_dev_nightly", "team_local_nightly", "team_local_weekly")


def call(emulator: RunningEmulator, *arguments: str) -> str:
    done = command("schedules", *arguments, data=emulator.data)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_schedule_is_listed_fired_paused_and_resumed(own: RunningEmulator) -> None:
    assert call(own, "list") == "no schedules\n"
    own.call("PUT", "vertex_emulator/clock", {"time": "2026-11-22T00:00:00Z"})
    job = {"name": "train", "collection": "customJobs", "body": custom_job(pool("pass"), name="${run.id}")}
    for name in IDS[1:]:
        body = {"cron": "0 2 * * *", "timeZone": "Europe/Berlin", "jobs": [job], "paused": name.endswith("weekly")}
        own.call("PUT", f"vertex_emulator/{PARENT}/schedules/{name}", body)
    assert call(own, "list").splitlines() == [
        "SCHEDULE            CRON       TIME ZONE      NEXT                  LAST RUN",
        "team_local_nightly  0 2 * * *  Europe/Berlin  2026-11-22T01:00:00Z  none",
        "team_local_weekly   0 2 * * *  Europe/Berlin  paused                none",
    ]
    fired = call(own, "fire", "weekly")
    assert fired.startswith("fired team_local_weekly: run 2026-11-22T00-00-00-")
    listed = json.loads(call(own, "list", "--json"))
    assert [schedule["name"].rpartition("/")[2] for schedule in listed] == [*IDS[1:]]
    assert listed[1]["runs"][0]["runId"] in fired
    assert call(own, "pause", "team_local_nightly") == "paused team_local_nightly\n"
    status = command("status", data=own.data).stdout
    assert "schedules  0 active, 2 paused\nclock      of schedules: stands at 2026-11-22T00:00:00Z\n" in status
    assert call(own, "resume", "nightly") == "resumed team_local_nightly, next at 2026-11-22T01:00:00Z\n"
    unknown = command("schedules", "fire", "hourly", data=own.data)
    message = 'there is no schedule "hourly"; the schedules are team_local_nightly, team_local_weekly'
    assert (unknown.returncode, unknown.stderr) == (1, f"vertex-emulator: {message}\n")


def named(*ids: str, parent: str = PARENT) -> list[Any]:
    return [{"name": f"{parent}/schedules/{id_}"} for id_ in ids]


def test_a_schedule_has_short_names_where_they_are_unique() -> None:
    schedules = named(*IDS)
    assert find_schedule(schedules, "weekly") is schedules[2]
    assert find_schedule(schedules, "dev_nightly") is schedules[0]
    assert find_schedule(named("nightly", *IDS), "nightly") == named("nightly")[0]
    assert find_schedule(schedules, f"{PARENT}/schedules/team_local_nightly") is schedules[1]
    other = named("nightly", parent="projects/2/locations/us-central1")
    for known, name, message in [
        (schedules, "nightly", '"nightly" is more than one schedule: team_dev_nightly, team_local_nightly; write'),
        ([*named("nightly"), *other], "nightly", f"schedule: {PARENT}/schedules/nightly, projects/2/"),
        (schedules, "ightly", 'there is no schedule "ightly"; the schedules are team_dev_nightly,'),
        ([], "nightly", 'there is no schedule "nightly"; there are none'),
        (named(*map(str, range(12))), "x", "8, 9, and 2 more"),
    ]:
        with pytest.raises(EmulatorError) as refused:
            find_schedule(known, name)
        assert message in str(refused.value)


def test_help_shows_actions_and_examples(tmp_path: Any) -> None:
    helped = command("schedules", "--help", data=tmp_path).stdout
    assert all(action in helped for action in ("list", "fire", "pause", "resume"))
    assert "  vertex-emulator schedules fire nightly\n" in helped
    missing = command("schedules", "fire", data=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr.endswith("arguments are required: NAME\n")
