"""The clock of schedules: a test moves it forward, and the runs at the times that it passes begin."""

import pytest

from tests.vertex_emulator.schedules.scheduling_emulator import SchedulingEmulator, nights
from vertex_emulator.errors import ApiError


def test_a_moved_clock_begins_the_runs_that_it_passes(emulator: SchedulingEmulator) -> None:
    schedule = emulator.put()
    assert schedule["nextTimes"] == [f"2026-11-{day}T02:00:00Z" for day in (22, 23, 24)]
    emulator.move_clock("2026-11-22T01:59:59Z")
    assert emulator.runs() == []
    for day in (22, 23):
        for _ in range(2):  # the second time, nothing new is due
            emulator.move_clock(f"2026-11-{day}T02:00:00Z")
            emulator.finish_runs()
    assert emulator.runs() == nights(22, 23)
    assert emulator.get()["nextTimes"][0] == "2026-11-24T02:00:00Z"


def test_the_clock_does_not_go_behind_a_run(emulator: SchedulingEmulator) -> None:
    emulator.put()
    emulator.move_clock("2026-11-22T12:00:00Z")
    with pytest.raises(ApiError, match=r"time is before the run 2026-11-22T02-00-00-\w+ of nightly; move"):
        emulator.move_clock("2026-11-22T01:00:00Z")
    emulator.finish_runs()
    emulator.move_clock("2026-11-22T02:00:00Z")
    emulator.move_clock("2026-11-23T02:00:00Z")
    emulator.finish_runs()
    assert emulator.runs() == nights(22, 23)


def test_a_clock_that_is_given_back_repeats_no_run(
    emulator: SchedulingEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vertex_emulator.schedules.schedules_clock.now_ns", lambda: 1_795_312_800 * 10**9)
    emulator.put()
    for day in (22, 23):
        emulator.move_clock(f"2026-11-{day}T12:00:00Z")
        emulator.finish_runs()
    assert emulator.schedule_clock.unset_time_and_skip_passed_times() == {"time": "2026-11-22T02:00:00Z"}
    monkeypatch.setattr("vertex_emulator.schedules.schedules_clock.now_ns", lambda: 1_795_485_601 * 10**9)
    emulator.finish_runs()
    assert emulator.runs() == nights(22, 24)


def test_a_clock_passes_a_thousand_times_at_most(emulator: SchedulingEmulator) -> None:
    emulator.put(cron="* * * * *", overlap="allow")
    with pytest.raises(ApiError, match="more than 1000 times until then; move the clock in smaller steps"):
        emulator.move_clock("2026-11-22T16:41:00Z")
    assert emulator.runs() == []
