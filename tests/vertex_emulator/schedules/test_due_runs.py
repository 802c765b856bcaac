"""Which times of a schedule have runs, and which are skipped."""

import logging

import pytest

from tests.vertex_emulator.jobs import LOCATION
from tests.vertex_emulator.schedules.scheduling_emulator import SchedulingEmulator, nights
from vertex_emulator.errors import ApiError
from vertex_emulator.times import parse_time


def test_an_overlapping_run_is_skipped_unless_allowed(emulator: SchedulingEmulator) -> None:
    emulator.put()
    emulator.put("allowing", overlap="allow")
    emulator.move_clock("2026-11-23T02:00:00Z")
    assert [state for _, state in emulator.runs()] == ["RUNNING", "SKIPPED"]
    skipped, under_way = emulator.get()["runs"]
    assert skipped["reason"] == f"the run {under_way['runId']} is still under way (overlap: skip)"
    emulator.finish_runs()
    assert emulator.runs("allowing") == nights(22, 23)


def test_times_missed_while_down_are_one_skipped_run(
    emulator: SchedulingEmulator, caplog: pytest.LogCaptureFixture
) -> None:
    emulator.put()
    emulator.put("paused", paused=True)
    emulator.let_clock_pass_while_down("2026-11-24T02:00:59Z")
    with caplog.at_level(logging.WARNING):
        emulator.finish_runs()
    assert emulator.runs() == [("2026-11-23T02:00:00Z", "SKIPPED"), *nights(24, 24)]  # the last one is not late
    reason = "missed 2 times from 2026-11-22T02:00:00Z to 2026-11-23T02:00:00Z: the emulator was not running"
    assert emulator.get()["runs"][1]["reason"] == reason
    assert caplog.messages == [f"the schedule nightly has {reason}"]
    emulator.let_clock_pass_while_down("2026-11-25T12:00:00Z")
    emulator.finish_runs()
    assert emulator.get()["runs"][0]["reason"] == "missed 2026-11-25T02:00:00Z: the emulator was not running"
    assert emulator.runs("paused") == []


def test_years_of_missed_minutes_are_not_counted_out(emulator: SchedulingEmulator) -> None:
    emulator.put(cron="* * * * *")
    emulator.let_clock_pass_while_down("2046-11-22T00:00:30Z")
    emulator.loop.advance_and_get_next_time_or_none()
    (skipped, state), (run, _) = emulator.runs()
    assert (skipped, state, run) == ("2026-11-22T16:40:00Z", "SKIPPED", "2046-11-22T00:00:00Z")
    assert "missed at least 1000 times" in emulator.get()["runs"][1]["reason"]


def test_a_paused_schedule_has_runs_only_if_fired(emulator: SchedulingEmulator) -> None:
    emulator.put()
    assert emulator.schedules.pause(LOCATION, "nightly")["nextTimes"] == []
    emulator.move_clock("2026-11-23T12:00:00Z")
    emulator.finish_runs()
    assert emulator.runs() == []
    emulator.schedules.fire_and_get_schedule(LOCATION, "nightly")
    with pytest.raises(ApiError, match=r"nightly was not fired: the run .* is still under way"):
        emulator.schedules.fire_and_get_schedule(LOCATION, "nightly")
    emulator.finish_runs()
    emulator.schedules.fire_and_get_schedule(LOCATION, "nightly")
    emulator.finish_runs()
    assert emulator.runs() == [("2026-11-23T12:00:00Z", "SUCCEEDED")] * 2
    assert len({run["runId"] for run in emulator.get()["runs"]}) == 2
    resumed = emulator.schedules.resume(LOCATION, "nightly")
    assert resumed["nextTimes"][0] == "2026-11-24T02:00:00Z"


def test_an_edited_schedule_keeps_runs_and_begins_anew(emulator: SchedulingEmulator) -> None:
    emulator.put()
    emulator.move_clock("2026-11-22T12:00:00Z")
    emulator.finish_runs()
    edited = emulator.put(cron="0 6 * * *", timeZone="Asia/Tokyo")
    assert edited["nextTimes"][0] == "2026-11-22T21:00:00Z"
    assert emulator.runs() == nights(22, 22)


def test_only_the_last_hundred_ended_runs_are_kept(emulator: SchedulingEmulator) -> None:
    emulator.put(cron="* * * * *")
    emulator.move_clock("2026-11-22T02:30:00Z")
    with emulator.database.read() as transaction:
        (schedule,) = transaction.schedules.all()
        states = [run.state for run in transaction.schedules.runs(schedule, 1000)]
    assert states == [*["SKIPPED"] * 100, "RUNNING"]


def test_the_loop_waits_for_the_next_time(emulator: SchedulingEmulator) -> None:
    emulator.put("paused", paused=True)
    assert emulator.loop.advance_and_get_next_time_or_none() is None
    emulator.put()
    emulator.put("later", cron="0 3 * * *")
    assert emulator.loop.advance_and_get_next_time_or_none() is None  # a set clock stands
    emulator.schedule_clock.unset_time_and_skip_passed_times()
    next_times = [emulator.get(name)["nextTimes"][0] for name in ("nightly", "later")]
    assert emulator.loop.advance_and_get_next_time_or_none() == parse_time(min(next_times))
