"""What the store holds: jobs, trials and models as the emulator sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from emulator.names import Location
from vertex.kinds import CUSTOM_JOB, KINDS, Kind
from vertex.names import ResourceName
from vertex.states import TERMINAL

QUEUED = "JOB_STATE_QUEUED"
PENDING = "JOB_STATE_PENDING"
RUNNING = "JOB_STATE_RUNNING"
CANCELLING = "JOB_STATE_CANCELLING"
SUCCEEDED = "JOB_STATE_SUCCEEDED"
FAILED = "JOB_STATE_FAILED"
CANCELLED = "JOB_STATE_CANCELLED"

_LAST_LINES = {SUCCEEDED: "Job completed successfully.", FAILED: "Job failed.", CANCELLED: "Job is cancelled."}

TrialState = Literal["REQUESTED", "ACTIVE", "STOPPING", "SUCCEEDED", "INFEASIBLE"]


@dataclass(frozen=True)
class Ending:
    """How a job ends, decided once and kept while its containers are being stopped.

    `state` is terminal, `code` and `message` are those of the google.rpc.Status (0 and empty for success), `at` is
    the time of the decision in nanoseconds.
    """

    state: str
    code: int
    message: str
    at: int

    @property
    def status(self) -> dict[str, Any] | None:
        """The job's `error`, which only failed and cancelled jobs have."""
        return {"code": self.code, "message": self.message} if self.state in (FAILED, CANCELLED) else None

    @property
    def last_line(self) -> str:
        """What the service says of it in the job's log."""
        return _LAST_LINES[self.state]


@dataclass(frozen=True, order=True)
class Replica:
    """The place of one container in a job: its pool, its index in the pool, and which attempt it is."""

    pool: int
    index: int
    attempt: int = 0

    @property
    def task(self) -> str:
        """The task's name in logs and errors, `workerpool0-0`."""
        return f"workerpool{self.pool}-{self.index}"


@dataclass(frozen=True)
class Job:
    """A custom job or a tuning job.

    `spec` is the request in canonical form (camelCase, enum names). Times are nanoseconds since 1970. A trial's job
    has the tuning job's id as `study` and the trial's number as `trial`. `replicas` holds what the containers of an
    ended job came to, one object per replica.
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
    replicas: tuple[Mapping[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The resource name, with the project's number."""
        return str(ResourceName(self.location.number, self.location.region, self.kind, self.id))

    @property
    def is_terminal(self) -> bool:
        """Whether no further change comes."""
        return self.state in TERMINAL

    @property
    def shown_as(self) -> tuple[Kind, str]:
        """Kind and id under which people know it: for a trial's job, the tuning job."""
        return (KINDS["hyperparameterTuningJobs"], self.study) if self.study else (self.kind, self.id)

    @property
    def places(self) -> list[Replica]:
        """The replicas that a custom job asks for; a tuning job has none of its own."""
        if self.kind != CUSTOM_JOB:
            return []
        pools = self.spec["jobSpec"]["workerPoolSpecs"]
        return [
            Replica(pool, index)
            for pool, spec in enumerate(pools)
            if spec
            for index in range(spec.get("replicaCount", 1))
        ]


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
        """Whether the trial is over."""
        return self.state in ("SUCCEEDED", "INFEASIBLE")


@dataclass(frozen=True)
class Progress:
    """How far a training pipeline is: the id of the job that runs its task, the name of the model it uploaded."""

    job: str
    model: str | None = None


@dataclass(frozen=True)
class ModelVersion:
    """One version of a model.

    `spec` is the request's Model in canonical form. `aliases` are the names that lead to this version; the default
    version has "default" among them. `pipeline` is the name of the training pipeline that uploaded it.
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
    """A finished google.longrunning.Operation: `response` is its Any, `metadata_type` the message of its metadata."""

    name: str
    created: int
    metadata_type: str
    response: Mapping[str, Any]


@dataclass(frozen=True)
class ServiceLine:
    """A line that the service itself writes into a job's log."""

    at: int
    sequence: int
    severity: str
    text: str
    labels: Mapping[str, str] = field(default_factory=dict)
