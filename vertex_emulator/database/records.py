"""What the tables hold, as values: jobs, replicas, trials, models, operations, service messages, schedules and runs.

`Table` writes them; each of its subclasses has the statements on one table.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from itertools import islice
from typing import Any, Literal

from pydantic_core import from_json

from vertex_api.jobspec import is_reduction_server, replica_count
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TERMINAL_STATES, Kind, ResourceName
from vertex_api.schedules import ScheduledJob, ScheduleRequest
from vertex_emulator.faults import InjectedFault, UnnoticedFailure
from vertex_emulator.names import Location
from vertex_emulator.times import now_ns

QUEUED = "JOB_STATE_QUEUED"
PENDING = "JOB_STATE_PENDING"
RUNNING = "JOB_STATE_RUNNING"
CANCELLING = "JOB_STATE_CANCELLING"
SUCCEEDED = "JOB_STATE_SUCCEEDED"
FAILED = "JOB_STATE_FAILED"
CANCELLED = "JOB_STATE_CANCELLED"
SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
"""Of log entries, in their order (Cloud Logging, "LogSeverity")."""

RunState = Literal["RUNNING", "SUCCEEDED", "FAILED", "SKIPPED"]
TrialState = Literal["REQUESTED", "ACTIVE", "STOPPING", "SUCCEEDED", "INFEASIBLE"]


@dataclass(frozen=True)
class Ending:
    """How a job ends, decided once and stored while its containers are being stopped.

    `state` is terminal, `code` and `message` are the google.rpc.Status (0 and "" for success), `at` is the time of the
    decision in ns.
    """

    state: str
    code: int
    message: str
    at: int

    @property
    def error(self) -> dict[str, Any] | None:
        """The job's `error`, which only failed and cancelled jobs have."""
        return {"code": self.code, "message": self.message} if self.state in (FAILED, CANCELLED) else None


@dataclass(frozen=True, order=True)
class Replica:
    """One container of a job: its pool, its index in the pool, and the number of the attempt."""

    pool: int
    index: int
    attempt: int = 0

    @property
    def task_name(self) -> str:
        """The name in logs and errors, for example `workerpool0-0`."""
        return f"workerpool{self.pool}-{self.index}"

    @property
    def first_attempt(self) -> "Replica":
        """The same place at attempt 0."""
        return replace(self, attempt=0)


@dataclass(frozen=True)
class RestartHistory:
    """How often a job, or single replicas of it, were restarted.

    `retries` and `preemptions` count restarts of the whole job after transient errors and preemptions. By task,
    `workers` counts restarts of single replicas since the last retry, and `attempts` has the current attempts above 0.
    `restarting_since` is when the current restart was decided (ns), None without one. `unnoticed_failure` is set from a
    container's first exit on if an injected fault starts it again in place.
    """

    retries: int = 0
    preemptions: int = 0
    workers: Mapping[str, int] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    restarting_since: int | None = None
    unnoticed_failure: UnnoticedFailure | None = None


@dataclass(frozen=True)
class Job:
    """A custom job, a tuning job or a training pipeline.

    `spec` is the request in canonical form (camelCase, enum names). Times are ns since 1970. A trial's job has the
    tuning job's id as `study` and the trial's number as `trial`. `replica_outcomes` has the final statuses of an ended
    job's containers, one object per replica and attempt. `fault` is the fault that was injected into the job.
    """

    id: str
    sequence: int
    kind: Kind
    location: Location
    spec: Mapping[str, Any]
    state: str
    created: int
    updated: int
    started: int | None = None
    ended: int | None = None
    ending: Ending | None = None
    study: str | None = None
    trial: int | None = None
    replica_outcomes: tuple[Mapping[str, Any], ...] = ()
    restarts: RestartHistory = RestartHistory()
    fault: InjectedFault | None = None

    @property
    def name(self) -> str:
        """The resource name, with the project's number."""
        return str(ResourceName(self.location.project_number, self.location.region, self.kind, self.id))

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended."""
        return self.state in TERMINAL_STATES

    @property
    def is_stopped_study(self) -> bool:
        """Whether this is a study that has stopped and waits until its last trials end."""
        stopped = self.ending is not None and self.ending.state == SUCCEEDED
        return stopped and self.kind == HYPERPARAMETER_TUNING_JOB and not self.is_terminal

    @property
    def owner(self) -> tuple[Kind, str]:
        """Kind and id of the resource that users see: for a trial's job, the tuning job; else the job itself."""
        return (HYPERPARAMETER_TUNING_JOB, self.study) if self.study else (self.kind, self.id)

    @property
    def requested_replicas(self) -> list[Replica]:
        """The replicas of a custom job's spec, at attempt 0; none for other jobs."""
        return requested_replicas(self.kind, self.spec)

    @property
    def current_replicas(self) -> list[Replica]:
        """The replicas that should run now, each at its current attempt."""
        return [
            replace(first, attempt=self.restarts.attempts.get(first.task_name, 0)) for first in self.requested_replicas
        ]

    @property
    def all_replicas(self) -> list[Replica]:
        """Every container that the job may have had: each replica at every attempt so far."""
        current = self.current_replicas
        return [replace(replica, attempt=attempt) for replica in current for attempt in range(replica.attempt + 1)]

    @property
    def scheduling(self) -> Mapping[str, Any]:
        """The Scheduling of a custom job, `{}` by default; other jobs have none of their own."""
        return self.spec["jobSpec"].get("scheduling", {})  # type: ignore[no-any-return]


