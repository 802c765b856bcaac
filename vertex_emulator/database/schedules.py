"""Schedules and their runs."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from vertex_api.schedules import ScheduledJob, ScheduleRequest
from vertex_emulator.database.records import RunState, Schedule, ScheduleRun, SubmittedJob, Table, encode
from vertex_emulator.names import Location
from vertex_emulator.times import now_ns

_MAX_ENDED_RUNS = 100
"""How many ended runs of a schedule are kept."""
_DELETE_OLD_RUNS = """
DELETE FROM schedule_runs WHERE schedule = :schedule AND state != 'RUNNING' AND sequence <= (
  SELECT sequence FROM schedule_runs WHERE schedule = :schedule AND state != 'RUNNING'
  ORDER BY sequence DESC LIMIT 1 OFFSET :kept
)
"""


class Schedules(Table):
    """The statements on schedules and their runs."""

    def all(self, location: Location | None = None) -> list[Schedule]:
        """List the schedules of a location, or all, by their ids."""
        where, values = (
            ("WHERE number = ? AND region = ?", (location.project_number, location.region)) if location else ("", ())
        )
        rows = self._connection.execute(f"SELECT * FROM schedules {where} ORDER BY id, sequence", values)
        return [_parse(row) for row in rows]

    def get(self, location: Location, schedule_id: str) -> Schedule | None:
        """Return a schedule; None if it does not exist."""
        query = "SELECT * FROM schedules WHERE number = ? AND region = ? AND id = ?"
        row = self._first(query, location.project_number, location.region, schedule_id)
        return _parse(row) if row else None

    def of_run(self, run: ScheduleRun) -> Schedule | None:
        """Return the schedule of a run; None if it has been deleted."""
        row = self._first("SELECT * FROM schedules WHERE sequence = ?", run.schedule)
        return _parse(row) if row else None

    def count_by_paused(self) -> dict[bool, int]:
        """Count the schedules that are paused, and those that are not."""
        rows = self._connection.execute("SELECT paused, count(*) FROM schedules GROUP BY paused")
        return {bool(paused): count for paused, count in rows}

    def put(self, location: Location, request: ScheduleRequest, now: int) -> None:
        """Create a schedule, or change the one with its id, whose runs stay. Its times after `now` are to come."""
        fields = {
            "cron": request.cron,
            "time_zone": request.time_zone,
            "paused": int(request.paused),
            "overlap": request.overlap,
            "jobs": [asdict(job) for job in request.jobs],
            "handled_until": now,
        }
        schedule = self.get(location, request.id)
        if schedule is None:
            self._insert("schedules", id=request.id, **location.columns(), created=now_ns(), **fields)
        else:
            self._set(schedule, **fields)

    def set_paused(self, schedule: Schedule, paused: bool, handled_until: int) -> None:
        """Pause or resume a schedule; its times up to `handled_until` need no more runs."""
        self._set(schedule, paused=int(paused), handled_until=handled_until)

    def set_handled_until(self, schedule: Schedule, time: int) -> None:
        """Store that each time of a schedule up to this one has its run, or needs none."""
        self._set(schedule, handled_until=time)

    def _set(self, schedule: Schedule, **columns: Any) -> None:
        self._update("schedules", {"sequence": schedule.sequence}, **columns)

    def delete(self, schedule: Schedule) -> None:
        """Delete a schedule with its runs; their jobs stay."""
        self._connection.execute("DELETE FROM schedules WHERE sequence = ?", (schedule.sequence,))

    def add_run(
        self,
        schedule: Schedule,
        run_id: str,
        time: int,
        state: RunState,
        reason: str | None = None,
        is_fired_by_user: bool = False,
    ) -> None:
        """Add a run of a schedule, unless it has one at that time already, and delete the oldest ended runs of many.

        A run that is fired by a user is added besides one at the same time.
        """
        jobs = [asdict(job) for job in schedule.request.jobs] if state == "RUNNING" else []
        values = encode((schedule.sequence, run_id, time, int(is_fired_by_user), state, reason, jobs))
        names = "schedule, run_id, time, fired, state, reason, jobs"
        statement = f"INSERT INTO schedule_runs ({names}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._connection.execute(statement, values)
        self._connection.execute(_DELETE_OLD_RUNS, {"schedule": schedule.sequence, "kept": _MAX_ENDED_RUNS})

    def get_run(self, sequence: int) -> ScheduleRun | None:
        """Return a run; None if its schedule has been deleted."""
        row = self._first("SELECT * FROM schedule_runs WHERE sequence = ?", sequence)
        return _parse_run(row) if row else None

    def runs(self, schedule: Schedule, limit: int) -> list[ScheduleRun]:
        """List the last runs of a schedule, the newest first."""
        query = "SELECT * FROM schedule_runs WHERE schedule = ? ORDER BY sequence DESC LIMIT ?"
        return [_parse_run(row) for row in self._connection.execute(query, (schedule.sequence, limit))]

    def unfinished_runs(self) -> list[ScheduleRun]:
        """List the runs of all schedules that have not ended, the oldest first."""
        rows = self._connection.execute("SELECT * FROM schedule_runs WHERE state = 'RUNNING' ORDER BY sequence")
        return [_parse_run(row) for row in rows]

    def current_run(self, schedule: Schedule) -> ScheduleRun | None:
        """Return the oldest run of a schedule that has not ended; None if there is none."""
        query = "SELECT * FROM schedule_runs WHERE schedule = ? AND state = 'RUNNING' ORDER BY sequence"
        row = self._first(query, schedule.sequence)
        return _parse_run(row) if row else None

    def latest_run(self) -> tuple[ScheduleRun, Schedule] | None:
        """Return the run with the latest time of all schedules, and its schedule; None without runs."""
        row = self._first("SELECT * FROM schedule_runs ORDER BY time DESC")
        if row is None:
            return None
        run = _parse_run(row)
        schedule = self.of_run(run)
        assert schedule is not None
        return run, schedule

    def set_submitted(self, run: ScheduleRun, name_in_schedule: str, job: SubmittedJob) -> None:
        """Store the job that a run has submitted, or how it has ended."""
        submitted = {**run.submitted, name_in_schedule: job}
        columns = {name: asdict(each) for name, each in submitted.items()}
        self._update("schedule_runs", {"sequence": run.sequence}, submitted=columns)

    def end_run(self, run: ScheduleRun, state: RunState, reason: str | None = None) -> None:
        """Store how a run has ended."""
        self._update("schedule_runs", {"sequence": run.sequence}, state=state, reason=reason, jobs=[])


def _parse(row: sqlite3.Row) -> Schedule:
    request = ScheduleRequest(
        row["id"], row["cron"], row["time_zone"], bool(row["paused"]), row["overlap"], _parse_jobs(row["jobs"])
    )
    location = Location(row["project"], row["region"])
    return Schedule(row["sequence"], location, request, row["created"], row["handled_until"])


def _parse_run(row: sqlite3.Row) -> ScheduleRun:
    names = ("sequence", "schedule", "run_id", "time", "state", "reason")
    fields: Mapping[str, Any] = {name: row[name] for name in names}
    submitted = {name: SubmittedJob(**job) for name, job in json.loads(row["submitted"]).items()}
    return ScheduleRun(**fields, jobs=_parse_jobs(row["jobs"]), submitted=submitted)


def _parse_jobs(text: str) -> tuple[ScheduledJob, ...]:
    return tuple(ScheduledJob(**job) for job in json.loads(text))
