"""Injected faults of requests about jobs: 503, a limit a minute, answers that are lost or late."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from vertex_emulator.api.injected_submission_rate_limit import InjectedSubmissionRateLimit
from vertex_emulator.database import Database
from vertex_emulator.errors import AnswerLost, ApiError
from vertex_emulator.faults import REQUEST_FAULT_KINDS

_Handler = Callable[..., Mapping[str, Any]]


class InjectedRequestFaults:
    """The pending faults of requests. Without any, a request costs no look into the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rate_limit = InjectedSubmissionRateLimit()
        self._kinds: frozenset[str] = frozenset()
        self.reload_from_database()

    def reload_from_database(self) -> None:
        """Read the pending faults, after they have changed."""
        with self._database.read() as transaction:
            pending = [fault for _, fault in transaction.faults.pending()]
        self._kinds = frozenset(fault.kind for fault in pending) & {*REQUEST_FAULT_KINDS}
        self._rate_limit.limit_per_minute = min(
            (fault.per_minute for fault in pending if fault.per_minute), default=None
        )

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
                self._rate_limit.count_submission_or_raise_quota_error(arguments["location"])
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
        with self._database.write() as transaction:
            fault = transaction.faults.take(kind, display_name)
        self.reload_from_database()
        return fault