def requested_replicas(kind: Kind, spec: Mapping[str, Any]) -> list[Replica]:
    """List the replicas of a custom job's spec; none for other jobs.

    A Reduction Server pool has none here: it only helps GPUs, and its image is not available outside Google Cloud.
    """
    pools = enumerate(spec["jobSpec"]["workerPoolSpecs"] if kind == CUSTOM_JOB else ())
    started = [(number, pool) for number, pool in pools if pool and not is_reduction_server(pool)]
    return [Replica(number, index) for number, pool in started for index in range(replica_count(pool))]


def machine_types(kind: Kind, spec: Mapping[str, Any]) -> set[str]:
    """Return the machine types of a custom job's spec; none for other jobs."""
    pools = spec["jobSpec"]["workerPoolSpecs"] if kind == CUSTOM_JOB else ()
    return {pool.get("machineSpec", {}).get("machineType", "") for pool in pools if pool}


@dataclass(frozen=True)
class Trial:
    """One trial of a study; `measurements` are the API's Measurement objects, in canonical form."""

    study: str
    number: int
    state: TrialState
    parameters: Mapping[str, float | int | str]
    job: str
    started: int | None = None
    ended: int | None = None
    measurements: tuple[Mapping[str, Any], ...] = ()
    final: Mapping[str, Any] | None = None
    infeasible_reason: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the trial has ended."""
        return self.state in ("SUCCEEDED", "INFEASIBLE")


@dataclass(frozen=True)
class PipelineProgress:
    """The progress of a training pipeline.

    `job` is the id of the job that runs its task, `model` the name of the uploaded model, `best_trial_job` the id of
    the job of a tuning job's best trial, `model_version` the number of the version that was uploaded.
    """

    job: str
    model: str | None = None
    best_trial_job: str | None = None
    model_version: str | None = None


@dataclass(frozen=True)
class ModelVersion:
    """One version of a model.

    `spec` is the request's Model in canonical form. The default version has "default" among its `aliases`. `pipeline`
    is the name of the training pipeline that uploaded it.
    """

    id: str
    version: int
    sequence: int
    location: Location
    spec: Mapping[str, Any]
    aliases: tuple[str, ...]
    created: int
    updated: int
    pipeline: str | None = None

    @property
    def model_name(self) -> str:
        """The resource name of the model, without the version."""
        return f"{self.location.name}/models/{self.id}"


@dataclass(frozen=True)
class Operation:
    """A finished google.longrunning.Operation: `response` is its Any.

    `metadata_type` is the message of its metadata, `metadata` the fields of that beside `genericMetadata`.
    """

    name: str
    created: int
    metadata_type: str
    metadata: Mapping[str, Any]
    response: Mapping[str, Any]


@dataclass(frozen=True)
class ServiceMessage:
    """A line that the service itself writes to a job's log."""

    at: int
    sequence: int
    severity: str
    text: str


@dataclass(frozen=True)
class Schedule:
    """A schedule. Times are ns since 1970; each of its times up to `handled_until` has its run, or needs none."""

    sequence: int
    location: Location
    request: ScheduleRequest
    created: int
    handled_until: int

    @property
    def name(self) -> str:
        """The resource name, with the project's number."""
        return f"{self.location.name}/schedules/{self.request.id}"


