"""Jobs of every kind: states and log lines, trials, progress of pipelines, the queue, and injected faults."""

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, Kind
from vertex_api.schedules import NAME_LABEL
from vertex_emulator.database import records
from vertex_emulator.database.records import (
    CANCELLED,
    CANCELLING,
    FAILED,
    PENDING,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    Ending,
    Job,
    ModelVersion,
    PipelineProgress,
    Replica,
    RestartHistory,
    ServiceMessage,
    Table,
    Trial,
)
from vertex_emulator.errors import JobAmbiguous
from vertex_emulator.faults import RUN_FAULT_KINDS, InjectedFault, UnnoticedFailure
from vertex_emulator.names import Location
from vertex_emulator.times import now_ns

PROVISIONING_TEXTS = (
    "Vertex AI is provisioning job running framework. First time usage might take couple of minutes, "
    "and subsequent runs can be much faster.",
    "Vertex AI is setting up this job.",
)
LAUNCH_TEXTS = ("Waiting for training program to start.", "Job is preparing.")
"""What the service logs, as for real jobs (docs/fidelity.md), when a custom job leaves the queue, before it starts."""
_TEAR_DOWN_TEXTS = {
    SUCCEEDED: ("Tearing down training program.", "Finished tearing down training program."),
    FAILED: ("Finished tearing down training program.",),
    CANCELLED: (),
}
_FINAL_TEXTS = {SUCCEEDED: "Job completed successfully.", FAILED: "Job failed.", CANCELLED: "Job is cancelled."}

_FULL_NAME = re.compile("projects/[^/]+/locations/")
_ACTIVE = f"('{PENDING}', '{RUNNING}', '{CANCELLING}')"
_UNFINISHED = f"('{QUEUED}', '{PENDING}', '{RUNNING}', '{CANCELLING}')"
_IS_OLD = "{0}.state NOT IN " + _UNFINISHED + " AND coalesce({0}.ended, {0}.updated) < :before"
_OLD_JOBS = f"""
SELECT id FROM jobs WHERE study IS NULL AND {_IS_OLD.format("jobs")} AND NOT EXISTS (
  SELECT 1 FROM pipelines JOIN jobs AS owner ON owner.id = pipelines.pipeline
  WHERE pipelines.job = jobs.id AND NOT ({_IS_OLD.format("owner")})
) ORDER BY sequence
"""


