"""The emulator's own methods on schedules, which stand for Cloud Scheduler and Workflows, and on their clock."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.schedule_records import Schedule, ScheduleRun
from vertex_emulator.errors import ApiError, TooManyScheduleTimes, build_not_found_error
from vertex_emulator.locations_and_ids import Location
from vertex_emulator.schedules.due_runs import (
    add_all_runs_until,
    add_due_runs_and_skip_missed_times,
    describe_overlap_or_none,
    generate_run_id,
    iterate_times_of_schedule,
)
from vertex_emulator.schedules.job_methods_protocol import JobMethods
from vertex_emulator.schedules.schedule_request_parsing import parse_schedule_request, require_schedule_id
from vertex_emulator.schedules.schedules_clock import read_clock, set_clock, unset_clock
from vertex_emulator.timestamps import format_time, format_time_without_zero_fraction, parse_time_to_ns_or_none

_SHOWN_TIMES, _SHOWN_RUNS = 3, 20
_MIN_CLOCK, _MAX_CLOCK = (parse_time_to_ns_or_none(f"{year}-01-01T00:00:00Z") or 0 for year in (1970, 2200))


@dataclass(frozen=True)
class ScheduleService:
    """The methods on schedules; `wake` tells their loop that something has changed."""

    database: Database
    jobs: JobMethods
    wake: Callable[[], None]

    def put(self, location: Location, schedule: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a schedule, or change the one with its id, and return it. Raises ApiError."""
        request = parse_schedule_request(self.jobs, location, require_schedule_id(schedule), body)
        with self.database.write_transaction() as transaction:
            now = read_clock(transaction)
            existing = transaction.schedules.get(location, schedule)
            if existing is not None:
                add_due_runs_and_skip_missed_times(transaction, existing, now)
            transaction.schedules.create_or_update(location, request, now)
            reply = _serialize_schedule(transaction, _require_schedule(transaction, location, schedule))
        self.wake()
        return reply

    def get(self, location: Location, schedule: str) -> dict[str, Any]:
        """Return a schedule with its next times and its last runs. Raises ApiError NOT_FOUND."""
        with self.database.read_transaction() as transaction:
            return _serialize_schedule(transaction, _require_schedule(transaction, location, schedule))

    def list_schedules(self, location: Location | None = None) -> dict[str, Any]:
        """Return the schedules of a location, or all."""
        with self.database.read_transaction() as transaction:
            schedules = transaction.schedules.list_schedules(location)
            return {"schedules": [_serialize_schedule(transaction, schedule) for schedule in schedules]}

    def delete(self, location: Location, schedule: str) -> dict[str, Any]:
        """Delete a schedule with its runs; jobs that they have submitted go on. Raises ApiError NOT_FOUND."""
        with self.database.write_transaction() as transaction:
            transaction.schedules.delete(_require_schedule(transaction, location, schedule))
        return {}

    def fire_and_get_schedule(self, location: Location, schedule: str) -> dict[str, Any]:
        """Begin a run now, also of a paused schedule, and return the schedule.

        Raises ApiError, also while a run is under way that this one must not overlap.
        """
        with self.database.write_transaction() as transaction:
            found = _require_schedule(transaction, location, schedule)
            reason = describe_overlap_or_none(transaction, found)
            if reason is not None:
                raise ApiError("FAILED_PRECONDITION", f"{schedule} was not fired: {reason}")
            now = read_clock(transaction)
            transaction.schedules.add_run_unless_exists_and_delete_oldest(
                found, generate_run_id(now), now, "RUNNING", is_fired_by_user=True
            )
            reply = _serialize_schedule(transaction, found)
        self.wake()
        return reply

    def pause(self, location: Location, schedule: str) -> dict[str, Any]:
        """Pause a schedule, whose runs go on, and return it. Raises ApiError NOT_FOUND."""
        return self._set_paused_and_get_schedule(location, schedule, True)

    def resume(self, location: Location, schedule: str) -> dict[str, Any]:
        """Resume a schedule from now on, and return it. Raises ApiError NOT_FOUND."""
        return self._set_paused_and_get_schedule(location, schedule, False)

    def set_clock_and_begin_passed_runs(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Let the schedules' clock stand at `time`; the runs at all times that it passes begin. Raises ApiError."""
        text = body.get("time")
        time = parse_time_to_ns_or_none(text) if isinstance(text, str) else None
        if time is None or not _MIN_CLOCK <= time < _MAX_CLOCK:
            message = f"time is {str(text)[:100]!a}; it must be like 2026-11-22T02:00:00Z, in 1970 to 2199"
            raise ApiError("INVALID_ARGUMENT", message)
        with self.database.write_transaction() as transaction:
            latest = transaction.schedules.find_latest_run_and_schedule()
            if latest is not None and time < latest[0].time:
                run, schedule = latest
                message = f"time is before the run {run.run_id} of {schedule.request.id}; move the clock forward"
                raise ApiError("FAILED_PRECONDITION", message)
            for schedule in transaction.schedules.list_schedules():
                try:
                    add_all_runs_until(transaction, schedule, time)
                except TooManyScheduleTimes as error:
                    raise ApiError("INVALID_ARGUMENT", str(error)) from error
            set_clock(transaction, time)
        self.wake()
        return {"time": format_time_without_zero_fraction(time)}

    def unset_clock_and_skip_passed_times(self) -> dict[str, Any]:
        """Let schedules use the machine's clock again, from its time on."""
        with self.database.write_transaction() as transaction:
            unset_clock(transaction)
            now = read_clock(transaction)
            for schedule in transaction.schedules.list_schedules():
                transaction.schedules.set_handled_until(schedule, now)
        self.wake()
        return {"time": format_time_without_zero_fraction(now)}

    def _set_paused_and_get_schedule(self, location: Location, schedule: str, paused: bool) -> dict[str, Any]:
        with self.database.write_transaction() as transaction:
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
        raise build_not_found_error("Schedule", f"{location.name_with_project_number}/schedules/{schedule_id}")
    return schedule


def _serialize_schedule(transaction: Transaction, schedule: Schedule) -> dict[str, Any]:
    times = [] if schedule.request.paused else iterate_times_of_schedule(schedule, schedule.handled_until)
    runs = transaction.schedules.list_runs(schedule, _SHOWN_RUNS)
    return {
        "name": schedule.name,
        **schedule.request.build_json_fields_without_id(),
        "createTime": format_time(schedule.created),
        "nextTimes": [format_time_without_zero_fraction(time) for time in islice(times, _SHOWN_TIMES)],
        "runs": [_serialize_run(run) for run in runs],
    }


def _serialize_run(run: ScheduleRun) -> dict[str, Any]:
    jobs = run.submitted.items()
    return {
        "runId": run.run_id,
        "scheduleTime": format_time_without_zero_fraction(run.time),
        "state": run.state,
        **({"reason": run.reason} if run.reason else {}),
        "jobs": {name: job.resource_name for name, job in jobs},
        "modelDirs": {name: job.model_dir for name, job in jobs if job.model_dir},
    }