@dataclass(frozen=True)
class SubmittedJob:
    """A job of a run: its resource name, and once it has succeeded, where its model is, if anywhere."""

    resource_name: str
    has_succeeded: bool = False
    model_dir: str | None = None


@dataclass(frozen=True)
class ScheduleRun:
    """A run of a schedule at a `time` (ns since 1970).

    `jobs` are those of the schedule when the run began, none once it has ended. `submitted` has jobs by their names in
    the schedule. A run that failed or was skipped has a `reason`.
    """

    sequence: int
    schedule: int
    run_id: str
    time: int
    state: RunState
    reason: str | None = None
    jobs: tuple[ScheduledJob, ...] = ()
    submitted: Mapping[str, SubmittedJob] = field(default_factory=dict)


class Table:
    """The base of all statements, which are valid while their transaction is open. Times are ns since 1970."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _first(self, query: str, *values: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._connection.execute(query, values).fetchone()
        return row

    def _insert(self, table: str, **columns: Any) -> None:
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
        self._connection.execute(statement, encode(columns.values()))

    def _update(self, table: str, key: Mapping[str, Any], **columns: Any) -> None:
        changes = ", ".join(f"{name} = ?" for name in columns)
        where = " AND ".join(f"{name} = ?" for name in key)
        values = (*encode(columns.values()), *key.values())
        self._connection.execute(f"UPDATE {table} SET {changes} WHERE {where}", values)


_MILLISECOND = 10**6


@dataclass(frozen=True)
class Resource:
    """A row of a table of resources by name; `spec` is the request's message in canonical form."""

    sequence: int
    name: str
    spec: Mapping[str, Any]
    created: int
    updated: int

    @classmethod
    def parse(cls, row: sqlite3.Row) -> "Resource":
        """Return the resource of a row."""
        columns = {name: row[name] for name in ("sequence", "name", "created", "updated")}
        return cls(**columns, spec=from_json(row["spec"]))

    @property
    def id(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    @property
    def etag(self) -> str:
        """The time of the last change in ms, as the service's (docs/fidelity.md, captures); each change has another."""
        return str(self.updated // _MILLISECOND)


class ResourceTable(Table):
    """The statements on a table of resources of several kinds, with what is in each, by name.

    Names have the project's number. A collection is a name without the id: `projects/1/locations/r/tensorboards`.
    """

    table: str

    def add(self, name: str, spec: Mapping[str, Any]) -> Resource | None:
        """Store a resource and return it; None if its name is taken."""
        now = now_ns()
        try:
            self._insert(self.table, name=name, collection=name.rpartition("/")[0], spec=spec, created=now, updated=now)
        except sqlite3.IntegrityError:
            return None
        return self.get(name)

    def get(self, name: str) -> Resource | None:
        """Return a resource; None if it does not exist."""
        row = self._first(f"SELECT * FROM {self.table} WHERE name = ?", name)
        return Resource.parse(row) if row else None

    def set_spec(self, resource: Resource, spec: Mapping[str, Any]) -> Resource:
        """Set the fields of a resource, and return it as it is now."""
        updated = max(now_ns(), (resource.updated // _MILLISECOND + 1) * _MILLISECOND)
        self._update(self.table, {"sequence": resource.sequence}, spec=spec, updated=updated)
        return replace(resource, spec=spec, updated=updated)

    def delete(self, name: str) -> None:
        """Delete a resource and all that is in it."""
        # By the index of names: "0" is the character after "/".
        query = f"DELETE FROM {self.table} WHERE name = ? OR (name > ? AND name < ?)"
        self._connection.execute(query, (name, f"{name}/", f"{name}0"))


_AT_ONCE = 500


def batches(values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield values in parts, each of as many as one statement may name."""
    iterator = iter(values)
    while some := tuple(islice(iterator, _AT_ONCE)):
        yield some


def encode(values: Iterable[Any]) -> list[Any]:
    """Return values as SQLite stores them: mappings, lists, tuples and dataclasses as JSON."""
    values = [asdict(value) if is_dataclass(value) else value for value in values]  # type: ignore[arg-type]
    return [json.dumps(value) if isinstance(value, Mapping | list | tuple) else value for value in values]
