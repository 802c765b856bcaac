"""The thread of schedules: there is none without schedules, and it wakes for changes only."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vertex_emulator.jobs import LOCATION
from tests.vertex_emulator.running import PATIENCE_SECONDS, until
from tests.vertex_emulator.schedules.scheduling_emulator import SchedulingEmulator, create_emulator, scheduled_job
from tests.vertex_emulator.scheduling.steps import submit
from vertex_emulator.schedules.schedule_service import ScheduleService
from vertex_emulator.schedules.schedules_clock import ScheduleClockService


@pytest.fixture
def threaded(tmp_path: Path) -> Iterator[SchedulingEmulator]:
    """An emulator whose service wakes the thread of its loop."""
    emulator = create_emulator(tmp_path)
    emulator.schedules = ScheduleService(emulator.database, emulator.jobs, emulator.loop.wake_or_start_if_needed)
    emulator.schedule_clock = ScheduleClockService(emulator.database, emulator.loop.wake_or_start_if_needed)
    yield emulator
    emulator.loop.stop(PATIENCE_SECONDS)
    emulator.database.close()


def has_thread() -> bool:
    return "schedules" in {thread.name for thread in threading.enumerate()}


def test_a_thread_starts_with_the_first_schedule(threaded: SchedulingEmulator) -> None:
    threaded.loop.start_if_needed()
    threaded.move_clock("2026-11-22T00:00:00Z")
    assert not has_thread()
    threaded.put()
    assert has_thread()
    threaded.loop.stop(PATIENCE_SECONDS)
    assert not has_thread()


def test_the_thread_runs_what_is_due_and_what_follows(threaded: SchedulingEmulator) -> None:
    threaded.move_clock("2026-11-22T00:00:00Z")
    threaded.put(jobs=[scheduled_job("prepare"), scheduled_job("train")])
    threaded.move_clock("2026-11-22T02:00:00Z")
    for count in (1, 2):  # the end of the first job wakes the thread, which submits the second
        until(lambda count=count: len(threaded.all_jobs()) == count)  # type: ignore[misc]
        threaded.run_jobs()
    until(lambda: threaded.runs() == [("2026-11-22T02:00:00Z", "SUCCEEDED")])
    threaded.schedules.fire_and_get_schedule(LOCATION, "nightly")
    until(lambda: len(threaded.all_jobs()) == 3)


def test_the_thread_wakes_at_the_next_time_by_itself(
    threaded: SchedulingEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_795_312_799_900_000_000]  # a tenth of a second before 02:00
    for module in ("schedules_clock", "schedule_loop"):
        monkeypatch.setattr(f"vertex_emulator.schedules.{module}.now_ns", lambda: now[0])
    threaded.put()
    assert threaded.get()["nextTimes"][0] == "2026-11-22T02:00:00Z"
    now[0] += 10**9  # nobody wakes the thread: it looks at the clock when its sleep ends
    until(lambda: threaded.runs() == [("2026-11-22T02:00:00Z", "RUNNING")])


def test_jobs_that_no_run_waits_for_wake_nothing(threaded: SchedulingEmulator) -> None:
    threaded.move_clock("2026-11-22T00:00:00Z")
    threaded.put()
    sleeps: list[str] = []
    sleep = threaded.loop._sleep_until_time_or_change

    def record_and_sleep(next_time: int | None) -> None:
        sleeps.append("begun")
        sleep(next_time)
        sleeps.append("ended")

    threaded.loop._sleep_until_time_or_change = record_and_sleep  # type: ignore[method-assign]

    def sleeps_for_good() -> bool:
        before = [*sleeps]
        return before[-1:] == ["begun"] and not threaded.loop._changed.is_set() and sleeps == before

    threaded.move_clock("2026-11-22T02:00:00Z")
    until(lambda: threaded.all_jobs())
    threaded.run_jobs()
    until(lambda: threaded.runs() == [("2026-11-22T02:00:00Z", "SUCCEEDED")])
    until(sleeps_for_good)
    before = len(sleeps)
    submit(threaded)
    threaded.run_jobs()
    assert (len(sleeps), threaded.loop._changed.is_set()) == (before, False)


def test_an_emulator_without_schedules_loads_no_rules_of_cron() -> None:
    program = "import sys, vertex_emulator.server; print({'cronsim', 'vertex_api.cron'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
