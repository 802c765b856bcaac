"""The statements on schedules and their runs."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from vertex_api.schedules.schedule_request_types import ScheduledJob, ScheduleRequest
from vertex_emulator.database.schedule_records import RunState, Schedule, ScheduleRun, SubmittedJob
from vertex_emulator.database.statement_base import Statements, encode_values
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


class Schedules(Statements):
    """The statements on schedules; times in ns since 1970."""

    def create_or_update(self, location: Location, request: ScheduleRequest, now: int) -> None:
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
            self._insert_row("schedules", id=request.id, **location.columns(), created=now_ns(), **fields)
        else:
            self._update_row("schedules", schedule.sequence, **fields)

    def get(self, location: Location, schedule_id: str) -> Schedule | None:
        """Return a schedule; None if it does not exist."""
        query = "SELECT * FROM schedules WHERE number = ? AND region = ? AND id = ?"
        row = self._select_first(query, location.project_number, location.region, schedule_id)
        return _parse_schedule(row) if row else None

    def get_schedule_of_run(self, run: ScheduleRun) -> Schedule | None:
        """Return the schedule of a run; None if it has been deleted."""
        row = self._select_first("SELECT * FROM schedules WHERE sequence = ?", run.schedule)
        return _parse_schedule(row) if row else None

    def list_schedules(self, location: Location | None = None) -> list[Schedule]:
        """List the schedules of a location, or all, by their ids."""
        where, values = (
            ("WHERE number = ? AND region = ?", (location.project_number, location.region)) if location else ("", ())
        )
        rows = self._connection.execute(f"SELECT * FROM schedules {where} ORDER BY id, sequence", values)
        return [_parse_schedule(row) for row in rows]

    def count_schedules_by_paused(self) -> dict[bool, int]:
        """Count the schedules that are paused, and those that are not."""
        rows = self._connection.execute("SELECT paused, count(*) FROM schedules GROUP BY paused")
        return {bool(paused): count for paused, count in rows}

    def delete(self, schedule: Schedule) -> None:
        """Delete a schedule with its runs; their jobs stay."""
        self._connection.execute("DELETE FROM schedules WHERE sequence = ?", (schedule.sequence,))

    def set_paused(self, schedule: Schedule, paused: bool, handled_until: int) -> None:
        """Pause or resume a schedule; its times up to `handled_until` need no more runs."""
        self._update_row("schedules", schedule.sequence, paused=int(paused), handled_until=handled_until)

    def set_handled_until(self, schedule: Schedule, time: int) -> None:
        """Store that each time of a schedule up to this one has its run, or needs none."""
        self._update_row("schedules", schedule.sequence, handled_until=time)

    def add_run_unless_exists_and_delete_oldest(
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
        values = encode_values((schedule.sequence, run_id, time, int(is_fired_by_user), state, reason, jobs))
        names = "schedule, run_id, time, fired, state, reason, jobs"
        statement = f"INSERT INTO schedule_runs ({names}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._connection.execute(statement, values)
        self._connection.execute(_DELETE_OLD_RUNS, {"schedule": schedule.sequence, "kept": _MAX_ENDED_RUNS})

    def get_run(self, sequence: int) -> ScheduleRun | None:
        """Return a run; None if its schedule has been deleted."""
        row = self._select_first("SELECT * FROM schedule_runs WHERE sequence = ?", sequence)
        return _parse_run(row) if row else None

    def list_runs(self, schedule: Schedule, limit: int) -> list[ScheduleRun]:
        """List the last runs of a schedule, the newest first."""
        query = "SELECT * FROM schedule_runs WHERE schedule = ? ORDER BY sequence DESC LIMIT ?"
        return [_parse_run(row) for row in self._connection.execute(query, (schedule.sequence, limit))]

    def list_unfinished_runs(self) -> list[ScheduleRun]:
        """List the runs of all schedules that have not ended, the oldest first."""
        rows = self._connection.execute("SELECT * FROM schedule_runs WHERE state = 'RUNNING' ORDER BY sequence")
        return [_parse_run(row) for row in rows]

    def find_oldest_unfinished_run(self, schedule: Schedule) -> ScheduleRun | None:
        """Return the oldest run of a schedule that has not ended; None if there is none."""
        query = "SELECT * FROM schedule_runs WHERE schedule = ? AND state = 'RUNNING' ORDER BY sequence"
        row = self._select_first(query, schedule.sequence)
        return _parse_run(row) if row else None

    def find_latest_run_and_schedule(self) -> tuple[ScheduleRun, Schedule] | None:
        """Return the run with the latest time of all schedules, and its schedule; None without runs."""
        row = self._select_first("SELECT * FROM schedule_runs ORDER BY time DESC")
        if row is None:
            return None
        run = _parse_run(row)
        schedule = self.get_schedule_of_run(run)
        assert schedule is not None
        return run, schedule

    def set_submitted_job(self, run: ScheduleRun, name_in_schedule: str, job: SubmittedJob) -> None:
        """Store the job that a run has submitted, or how it has ended."""
        submitted = {**run.submitted, name_in_schedule: job}
        self._update_row(
            "schedule_runs", run.sequence, submitted={key: asdict(each) for key, each in submitted.items()}
        )

    def end_run(self, run: ScheduleRun, state: RunState, reason: str | None = None) -> None:
        """Store how a run has ended."""
        self._update_row("schedule_runs", run.sequence, state=state, reason=reason, jobs=[])

    def _update_row(self, table: str, sequence: int, **columns: Any) -> None:
        changes = ", ".join(f"{name} = ?" for name in columns)
        values = encode_values(columns.values())
        self._connection.execute(f"UPDATE {table} SET {changes} WHERE sequence = ?", (*values, sequence))


def _parse_schedule(row: sqlite3.Row) -> Schedule:
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
