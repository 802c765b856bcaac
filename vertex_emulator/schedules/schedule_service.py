"""The emulator's own methods on schedules, which stand for Cloud Scheduler and Workflows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Schedule, ScheduleRun
from vertex_emulator.errors import ApiError
from vertex_emulator.http.invalid_request_errors import build_not_found_error
from vertex_emulator.names import Location
from vertex_emulator.schedules.due_runs import (
    add_due_runs_and_skip_missed_times,
    describe_overlap_or_none,
    generate_run_id,
)
from vertex_emulator.schedules.job_methods_protocol import JobMethods
from vertex_emulator.schedules.schedule_request_parsing import parse_schedule_request, require_schedule_id
from vertex_emulator.schedules.schedule_times import iterate_times_of_schedule
from vertex_emulator.schedules.schedules_clock import read_clock
from vertex_emulator.times import format_time, short_time

_SHOWN_TIMES, _SHOWN_RUNS = 3, 20


@dataclass(frozen=True)
class ScheduleService:
    """The methods on schedules; `wake` tells their loop that something has changed."""

    database: Database
    jobs: JobMethods
    wake: Callable[[], None]

    def put(self, location: Location, schedule: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a schedule, or change the one with its id, and return it. Raises ApiError."""
        request = parse_schedule_request(self.jobs, location, require_schedule_id(schedule), body)
        with self.database.write() as transaction:
            now = read_clock(transaction)
            existing = transaction.schedules.get(location, schedule)
            if existing is not None:
                add_due_runs_and_skip_missed_times(transaction, existing, now)
            transaction.schedules.put(location, request, now)
            reply = _serialize_schedule(transaction, _require_schedule(transaction, location, schedule))
        self.wake()
        return reply

    def get(self, location: Location, schedule: str) -> dict[str, Any]:
        """Return a schedule with its next times and its last runs. Raises ApiError NOT_FOUND."""
        with self.database.read() as transaction:
            return _serialize_schedule(transaction, _require_schedule(transaction, location, schedule))

    def list_schedules(self, location: Location | None = None) -> dict[str, Any]:
        """Return the schedules of a location, or all."""
        with self.database.read() as transaction:
            schedules = transaction.schedules.all(location)
            return {"schedules": [_serialize_schedule(transaction, schedule) for schedule in schedules]}

    def delete(self, location: Location, schedule: str) -> dict[str, Any]:
        """Delete a schedule with its runs; jobs that they have submitted go on. Raises ApiError NOT_FOUND."""
        with self.database.write() as transaction:
            transaction.schedules.delete(_require_schedule(transaction, location, schedule))
        return {}

    def fire_and_get_schedule(self, location: Location, schedule: str) -> dict[str, Any]:
        """Begin a run now, also of a paused schedule, and return the schedule.

        Raises ApiError, also while a run is under way that this one must not overlap.
        """
        with self.database.write() as transaction:
            found = _require_schedule(transaction, location, schedule)
            reason = describe_overlap_or_none(transaction, found)
            if reason is not None:
                raise ApiError("FAILED_PRECONDITION", f"{schedule} was not fired: {reason}")
            now = read_clock(transaction)
            transaction.schedules.add_run(found, generate_run_id(now), now, "RUNNING", is_fired_by_user=True)
            reply = _serialize_schedule(transaction, found)
        self.wake()
        return reply

    def pause(self, location: Location, schedule: str) -> dict[str, Any]:
        """Pause a schedule, whose runs go on, and return it. Raises ApiError NOT_FOUND."""
        return self._set_paused_and_get_schedule(location, schedule, True)

    def resume(self, location: Location, schedule: str) -> dict[str, Any]:
        """Resume a schedule from now on, and return it. Raises ApiError NOT_FOUND."""
        return self._set_paused_and_get_schedule(location, schedule, False)

    def _set_paused_and_get_schedule(self, location: Location, schedule: str, paused: bool) -> dict[str, Any]:
        with self.database.write() as transaction:
            now = read_clock(transaction)
            found = _require_schedule(transaction, location, schedule)
            add_due_runs_and_skip_missed_times(transaction, found, now)
            transaction.schedules.set_paused(found, paused, now)
            reply = _serialize_schedule(transaction, _require_schedule(transaction, location, schedule))
        self.wake()
        return reply


def _require_schedule(transaction: Transaction, location: Location, schedule_id: str) -> Schedule:
    schedule = transaction.schedules.get(location, require_schedule_id(schedule_id))
    if schedule is None:
        raise build_not_found_error("Schedule", f"{location.name}/schedules/{schedule_id}")
    return schedule


def _serialize_schedule(transaction: Transaction, schedule: Schedule) -> dict[str, Any]:
    times = [] if schedule.request.paused else iterate_times_of_schedule(schedule, schedule.handled_until)
    runs = transaction.schedules.runs(schedule, _SHOWN_RUNS)
    return {
        "name": schedule.name,
        **schedule.request.to_json(),
        "createTime": format_time(schedule.created),
        "nextTimes": [short_time(time) for time in islice(times, _SHOWN_TIMES)],
        "runs": [_serialize_run(run) for run in runs],
    }


def _serialize_run(run: ScheduleRun) -> dict[str, Any]:
    jobs = run.submitted.items()
    return {
        "runId": run.run_id,
        "scheduleTime": short_time(run.time),
        "state": run.state,
        **({"reason": run.reason} if run.reason else {}),
        "jobs": {name: job.resource_name for name, job in jobs},
        "modelDirs": {name: job.model_dir for name, job in jobs if job.model_dir},
    }
