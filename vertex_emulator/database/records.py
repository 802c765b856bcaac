"""What the database holds: jobs, trials and models as the emulator sees them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from vertex_api.catalog.reduction_server import is_reduction_server
from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, Kind
from vertex_api.names import ResourceName
from vertex_api.states import TERMINAL_STATES
from vertex_emulator.injected_faults import InjectedFault
from vertex_emulator.names import Location

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
    def error(self) -> dict[str, Any] | None:
        """The job's `error`, which only failed and cancelled jobs have."""
        return {"code": self.code, "message": self.message} if self.state in (FAILED, CANCELLED) else None

    @property
    def final_log_message(self) -> str:
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

    @property
    def first_attempt(self) -> "Replica":
        """The replica without regard to attempts."""
        return replace(self, attempt=0)


@dataclass(frozen=True)
class RestartHistory:
    """How often a job, or single replicas of it, were started again.

    `retries` and `preemptions` count restarts of the whole job, after a passing error and after a preemption; `workers`
    counts restarts of single replicas since the last retry, by task. `attempts` is the attempt that each replica is at,
    by task, 0 where it has none. `begun` is when the restart that is under way was decided (ns), None when none is.
    """

    retries: int = 0
    preemptions: int = 0
    workers: Mapping[str, int] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    restarting_since: int | None = None


@dataclass(frozen=True)
class Job:
    """A custom job or a tuning job.

    `spec` is the request in canonical form (camelCase, enum names). Times are nanoseconds since 1970. A trial's job
    has the tuning job's id as `study` and the trial's number as `trial`. `replicas` holds what the containers of an
    ended job came to, one object per replica and attempt. `fault` is what was injected into it.
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
        return str(ResourceName(self.location.number, self.location.region, self.kind, self.id))

    @property
    def is_terminal(self) -> bool:
        """Whether no further change comes."""
        return self.state in TERMINAL_STATES

    @property
    def is_waiting_for_trials(self) -> bool:
        """Whether this is a study that has stopped and lets its last trials come to their end."""
        stopped = self.ending is not None and self.ending.state == SUCCEEDED
        return stopped and self.kind == HYPERPARAMETER_TUNING_JOB and not self.is_terminal

    @property
    def visible_resource(self) -> tuple[Kind, str]:
        """Kind and id under which people know it: for a trial's job, the tuning job."""
        return (HYPERPARAMETER_TUNING_JOB, self.study) if self.study else (self.kind, self.id)

    @property
    def requested_replicas(self) -> list[Replica]:
        """The replicas that a custom job asks for; a tuning job has none of its own."""
        return list_replicas(self.kind, self.spec)

    @property
    def current_replicas(self) -> list[Replica]:
        """The replicas that should run now: every place, at the attempt it has come to."""
        return [replace(place, attempt=self.restarts.attempts.get(place.task, 0)) for place in self.requested_replicas]

    @property
    def all_attempts(self) -> list[Replica]:
        """Every container that the job may have had: all places, each at every attempt so far."""
        return [replace(now, attempt=attempt) for now in self.current_replicas for attempt in range(now.attempt + 1)]

    @property
    def scheduling(self) -> Mapping[str, Any]:
        """A custom job's Scheduling, `{}` when it asks for nothing."""
        return self.spec["jobSpec"].get("scheduling", {})  # type: ignore[no-any-return]


def list_replicas(kind: Kind, spec: Mapping[str, Any]) -> list[Replica]:
    """The replicas that a job's spec asks for; a tuning job has none of its own.

    A pool of Reduction Server has none here: it only helps GPUs, and its image is not to be had outside Google Cloud.
    """
    if kind != CUSTOM_JOB:
        return []
    pools = enumerate(spec["jobSpec"]["workerPoolSpecs"])
    run = [(pool, found) for pool, found in pools if found and not is_reduction_server(found)]
    return [Replica(pool, index) for pool, found in run for index in range(found.get("replicaCount", 1))]


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
class PipelineProgress:
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
class ServiceMessage:
    """A line that the service itself writes into a job's log."""

    at: int
    sequence: int
    severity: str
    text: str
    labels: Mapping[str, str] = field(default_factory=dict)
