"""The statements on jobs of every kind, also on the jobs of trials, and on the service's messages in their logs."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from vertex_api.job_kinds import CUSTOM_JOB, KINDS, Kind
from vertex_emulator.database import records
from vertex_emulator.database.injected_fault_statements import InjectedFaults
from vertex_emulator.database.job_queue_statements import ACTIVE
from vertex_emulator.database.records import PENDING, QUEUED, Ending, Job, RestartHistory, ServiceMessage
from vertex_emulator.database.service_message_texts import iterate_closing_severities_and_texts
from vertex_emulator.database.statement_base import Statements, encode_values
from vertex_emulator.faults import InjectedFault, UnnoticedFailure
from vertex_emulator.names import Location
from vertex_emulator.times import now_ns

_UNFINISHED = (QUEUED, *ACTIVE)
_NO_RESTARTS = RestartHistory()
_get_location = lru_cache(Location)  # a search reads thousands of jobs


class JobStatements(Statements):
    """The statements on jobs, and on the service's messages in their logs."""

    def add_job_and_consume_fault(
        self,
        job_id: str,
        kind: Kind,
        location: Location,
        spec: Mapping[str, Any],
        study: str | None = None,
        trial: int | None = None,
    ) -> Job:
        """Add a job, with the pending fault that matches it, if any.

        A custom job waits in the queue, while tuning jobs and pipelines are PENDING at once: their jobs wait.
        """
        now, replicas = now_ns(), records.list_requested_replicas(kind, spec)
        self._insert_row(
            "jobs",
            id=job_id,
            collection=kind.collection,
            **location.columns(),
            spec=spec,
            state=QUEUED if kind == CUSTOM_JOB else PENDING,
            created=now,
            updated=now,
            study=study,
            trial=trial,
            slots=len(replicas),
            fault=InjectedFaults(self._connection).consume_run_fault_or_none(
                spec["displayName"], replicas, records.get_custom_job_machine_types_or_empty(kind, spec)
            ),
        )
        return self._get_existing_job(job_id)

    def get_job(self, job_id: str) -> Job | None:
        """Return a job by its id; None if it does not exist."""
        row = self._select_first("SELECT * FROM jobs WHERE id = ?", job_id)
        return _parse_job(row) if row else None

    def iterate_non_trial_jobs(
        self,
        kind: Kind | None = None,
        location: Location | None = None,
        before_sequence: int | None = None,
        state: str | None = None,
        string_in_spec: str | None = None,
    ) -> Iterator[Job]:
        """List jobs that clients created (no trials' jobs), newest first, with sequences below `before_sequence`.

        `string_in_spec` is a string that occurs somewhere in the spec: SQLite looks for it in a tenth of the time that
        parsing the spec takes.
        """
        conditions: list[tuple[str, Any]] = []
        if kind is not None:
            conditions.append(("collection = ?", kind.collection))
        if location is not None:
            conditions += [("number = ?", location.project_number), ("region = ?", location.region)]
        if before_sequence is not None:
            conditions.append(("sequence < ?", before_sequence))
        if state is not None:
            conditions.append(("state = ?", state))
        if string_in_spec is not None:
            conditions.append(("instr(spec, ?)", json.dumps(string_in_spec)))
        where = " AND ".join(["study IS NULL", *(condition for condition, _ in conditions)])
        query = f"SELECT * FROM jobs WHERE {where} ORDER BY sequence DESC"
        return map(_parse_job, self._connection.execute(query, [value for _, value in conditions]))

    def count_non_trial_jobs_by_state(self) -> dict[str, int]:
        """Count the jobs that clients created by their states, the state of the newest job first."""
        query = "SELECT state, count(*) FROM jobs WHERE study IS NULL GROUP BY state ORDER BY max(sequence) DESC"
        return dict(self._connection.execute(query).fetchall())

    def find_ids_without_job(self, ids: Iterable[str]) -> set[str]:
        """Return those of some ids that are of no job, also of no trial's."""
        return set(ids) - {row["id"] for row in self._connection.execute("SELECT id FROM jobs")}

    def list_unfinished_job_ids(self) -> list[str]:
        """List the ids of all jobs that are not in a terminal state, trials' jobs too."""
        marks = ", ".join("?" * len(_UNFINISHED))
        rows = self._connection.execute(f"SELECT id FROM jobs WHERE state IN ({marks}) ORDER BY sequence", _UNFINISHED)
        return [row["id"] for row in rows]

    def update_and_get_job(self, job: Job, **columns: Any) -> Job:
        """Set columns of a job and return the new Job; its update time increases by at least a microsecond."""
        if "started" in columns:
            columns["started"] = max(columns["started"], job.created)
        if "ended" in columns:
            columns["ended"] = max(columns["ended"], job.started or job.created)
        if "ending" in columns:
            columns["ending"] = astuple(columns["ending"])
        columns["updated"] = max(now_ns(), job.updated + 1000, columns.get("started", 0), columns.get("ended", 0))
        changes = ", ".join(f"{name} = ?" for name in columns)
        self._connection.execute(f"UPDATE jobs SET {changes} WHERE id = ?", (*encode_values(columns.values()), job.id))
        return self._get_existing_job(job.id)

    def end_job_and_log_outcome(self, job: Job, ending: Ending, **columns: Any) -> None:
        """Set a job's terminal state, and log the service's final messages, errors first."""
        has_program = job.kind == CUSTOM_JOB and job.state != QUEUED
        for severity, text in iterate_closing_severities_and_texts(ending, has_program):
            self.log_service_message(job.id, text, severity)
        self.update_and_get_job(job, state=ending.state, ending=ending, ended=now_ns(), **columns)

    def log_service_message(self, job_id: str, text: str, severity: str = "INFO") -> None:
        """Add a message of the service to a job's log."""
        self._insert_row("service_messages", job=job_id, at=now_ns(), severity=severity, text=text)

    def list_service_messages(self, job_id: str) -> list[ServiceMessage]:
        """List the service's messages in a job's log, oldest first."""
        rows = self._connection.execute("SELECT * FROM service_messages WHERE job = ? ORDER BY sequence", (job_id,))
        return [ServiceMessage(row["at"], row["sequence"], row["severity"], row["text"]) for row in rows]

    def delete_job_with_trials(self, job: Job) -> None:
        """Delete a job with its trials, their jobs and its messages."""
        self._connection.execute("DELETE FROM jobs WHERE id = ?", (job.id,))

    def list_trial_jobs(self, study_id: str) -> list[Job]:
        """List the jobs of a study's trials."""
        return [_parse_job(row) for row in self._connection.execute("SELECT * FROM jobs WHERE study = ?", (study_id,))]

    def get_jobs_of_unfinished_trials_by_job_id(self, study_id: str) -> dict[str, Job]:
        """Return the jobs of a study's trials that have not ended, by id."""
        rows = self._connection.execute(
            "SELECT jobs.* FROM trials JOIN jobs ON jobs.id = trials.job"
            " WHERE trials.study = ? AND trials.state NOT IN ('SUCCEEDED', 'INFEASIBLE')",
            (study_id,),
        )
        return {row["id"]: _parse_job(row) for row in rows}

    def _get_existing_job(self, job_id: str) -> Job:
        job = self.get_job(job_id)
        assert job is not None
        return job


def _parse_job(row: sqlite3.Row) -> Job:
    names = ("id", "sequence", "state", "created", "updated", "started", "ended", "study", "trial")
    return Job(
        **{name: row[name] for name in names},
        kind=KINDS[row["collection"]],
        location=_get_location(row["project"], row["region"]),
        spec=from_json(row["spec"]),
        ending=Ending(*from_json(row["ending"])) if row["ending"] else None,
        replica_outcomes=tuple(from_json(row["replica_outcomes"])),
        restarts=_parse_restart_history(row["restarts"]) if row["restarts"] != "{}" else _NO_RESTARTS,
        fault=InjectedFault(**from_json(row["fault"])) if row["fault"] else None,
    )


def _parse_restart_history(text: str) -> RestartHistory:
    columns = from_json(text)
    failure = columns.pop("unnoticed_failure", None)  # absent in the database of an earlier checkout
    return RestartHistory(**columns, unnoticed_failure=UnnoticedFailure(**failure) if failure else None)
