"""The statements on the database: reading and writing jobs, trials, service lines and operations."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pydantic_core import from_json

from vertex_api.kinds import KINDS, Kind
from vertex_emulator.database.injected_faults import InjectedFaults
from vertex_emulator.database.models import Models
from vertex_emulator.database.operations import Operations
from vertex_emulator.database.pipelines import Pipelines
from vertex_emulator.database.queue import ACTIVE, JobQueue
from vertex_emulator.database.records import (
    FAILED,
    QUEUED,
    Ending,
    Job,
    RestartHistory,
    ServiceMessage,
    Trial,
    list_replicas,
)
from vertex_emulator.injected_faults import InjectedFault
from vertex_emulator.names import Location
from vertex_emulator.times import now_ns

_UNFINISHED = (QUEUED, *ACTIVE)


class Transaction:
    """The statements, valid while its transaction is open; those on other things than jobs are in its parts."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.injected_faults = InjectedFaults(connection)
        self.queue = JobQueue(connection)
        self.models = Models(connection)
        self.operations = Operations(connection)
        self.pipelines = Pipelines(connection)

    def get_setting(self, key: str, default: str | None = None) -> str | None:
        """Return a setting of the data folder."""
        row = self._connection.execute("SELECT value FROM settings WHERE key = ?", (key,)).fetchone()
        return row["value"] if row else default

    def set_setting(self, key: str, value: str) -> None:
        """Store a setting of the data folder."""
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, value))

    def add_job(
        self,
        job_id: str,
        kind: Kind,
        location: Location,
        spec: Mapping[str, Any],
        slots: int,
        study: str | None = None,
        trial: int | None = None,
    ) -> Job:
        """Add a job in QUEUED, with the pending fault that matches it, if any; `slots` is its number of replicas."""
        now = now_ns()
        fault = self.injected_faults.use_fault(spec["displayName"], list_replicas(kind, spec))
        self._connection.execute(
            "INSERT INTO jobs (id, collection, project, number, region, spec, state, created, updated, study, trial,"
            " slots, fault) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                job_id,
                kind.collection,
                location.project,
                location.number,
                location.region,
                json.dumps(spec),
                QUEUED,
                now,
                now,
                study,
                trial,
                slots,
                None if fault is None else json.dumps(asdict(fault)),
            ),
        )
        job = self.get_job(job_id)
        assert job is not None
        return job

    def get_job(self, job_id: str) -> Job | None:
        """A job by its id."""
        row = self._connection.execute("SELECT * FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return _job(row) if row else None

    def list_jobs(
        self, kind: Kind | None = None, location: Location | None = None, before: int | None = None
    ) -> Iterator[Job]:
        """The jobs that clients created (no trials' jobs), the newest first, those older than `before`."""
        where, values = ["study IS NULL"], list[Any]()
        if kind is not None:
            where.append("collection = ?")
            values.append(kind.collection)
        if location is not None:
            where.append("number = ? AND region = ?")
            values += [location.number, location.region]
        if before is not None:
            where.append("sequence < ?")
            values.append(before)
        query = f"SELECT * FROM jobs WHERE {' AND '.join(where)} ORDER BY sequence DESC"
        for row in self._connection.execute(query, values):
            yield _job(row)

    def list_unfinished_jobs(self) -> list[str]:
        """Ids of all jobs that are not in a terminal state, trials' jobs too."""
        marks = ", ".join("?" * len(_UNFINISHED))
        rows = self._connection.execute(f"SELECT id FROM jobs WHERE state IN ({marks}) ORDER BY sequence", _UNFINISHED)
        return [row["id"] for row in rows]

    def update_job(self, job: Job, **columns: Any) -> Job:
        """Set columns of a job; its update time moves on by at least a microsecond."""
        now = max(now_ns(), job.updated + 1000)
        values: dict[str, Any] = {"updated": now}
        for name, value in columns.items():
            if isinstance(value, Ending):
                value = json.dumps([value.state, value.code, value.message, value.at])
            if isinstance(value, RestartHistory):
                value = json.dumps(asdict(value))
            values[name] = json.dumps(value) if name == "replica_outcomes" else value
            if name in ("started", "ended"):
                values[name] = max(value, job.created if name == "started" else job.started or job.created)
                values["updated"] = max(values["updated"], values[name])
        assignments = ", ".join(f"{name} = ?" for name in values)
        self._connection.execute(f"UPDATE jobs SET {assignments} WHERE id = ?", (*values.values(), job.id))
        changed = self.get_job(job.id)
        assert changed is not None
        return changed

    def end_job(self, job: Job, ending: Ending, **columns: Any) -> None:
        """Bring a job to its terminal state, and log the service's final messages."""
        self.log_service_message(job.id, ending.final_log_message)
        if ending.state == FAILED:
            self.log_service_message(job.id, ending.message, "ERROR")
        self.update_job(job, state=ending.state, ending=ending, ended=now_ns(), **columns)

    def delete_job(self, job: Job) -> None:
        """Delete a job with its trials, their jobs and its messages."""
        self._connection.execute("DELETE FROM jobs WHERE id = ?", (job.id,))

    def list_trials(self, study: str) -> list[Trial]:
        """The trials of a tuning job, by number."""
        rows = self._connection.execute("SELECT * FROM trials WHERE study = ? ORDER BY number", (study,))
        return [_trial(row) for row in rows]

    def count_ended_trials(self, study: str) -> int:
        """Count the trials of a tuning job that have ended."""
        query = "SELECT count(*) FROM trials WHERE study = ? AND state IN ('SUCCEEDED', 'INFEASIBLE')"
        return int(self._connection.execute(query, (study,)).fetchone()[0])

    def get_trial_jobs(self, study: str) -> dict[str, Job]:
        """The jobs of a study's trials, by id."""
        rows = self._connection.execute("SELECT * FROM jobs WHERE study = ?", (study,))
        return {row["id"]: _job(row) for row in rows}

    def get_unfinished_trial_jobs(self, study: str) -> dict[str, Job]:
        """The jobs of a study's trials that have not ended, by id."""
        rows = self._connection.execute(
            "SELECT jobs.* FROM trials JOIN jobs ON jobs.id = trials.job"
            " WHERE trials.study = ? AND trials.state NOT IN ('SUCCEEDED', 'INFEASIBLE')",
            (study,),
        )
        return {row["id"]: _job(row) for row in rows}

    def add_trial(self, trial: Trial) -> None:
        """A new trial; its job is added in the same transaction."""
        self._connection.execute(
            "INSERT INTO trials (study, number, state, parameters, job) VALUES (?, ?, ?, ?, ?)",
            (trial.study, trial.number, trial.state, json.dumps(dict(trial.parameters)), trial.job),
        )

    def update_trial(self, trial: Trial) -> None:
        """Write a trial's state, times and measurements."""
        self._connection.execute(
            "UPDATE trials SET state = ?, started = ?, ended = ?, measurements = ?, final = ?, infeasible_reason = ?"
            " WHERE study = ? AND number = ?",
            (
                trial.state,
                trial.started,
                trial.ended,
                json.dumps(trial.measurements),
                None if trial.final is None else json.dumps(trial.final),
                trial.infeasible_reason,
                trial.study,
                trial.number,
            ),
        )

    def log_service_message(self, job_id: str, text: str, severity: str = "INFO") -> None:
        """Add a message of the service to a job's log."""
        self._connection.execute(
            "INSERT INTO service_messages (job, at, severity, text) VALUES (?, ?, ?, ?)",
            (job_id, now_ns(), severity, text),
        )

    def list_service_messages(self, job_id: str) -> list[ServiceMessage]:
        """List the service's messages in a job's log, oldest first."""
        rows = self._connection.execute("SELECT * FROM service_messages WHERE job = ? ORDER BY sequence", (job_id,))
        return [ServiceMessage(row["at"], row["sequence"], row["severity"], row["text"]) for row in rows]


def _job(row: sqlite3.Row) -> Job:
    return Job(
        id=row["id"],
        sequence=row["sequence"],
        kind=KINDS[row["collection"]],
        location=Location(row["project"], row["region"]),
        spec=from_json(row["spec"]),
        state=row["state"],
        created=row["created"],
        updated=row["updated"],
        started=row["started"],
        ended=row["ended"],
        ending=Ending(*from_json(row["ending"])) if row["ending"] else None,
        study=row["study"],
        trial=row["trial"],
        replica_outcomes=tuple(from_json(row["replica_outcomes"])),
        restarts=RestartHistory(**from_json(row["restarts"])),
        fault=InjectedFault(**from_json(row["fault"])) if row["fault"] else None,
    )


def _trial(row: sqlite3.Row) -> Trial:
    return Trial(
        study=row["study"],
        number=row["number"],
        state=row["state"],
        parameters=from_json(row["parameters"]),
        job=row["job"],
        started=row["started"],
        ended=row["ended"],
        measurements=tuple(from_json(row["measurements"])),
        final=from_json(row["final"]) if row["final"] else None,
        infeasible_reason=row["infeasible_reason"],
    )
