"""Injected faults of requests about jobs: quotas, permissions, 503, a limit a minute, answers that are lost or late."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from vertex_api.estimates.quota import METRIC_PREFIX, UNKNOWN_METRIC, quota_of_run
from vertex_api.job import Job
from vertex_api.names import Kind
from vertex_api.retry import SUBMISSION_METRIC
from vertex_emulator.database import Database
from vertex_emulator.errors import AnswerLost, ApiError
from vertex_emulator.faults import REQUEST_FAULT_KINDS, InjectedFault
from vertex_emulator.inside.permissions import denied
from vertex_emulator.names import Location

Handler = Callable[..., Mapping[str, Any]]


class RequestFaults:
    """The pending faults of requests. Without any, a request costs no look into the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rate_limit = _RateLimit()
        self._kinds: frozenset[str] = frozenset()
        self.reload()

    def reload(self) -> None:
        """Read the pending faults, after they have changed."""
        with self._database.read() as transaction:
            pending = [fault for _, fault in transaction.faults.pending()]
        self._kinds = frozenset(fault.kind for fault in pending) & {*REQUEST_FAULT_KINDS}
        self._rate_limit.per_minute = min((fault.per_minute for fault in pending if fault.per_minute), default=None)

    def wrap(self, handler: Handler, verb: Literal["create", "delete", "other"] = "other") -> Handler:
        """Return a handler of requests about jobs to which the pending faults happen.

        It raises ApiError, and AnswerLost after the request has been handled.
        """

        def handle(**arguments: Any) -> Mapping[str, Any]:
            if not self._kinds:
                return handler(**arguments)
            name = str(arguments.get("body", {}).get("displayName", ""))
            if self._consume("unavailable", name):
                raise ApiError("UNAVAILABLE", "The service is currently unavailable.")
            if verb == "create" and self._consume("denied", name):
                raise _denied(arguments["kind"], arguments["location"])
            if verb != "other":
                self._rate_limit.count(arguments["location"])
            reply = handler(**arguments)
            if slow := self._consume("slow", name):
                time.sleep(slow.seconds or 0.0)
            if verb == "create" and self._consume("lost-answer", name):
                raise AnswerLost("the connection is cut")
            return reply

        return handle

    def _consume(self, kind: str, display_name: str) -> InjectedFault | None:
        if kind not in self._kinds:
            return None
        with self._database.write() as transaction:
            fault = transaction.faults.take(kind, display_name)
        self.reload()
        return fault


def _denied(kind: Kind, location: Location) -> ApiError:
    """The error for a caller without the permission to create jobs (docs/fidelity.md, captures)."""
    place = f"//aiplatform.googleapis.com/projects/{location.project}/locations/{location.region}"
    return denied(f"aiplatform.{kind.collection}.create", place)


_LIMIT_NAME = "Job or long running operation submission requests"
_BURSTS_PER_MINUTE = 10


class _RateLimit:
    """The fault of kind `rate`, a token bucket for each location; there is no limit while `per_minute` is None."""

    def __init__(self) -> None:
        self.per_minute: int | None = None
        self._lock = threading.Lock()
        self._next_even_request: dict[str, float] = {}

    def count(self, location: Location) -> None:
        """Take a request from the location's token bucket. Raises ApiError RESOURCE_EXHAUSTED if it is empty."""
        limit = self.per_minute
        if limit is None:
            return
        burst, interval, now = max(1, limit // _BURSTS_PER_MINUTE), 60 / limit, time.monotonic()
        with self._lock:
            even_request = max(self._next_even_request.get(location.name, 0.0), now)
            if even_request - now <= (burst - 1) * interval:
                self._next_even_request[location.name] = even_request + interval
                return
        project = f"project_number:{location.project_number}"
        raise ApiError(
            "RESOURCE_EXHAUSTED",
            f"Quota exceeded for quota metric '{_LIMIT_NAME}' and limit '{_LIMIT_NAME} per minute per region' of "
            f"service 'aiplatform.googleapis.com' for consumer '{project}'.",
            error_info={
                "reason": "RATE_LIMIT_EXCEEDED",
                "domain": "googleapis.com",
                "metadata": {
                    "service": "aiplatform.googleapis.com",
                    "quota_metric": SUBMISSION_METRIC,
                    "quota_limit_value": str(limit),
                    "quota_location": location.region,
                    "consumer": f"projects/{location.project_number}",
                },
            },
        )


def quota_message(database: Database, kind: Kind, spec: Mapping[str, Any]) -> str | None:
    """Use up a pending fault of kind `quota`, and return the service's message for it; None if there is none.

    The emulator itself has no quotas.
    """
    with database.write() as transaction:
        fault = transaction.faults.take("quota", spec["displayName"])
    if fault is None:
        return None
    metrics = ", ".join(quota_metrics(Job(kind, spec).backing.job_spec))
    return f"The following quota metrics exceed quota limits: {metrics}"


def quota_metrics(job_spec: Mapping[str, Any]) -> list[str]:
    """Return the quota metrics that the error for a CustomJobSpec names: those of its GPUs, else those of its CPUs.

    If the names of neither are on file, it is the metric of N1's CPUs.
    """
    amounts = quota_of_run(job_spec)
    known = [name for name in amounts if not name.endswith(UNKNOWN_METRIC)]
    names = [name for name in known if name.endswith("_gpus")] or [name for name in known if name.endswith("cpus")]
    return [f"{METRIC_PREFIX}{name}" for name in sorted(names) or ["cpus"]]
