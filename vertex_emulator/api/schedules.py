"""The emulator's own methods on schedules and their clock, which stand for Cloud Scheduler and Workflows."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, Required

from vertex_api.names import KINDS, either
from vertex_api.scalars import Boolean, String
from vertex_api.schedules import ScheduledJob, ScheduleRequest
from vertex_api.types import Message
from vertex_api.validation.shape import FieldProblem, canonicalize
from vertex_emulator.api.jobs import JobService
from vertex_emulator.api.schedule_loop import (
    CLOCK_SETTING,
    begin_due,
    begin_until,
    new_run_id,
    overlap,
    read_clock,
    times,
)
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Schedule, ScheduleRun
from vertex_emulator.errors import ApiError
from vertex_emulator.http.responses import invalid_argument, not_found
from vertex_emulator.names import Location
from vertex_emulator.times import format_time, parse_time, short_time

_SHOWN_TIMES, _SHOWN_RUNS = 3, 20
_MIN_TIME, _MAX_TIME = (parse_time(f"{year}-01-01T00:00:00Z") or 0 for year in (1970, 2200))
_ID = re.compile(r"[A-Za-z0-9_-]{1,500}")
_SAMPLE_RUN_ID = "2026-11-22T02-00-00-1a2b3c4d"


class _JobMessage(Message, total=False):
    name: Required[String]
    collection: Required[String]
    body: Required[dict[str, Any]]
    allow: list[String]


class _ScheduleMessage(Message, total=False):
    cron: Required[String]
    timeZone: String  # noqa: N815 - as in the request
    paused: Boolean
    overlap: Literal["skip", "allow"]
    jobs: Required[list[_JobMessage]]


@dataclass(frozen=True)
class ScheduleService:
    """The methods on schedules and their clock; `wake` tells their loop that something has changed."""

    database: Database
    jobs: JobService
    wake: Callable[[], None]

    def put(self, location: Location, schedule: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a schedule, or change the one with its id, and return it. Raises ApiError."""
        request = self._parse(location, _check_id(schedule), body)
        with self.database.write() as transaction:
            now = read_clock(transaction)
            existing = transaction.schedules.get(location, schedule)
            if existing is not None:
                begin_due(transaction, existing, now)
            transaction.schedules.put(location, request, now)
            reply = _schedule_json(transaction, _require(transaction, location, schedule))
        self.wake()
        return reply

    def _parse(self, location: Location, schedule_id: str, body: Mapping[str, Any]) -> ScheduleRequest:
        """Return the schedule that a request describes. Raises ApiError with the problems of its fields or of a job.

        A job that refers to results of earlier ones is checked when a run submits it.
        """
        fields, problems = canonicalize(_ScheduleMessage, body)
        if not problems:
            problems = [*_field_problems(fields)]
        if problems:
            raise invalid_argument(problems)
        jobs = tuple(ScheduledJob(**job) for job in fields["jobs"])
        for index, job in enumerate(jobs):
            self._check_job(location, index, job)
        paused, overlap = fields.get("paused", False), fields.get("overlap", "skip")
        return ScheduleRequest(schedule_id, fields["cron"], fields.get("timeZone", "UTC"), paused, overlap, jobs)

    def _check_job(self, location: Location, index: int, job: ScheduledJob) -> None:
        from vertex_api.schedules import fill_run_id, result_references

        if result_references(job.body):
            return
        try:
            self.jobs.validate(KINDS[job.collection], location, fill_run_id(job.body, _SAMPLE_RUN_ID), job.allow)
        except ApiError as error:
            path = f"jobs[{index}].body"
            violations = [(f"{path}.{field}", text) for field, text in error.violations]
            raise ApiError(error.status, f"{path} ({job.name}): {error.message}", violations) from error

    def get(self, location: Location, schedule: str) -> dict[str, Any]:
        """Return a schedule with its next times and its last runs. Raises ApiError NOT_FOUND."""
        with self.database.read() as transaction:
            return _schedule_json(transaction, _require(transaction, location, schedule))

    def list(self, location: Location | None = None) -> dict[str, Any]:
        """Return the schedules of a location, or all."""
        with self.database.read() as transaction:
            schedules = transaction.schedules.all(location)
            return {"schedules": [_schedule_json(transaction, schedule) for schedule in schedules]}

    def delete(self, location: Location, schedule: str) -> dict[str, Any]:
        """Delete a schedule with its runs; jobs that they have submitted go on. Raises ApiError NOT_FOUND."""
        with self.database.write() as transaction:
            transaction.schedules.delete(_require(transaction, location, schedule))
        return {}

    def fire(self, location: Location, schedule: str) -> dict[str, Any]:
        """Begin a run now, also of a paused schedule, and return the schedule.

        Raises ApiError, also while a run is under way that this one must not overlap.
        """
        with self.database.write() as transaction:
            found = _require(transaction, location, schedule)
            reason = overlap(transaction, found)
            if reason is not None:
                raise ApiError("FAILED_PRECONDITION", f"{schedule} was not fired: {reason}")
            now = read_clock(transaction)
            transaction.schedules.add_run(found, new_run_id(now), now, "RUNNING", is_fired_by_user=True)
            reply = _schedule_json(transaction, found)
        self.wake()
        return reply

    def pause(self, location: Location, schedule: str) -> dict[str, Any]:
        """Pause a schedule, whose runs go on, and return it. Raises ApiError NOT_FOUND."""
        return self._set_paused(location, schedule, True)

    def resume(self, location: Location, schedule: str) -> dict[str, Any]:
        """Resume a schedule from now on, and return it. Raises ApiError NOT_FOUND."""
        return self._set_paused(location, schedule, False)

    def _set_paused(self, location: Location, schedule: str, paused: bool) -> dict[str, Any]:
        with self.database.write() as transaction:
            now = read_clock(transaction)
            found = _require(transaction, location, schedule)
            begin_due(transaction, found, now)
            transaction.schedules.set_paused(found, paused, now)
            reply = _schedule_json(transaction, _require(transaction, location, schedule))
        self.wake()
        return reply

    def set_clock(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Let the schedules' clock stand at `time`; the runs at all times that it passes begin. Raises ApiError."""
        text = body.get("time")
        time = parse_time(text) if isinstance(text, str) else None
        if time is None or not _MIN_TIME <= time < _MAX_TIME:
            message = f"time is {str(text)[:100]!a}; it must be like 2026-11-22T02:00:00Z, in 1970 to 2199"
            raise ApiError("INVALID_ARGUMENT", message)
        with self.database.write() as transaction:
            latest = transaction.schedules.latest_run()
            if latest is not None and time < latest[0].time:
                run, schedule = latest
                message = f"time is before the run {run.run_id} of {schedule.request.id}; move the clock forward"
                raise ApiError("FAILED_PRECONDITION", message)
            for schedule in transaction.schedules.all():
                begin_until(transaction, schedule, time)
            transaction.settings.set(CLOCK_SETTING, str(time))
        self.wake()
        return {"time": short_time(time)}

    def unset_clock(self) -> dict[str, Any]:
        """Let schedules use the machine's clock again, from its time on: the times that it passes are skipped."""
        with self.database.write() as transaction:
            transaction.settings.remove(CLOCK_SETTING)
            now = read_clock(transaction)
            for schedule in transaction.schedules.all():
                transaction.schedules.set_handled_until(schedule, now)
        self.wake()
        return {"time": short_time(now)}


def _field_problems(fields: Mapping[str, Any]) -> Iterator[FieldProblem]:
    # Imported here because an emulator without schedules needs no rules of cron.
    from vertex_api.cron import cron_problem, zone_problem
    from vertex_api.schedules import result_references

    if problem := cron_problem(fields["cron"]):
        yield FieldProblem(("cron",), problem)
    if problem := zone_problem(fields.get("timeZone", "UTC")):
        yield FieldProblem(("timeZone",), problem)
    if not fields["jobs"]:
        yield FieldProblem(("jobs",), "must have at least one job")
    names: list[str] = []
    for index, job in enumerate(fields["jobs"]):
        path = ("jobs", index)
        if job["collection"] not in KINDS:
            yield FieldProblem((*path, "collection"), f'is "{job["collection"]}"; it must be {either(KINDS)}')
        if not job["name"] or job["name"] in names:
            yield FieldProblem((*path, "name"), f'is "{job["name"]}"; it must be a name that no other job has')
        for reference in result_references(job["body"]):
            if not any(reference.startswith(f"{name}.") for name in names):
                message = f"refers to ${{jobs.{reference}}}, which is not a result of an earlier job of the schedule"
                yield FieldProblem((*path, "body"), message)
        names.append(job["name"])


def _check_id(schedule_id: str) -> str:
    """Return an id that a schedule can have. Raises ApiError."""
    if _ID.fullmatch(schedule_id):
        return schedule_id
    message = (
        f"The schedule's id is {schedule_id[:100]!a}; it must be 1 to 500 letters, digits, hyphens or underscores."
    )
    raise ApiError("INVALID_ARGUMENT", message)


def _require(transaction: Transaction, location: Location, schedule_id: str) -> Schedule:
    schedule = transaction.schedules.get(location, _check_id(schedule_id))
    if schedule is None:
        raise not_found("Schedule", f"{location.name}/schedules/{schedule_id}")
    return schedule


def _schedule_json(transaction: Transaction, schedule: Schedule) -> dict[str, Any]:
    runs = transaction.schedules.runs(schedule, _SHOWN_RUNS)
    return {
        "name": schedule.name,
        **schedule.request.to_json(),
        "createTime": format_time(schedule.created),
        "nextTimes": [short_time(time) for time in islice(times(schedule, schedule.handled_until), _SHOWN_TIMES)],
        "runs": [_run_json(run) for run in runs],
    }


def _run_json(run: ScheduleRun) -> dict[str, Any]:
    jobs = run.submitted.items()
    return {
        "runId": run.run_id,
        "scheduleTime": short_time(run.time),
        "state": run.state,
        **({"reason": run.reason} if run.reason else {}),
        "jobs": {name: job.resource_name for name, job in jobs},
        "modelDirs": {name: job.model_dir for name, job in jobs if job.model_dir},
    }
