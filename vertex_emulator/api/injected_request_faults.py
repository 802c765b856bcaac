"""Injected faults of requests about jobs: a quota, a limit a minute, 503, answers that are lost or late."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from vertex_api.calls.submission_pace import SUBMISSION_METRIC
from vertex_api.estimates.needed_quota import (
    METRIC_PREFIX,
    UNKNOWN_METRIC_MARK,
    estimate_job_spec_quota_by_metric,
)
from vertex_api.job_kinds import Kind
from vertex_api.validation.canonical_spec import CanonicalSpec
from vertex_emulator.database import Database
from vertex_emulator.errors import AnswerLost, ApiError
from vertex_emulator.injected_faults import REQUEST_FAULT_KINDS
from vertex_emulator.locations_and_ids import Location

_Handler = Callable[..., Mapping[str, Any]]
_LIMIT_NAME = "Job or long running operation submission requests"
_BURSTS_PER_MINUTE = 10


class InjectedRequestFaults:
    """The pending faults of requests. Without any, a request costs no look into the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._limit_per_minute: int | None = None
        self._next_even_request: dict[str, float] = {}
        self._kinds: frozenset[str] = frozenset()
        self.reload_from_database()

    def reload_from_database(self) -> None:
        """Read the pending faults, after they have changed."""
        with self._database.read_transaction() as transaction:
            pending = [fault for _, fault in transaction.injected_faults.list_remaining_job_counts_and_faults()]
        self._kinds = frozenset(fault.kind for fault in pending) & {*REQUEST_FAULT_KINDS}
        self._limit_per_minute = min((fault.per_minute for fault in pending if fault.per_minute), default=None)

    def wrap_handler(self, handler: _Handler, verb: Literal["create", "delete", "other"] = "other") -> _Handler:
        """Return a handler of requests about jobs to which the pending faults happen.

        It raises ApiError, and AnswerLost after the request has been handled.
        """

        def handle_with_faults(**arguments: Any) -> Mapping[str, Any]:
            if not self._kinds:
                return handler(**arguments)
            name = str(arguments.get("body", {}).get("displayName", ""))
            if self._consume_fault_or_none("unavailable", name):
                raise ApiError("UNAVAILABLE", "The service is currently unavailable.")
            if verb != "other":
                self._count_submission_or_raise_quota_error(arguments["location"])
            reply = handler(**arguments)
            if slow := self._consume_fault_or_none("slow", name):
                time.sleep(slow.seconds or 0.0)
            if verb == "create" and self._consume_fault_or_none("lost-answer", name):
                raise AnswerLost("the connection is cut")
            return reply

        return handle_with_faults

    def _consume_fault_or_none(self, kind: str, display_name: str) -> Any:
        if kind not in self._kinds:
            return None
        with self._database.write_transaction() as transaction:
            fault = transaction.injected_faults.consume_fault_of_kind_or_none(kind, display_name)
        self.reload_from_database()
        return fault

    def _count_submission_or_raise_quota_error(self, location: Location) -> None:
        """Take a request from the location's token bucket. Raises ApiError RESOURCE_EXHAUSTED if it is empty."""
        limit = self._limit_per_minute
        if limit is None:
            return
        burst, interval, now = max(1, limit // _BURSTS_PER_MINUTE), 60 / limit, time.monotonic()
        key = location.name_with_project_number
        with self._lock:
            even_request = max(self._next_even_request.get(key, 0.0), now)
            if even_request - now <= (burst - 1) * interval:
                self._next_even_request[key] = even_request + interval
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


def consume_quota_fault_and_get_message_or_none(database: Database, kind: Kind, spec: Mapping[str, Any]) -> str | None:
    """Use up a pending quota fault of a job, and return the service's message for it; None if there is none.

    The emulator itself has no quotas.
    """
    with database.write_transaction() as transaction:
        fault = transaction.injected_faults.consume_fault_of_kind_or_none("quota", spec["displayName"])
    if fault is None:
        return None
    metrics = ", ".join(list_quota_metrics_named_in_error(CanonicalSpec(kind, spec).backing_spec_or_self.job_spec))
    return f"The following quota metrics exceed quota limits: {metrics}"


def list_quota_metrics_named_in_error(job_spec: Mapping[str, Any]) -> list[str]:
    """Return the quota metrics that the error for a CustomJobSpec names: those of its GPUs, else those of its CPUs.

    If the names of neither are on file, it is the metric of N1's CPUs.
    """
    amounts = estimate_job_spec_quota_by_metric(job_spec)
    known = [name for name in amounts if not name.endswith(UNKNOWN_METRIC_MARK)]
    names = [name for name in known if name.endswith("_gpus")] or [name for name in known if name.endswith("cpus")]
    return [f"{METRIC_PREFIX}{name}" for name in sorted(names) or ["cpus"]]