class Jobs(Table):
    """The statements on jobs, and on the service's messages in their logs."""

    def add(
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
        now, replicas = now_ns(), records.requested_replicas(kind, spec)
        fault = Faults(self._connection).take_for_run(spec["displayName"], replicas, records.machine_types(kind, spec))
        self._insert(
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
            fault=fault,
        )
        return self._require(job_id)

    def get(self, job_id: str) -> Job | None:
        """Return a job by its id; None if it does not exist."""
        row = self._first("SELECT * FROM jobs WHERE id = ?", job_id)
        return _parse(row) if row else None

    def display_names(self, most: int) -> list[str]:
        """Return the display names of jobs, without any twice, of so many of the newest."""
        rows = self._connection.execute(
            "SELECT json_extract(spec, '$.displayName') AS name FROM jobs ORDER BY sequence DESC LIMIT ?", (most,)
        )
        return [*dict.fromkeys(str(row["name"]) for row in rows)]

    def find(self, reference: str) -> Job | None:
        """Return a job by its id or full name, else the newest with a display name, or that a stack declares by it.

        Raises JobAmbiguous if jobs of several kinds have the name.
        """
        if job := self.get(reference.rpartition("/")[2] if _FULL_NAME.match(reference) else reference):
            return job
        found = [job for kind in KINDS.values() if (job := next(self._named(reference, kind), None))]
        if len(found) > 1:
            kinds = ", ".join(f"{each.kind.collection}/{each.id}" for each in found)
            raise JobAmbiguous(f'jobs of several kinds are called "{reference}": {kinds}; give one of these ids')
        return found[0] if found else None

    def _named(self, name: str, kind: Kind) -> Iterator[Job]:
        for job in self.created(kind, string_in_spec=name):
            is_declared = job.spec.get("labels", {}).get(NAME_LABEL) == name
            # The job of a pipeline has its labels.
            if job.spec["displayName"] == name or (is_declared and not Pipelines(self._connection).of_job(job.id)):
                yield job

    def _require(self, job_id: str) -> Job:
        job = self.get(job_id)
        assert job is not None
        return job

    def created(
        self,
        kind: Kind | None = None,
        location: Location | None = None,
        before_sequence: int | None = None,
        state: str | None = None,
        string_in_spec: str | None = None,
    ) -> Iterator[Job]:
        """Yield jobs that clients created (no trials' jobs), newest first, with sequences below `before_sequence`.

        `string_in_spec` is a string that occurs somewhere in the spec: SQLite looks for it in a tenth of the time that
        parsing the spec takes.
        """
        conditions: dict[str, Any] = {}
        if kind is not None:
            conditions["collection = ?"] = kind.collection
        if location is not None:
            conditions |= {"number = ?": location.project_number, "region = ?": location.region}
        if before_sequence is not None:
            conditions["sequence < ?"] = before_sequence
        if state is not None:
            conditions["state = ?"] = state
        if string_in_spec is not None:
            conditions["instr(spec, ?)"] = json.dumps(string_in_spec)
        where = " AND ".join(["study IS NULL", *conditions])
        query = f"SELECT * FROM jobs WHERE {where} ORDER BY sequence DESC"
        return map(_parse, self._connection.execute(query, [*conditions.values()]))

    def count_by_state(self) -> dict[str, int]:
        """Count the jobs that clients created by their states, the state of the newest job first."""
        query = "SELECT state, count(*) FROM jobs WHERE study IS NULL GROUP BY state ORDER BY max(sequence) DESC"
        return dict(self._connection.execute(query).fetchall())

    def missing(self, ids: Iterable[str]) -> set[str]:
        """Return those of some ids that are of no job, also of no trial's."""
        return set(ids) - {row["id"] for row in self._connection.execute("SELECT id FROM jobs")}

    def unfinished(self) -> list[str]:
        """List the ids of all jobs that are not in a terminal state, trials' jobs too."""
        rows = self._connection.execute(f"SELECT id FROM jobs WHERE state IN {_UNFINISHED} ORDER BY sequence")
        return [row["id"] for row in rows]

    def old(self, ended_before: int) -> list[str]:
        """List ids of jobs that ended before a time, without the jobs of trials and of pipelines that are not old."""
        return [row["id"] for row in self._connection.execute(_OLD_JOBS, {"before": ended_before})]

    def of_study(self, study: str) -> list[Job]:
        """List the jobs of a study's trials."""
        return [_parse(row) for row in self._connection.execute("SELECT * FROM jobs WHERE study = ?", (study,))]

    def running_trials(self, study: str) -> dict[str, Job]:
        """Return the jobs of a study's trials that have not ended, by id."""
        rows = self._connection.execute(
            "SELECT jobs.* FROM trials JOIN jobs ON jobs.id = trials.job"
            " WHERE trials.study = ? AND trials.state NOT IN ('SUCCEEDED', 'INFEASIBLE')",
            (study,),
        )
        return {row["id"]: _parse(row) for row in rows}

    def with_trials(self, ids: Sequence[str]) -> list[str]:
        """List the given ids, and those of the jobs of their trials."""
        query = "SELECT id FROM jobs WHERE study = ?"
        return [*ids, *(row["id"] for study in ids for row in self._connection.execute(query, (study,)))]

    def update(self, job: Job, **columns: Any) -> Job:
        """Set columns of a job and return the new Job; its update time increases by at least a microsecond."""
        if "started" in columns:
            columns["started"] = max(columns["started"], job.created)
        if "ended" in columns:
            columns["ended"] = max(columns["ended"], job.started or job.created)
        if "ending" in columns:
            columns["ending"] = astuple(columns["ending"])
        columns["updated"] = max(now_ns(), job.updated + 1000, columns.get("started", 0), columns.get("ended", 0))
        self._update("jobs", {"id": job.id}, **columns)
        return self._require(job.id)

    def end(self, job: Job, ending: Ending, **columns: Any) -> None:
        """Set a job's terminal state, and log the service's final messages: its error line by line, the outcome."""
        if ending.state == FAILED:
            for line in filter(str.strip, ending.message.splitlines()):
                self.log(job.id, line, "ERROR")
        has_program = job.kind == CUSTOM_JOB and job.state != QUEUED
        for text in (*(_TEAR_DOWN_TEXTS[ending.state] if has_program else ()), _FINAL_TEXTS[ending.state]):
            self.log(job.id, text)
        self.update(job, state=ending.state, ending=ending, ended=now_ns(), **columns)

    def delete(self, *ids: str) -> None:
        """Delete jobs with their trials, the trials' jobs, and all messages."""
        self._connection.executemany("DELETE FROM jobs WHERE id = ?", [(job_id,) for job_id in ids])

    def log(self, job_id: str, text: str, severity: str = "INFO") -> None:
        """Add a message of the service to a job's log."""
        self._insert("service_messages", job=job_id, at=now_ns(), severity=severity, text=text)

    def messages(self, job_id: str) -> list[ServiceMessage]:
        """List the service's messages in a job's log, oldest first."""
        rows = self._connection.execute("SELECT * FROM service_messages WHERE job = ? ORDER BY sequence", (job_id,))
        return [ServiceMessage(row["at"], row["sequence"], row["severity"], row["text"]) for row in rows]


_NO_RESTARTS = RestartHistory()
_get_location = lru_cache(Location)  # a search reads thousands of jobs


def _parse(row: sqlite3.Row) -> Job:
    names = ("id", "sequence", "state", "created", "updated", "started", "ended", "study", "trial")
    return Job(
        **{name: row[name] for name in names},
        kind=KINDS[row["collection"]],
        location=_get_location(row["project"], row["region"]),
        spec=from_json(row["spec"]),
        ending=Ending(*from_json(row["ending"])) if row["ending"] else None,
        replica_outcomes=tuple(from_json(row["replica_outcomes"])),
        restarts=_parse_restarts(row["restarts"]) if row["restarts"] != "{}" else _NO_RESTARTS,
        fault=InjectedFault(**from_json(row["fault"])) if row["fault"] else None,
    )


def _parse_restarts(text: str) -> RestartHistory:
    columns = from_json(text)
    failure = columns.pop("unnoticed_failure", None)  # absent in the database of an earlier checkout
    return RestartHistory(**columns, unnoticed_failure=UnnoticedFailure(**failure) if failure else None)


class Trials(Table):
    """The statements on the trials of a study (a tuning job's id); the job of a trial is a row among the jobs."""

    def all(self, study: str) -> list[Trial]:
        """List the trials by number."""
        return list(self.iterate(study))

    def iterate(self, study: str) -> Iterator[Trial]:
        """Yield what `all` lists, one at a time."""
        return map(
            _parse_trial, self._connection.execute("SELECT * FROM trials WHERE study = ? ORDER BY number", (study,))
        )

    def summaries(self, study: str) -> list[Trial]:
        """List the trials by number, as if they had no measurements, which take most of the time."""
        query = (
            "SELECT study, number, state, parameters, job, started, ended, '[]' AS measurements, final,"
            " infeasible_reason FROM trials WHERE study = ? ORDER BY number"
        )
        return [_parse_trial(row) for row in self._connection.execute(query, (study,))]

    def measurements(self, study: str, number: int) -> tuple[dict[str, Any], ...]:
        """List the measurements of a trial."""
        row = self._first("SELECT measurements FROM trials WHERE study = ? AND number = ?", study, number)
        return tuple(from_json(row["measurements"])) if row else ()

    def count_ended(self, study: str) -> int:
        """Count the trials that have ended."""
        query = "SELECT count(*) FROM trials WHERE study = ? AND state IN ('SUCCEEDED', 'INFEASIBLE')"
        return int(self._connection.execute(query, (study,)).fetchone()[0])

    def add(self, trial: Trial) -> None:
        """Add a trial; add its job in the same transaction."""
        names = ("study", "number", "state", "parameters", "job")
        self._insert("trials", **{name: getattr(trial, name) for name in names})

    def update(self, trial: Trial) -> None:
        """Write a trial's state, times and measurements."""
        names = ("state", "started", "ended", "measurements", "final", "infeasible_reason")
        key = {"study": trial.study, "number": trial.number}
        self._update("trials", key, **{name: getattr(trial, name) for name in names})


def _parse_trial(row: sqlite3.Row) -> Trial:
    # By position, as a page of studies has thousands: the columns of the table are the fields of the record.
    study, number, state, parameters, job, started, ended, measurements, final, reason = row
    measured, final = tuple(from_json(measurements)), from_json(final) if final else None
    return Trial(study, number, state, from_json(parameters), job, started, ended, measured, final, reason)


class Pipelines(Table):
    """The statements on the progress of pipelines; a pipeline itself is a row among the jobs."""

    def get(self, pipeline: str) -> PipelineProgress | None:
        """Return the progress of a pipeline; None if it has no job yet."""
        return self.progress([pipeline]).get(pipeline)

    def progress(self, pipelines: Sequence[str]) -> dict[str, PipelineProgress]:
        """Return the progress of pipelines by id, without those that have no job yet."""
        marks = ", ".join("?" * len(pipelines))
        rows = self._connection.execute(f"SELECT * FROM pipelines WHERE pipeline IN ({marks})", tuple(pipelines))
        return {row["pipeline"]: _progress(row) for row in rows}

    def of_job(self, job_id: str) -> str | None:
        """Return the id of the pipeline whose task a job runs; None if there is none."""
        row = self._first("SELECT pipeline FROM pipelines WHERE job = ?", job_id)
        return row["pipeline"] if row else None

    def add(self, pipeline: str, job_id: str) -> None:
        """Store which job runs a pipeline's task; add the job in the same transaction."""
        self._insert("pipelines", pipeline=pipeline, job=job_id)

    def set_model(self, pipeline: str, version: ModelVersion) -> None:
        """Store which version of a model a pipeline uploaded."""
        self._update("pipelines", {"pipeline": pipeline}, model=f"{version.model_name}@{version.version}")

    def set_best_trial(self, pipeline: str, job_id: str) -> None:
        """Store the job of the best trial that a pipeline's tuning job found."""
        self._update("pipelines", {"pipeline": pipeline}, best_trial_job=job_id)


def _progress(row: sqlite3.Row) -> PipelineProgress:
    # Data folders of earlier checkouts have names without a version.
    model, _, version = (row["model"] or "").partition("@")
    return PipelineProgress(row["job"], model or None, row["best_trial_job"], version or None)


@dataclass(frozen=True)
class QueuedJob:
    """A custom job in the queue.

    `owner` is its study, else the job itself. `since` is when (ns) the job was created or, if that is later, when a
    trial of its study last left the queue. `slots` is the number of replicas that the job needs.
    """

    id: str
    owner: str
    since: int
    slots: int


class Queue(Table):
    """The statements on the queue: the jobs that wait for room, and the room that others occupy."""

    def occupied(self) -> dict[str, int]:
        """Count the replicas of the jobs that have left the queue and not yet ended, by owner."""
        rows = self._connection.execute(
            "SELECT coalesce(study, id) AS owner, sum(slots) AS slots FROM jobs"
            f" WHERE state IN {_ACTIVE} AND collection = ? GROUP BY owner",
            (CUSTOM_JOB.collection,),
        )
        return {row["owner"]: row["slots"] for row in rows}

    def candidates(self, limit_per_study: int) -> list[QueuedJob]:
        """List at most that many queued jobs of no study and as many of each study, those that wait longest first.

        The cost does not grow with the length of the queue.
        """
        owners = self._connection.execute(
            f"SELECT id, served FROM jobs WHERE state IN {_ACTIVE} AND collection = ? UNION ALL SELECT NULL, NULL",
            (HYPERPARAMETER_TUNING_JOB.collection,),
        ).fetchall()
        found = []
        for study, served in owners:
            rows = self._connection.execute(
                "SELECT sequence, id, created, slots FROM jobs"
                f" WHERE state = '{QUEUED}' AND collection = ? AND study IS ? ORDER BY sequence LIMIT ?",
                (CUSTOM_JOB.collection, study, limit_per_study),
            )
            for sequence, job, created, slots in rows:
                since = max(created, served or 0)
                found.append((since, sequence, QueuedJob(job, study or job, since, slots)))
        return [queued for _, _, queued in sorted(found, key=lambda candidate: candidate[:2])]

    def record_admission(self, job: Job) -> None:
        """Record that a job leaves the queue now, for its study if it has one."""
        self._update("jobs", {"id": job.study or job.id}, served=now_ns())


class Faults(Table):
    """The statements on injected faults that wait for jobs, which use them up in the order of injection."""

    def add(self, fault: InjectedFault) -> None:
        """Store a fault for the next jobs."""
        self._insert("injected_faults", remaining=fault.count, fault=fault)

    def pending(self) -> list[tuple[int, InjectedFault]]:
        """List the pending faults, the oldest first, each with the number of jobs that it will still hit."""
        rows = self._connection.execute("SELECT remaining, fault FROM injected_faults ORDER BY sequence")
        return [(row["remaining"], InjectedFault(**json.loads(row["fault"]))) for row in rows]

    def take(self, kind: str, display_name: str) -> InjectedFault | None:
        """Use the oldest fault of a kind that hits a job of that name once, and return it; None without one."""
        return self._take(lambda fault: fault.kind == kind and fault.matches(display_name))

    def take_for_run(
        self, display_name: str, replicas: Sequence[Replica], machine_types: Collection[str]
    ) -> InjectedFault | None:
        """Use the oldest fault that hits a custom job with these replicas once, and return it; None without one."""
        tasks = {replica.task_name for replica in replicas}
        return self._take(
            lambda fault: (
                fault.kind in RUN_FAULT_KINDS
                and fault.matches(display_name)
                and fault.task_name in tasks
                and (fault.machine_type is None or fault.machine_type in machine_types)
            )
        )

    def _take(self, is_match: Callable[[InjectedFault], bool]) -> InjectedFault | None:
        for row in self._connection.execute("SELECT * FROM injected_faults ORDER BY sequence").fetchall():
            fault = InjectedFault(**json.loads(row["fault"]))
            if is_match(fault):
                self._update("injected_faults", {"sequence": row["sequence"]}, remaining=row["remaining"] - 1)
                self._connection.execute("DELETE FROM injected_faults WHERE remaining < 1")
                return fault
        return None

    def clear(self) -> int:
        """Delete all pending faults and return their number."""
        return self._connection.execute("DELETE FROM injected_faults").rowcount
