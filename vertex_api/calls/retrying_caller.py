"""RetryingCaller: the one place through which all calls to the API pass, in turn and again after errors that pass."""

import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from vertex_api.calls.retry_rules import (
    NEW_GRANT,
    OUTAGE,
    SUBMISSIONS,
    CallKind,
    RetryRule,
    compute_retry_pause_or_none,
    find_retry_rule_or_none,
)
from vertex_api.calls.submission_pace import SubmissionPace
from vertex_api.client_errors import VertexError

Result = TypeVar("Result")
REPORT_INTERVAL_SECONDS = 60.0


@dataclass
class _Failures:
    """Failures of calls for one reason since such calls last succeeded: when they began, and the last one."""

    began: float
    last: float


class RetryingCaller:
    """Makes calls for one client, whose threads share a pace and know of each other's failures.

    `before_retry` is called before a call is made again, and `report` with a line for users.
    """

    def __init__(
        self,
        pace: SubmissionPace | None = None,
        before_retry: Callable[[], object] = lambda: None,
        report: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._pace, self._before_retry, self._report = pace, before_retry, report
        self._lock = threading.Lock()
        self._failures: dict[RetryRule, _Failures] = {}
        self._reported: dict[RetryRule, float] = {}

    def call(
        self,
        call_kind: CallKind,
        attempt: Callable[[], Result],
        *,
        check_before: Callable[[], None] = lambda: None,
        find_earlier_result: Callable[[], Result | None] = lambda: None,
    ) -> Result:
        """Return the result of `attempt`, which is made again as the retry rules say. Raises VertexError.

        `check_before` is called right before each attempt. After an attempt that may have been successful although it
        failed, `find_earlier_result` returns what it has done; only if that is `None` the attempt is made again.
        """
        may_be_done = False
        first_failures: dict[RetryRule, float] = {}
        for tries in itertools.count(1):
            if self._pace and call_kind in SUBMISSIONS:
                self._pace.wait_for_turn()
            check_before()
            try:
                result = attempt()
            except VertexError as error:
                rule = find_retry_rule_or_none(call_kind, error)
                if rule is None:
                    raise
                pause = self._record_and_report_failure_and_get_pause_or_none(rule, tries, first_failures, error)
                if pause is None:
                    raise
            else:
                self._forget_failures_that_success_disproves(call_kind)
                return result
            time.sleep(pause)
            self._before_retry()
            may_be_done |= rule.may_be_done
            if may_be_done and (done := find_earlier_result()) is not None:
                return done
        raise AssertionError("unreachable")

    def _record_and_report_failure_and_get_pause_or_none(
        self, rule: RetryRule, tries: int, first_failures: dict[RetryRule, float], error: VertexError
    ) -> float | None:
        """Calls that fail together give up together: 1,000 jobs do not wait one after the other for a dead API."""
        now = time.monotonic()
        first_failure = first_failures.setdefault(rule, now)
        with self._lock:
            failures = self._failures.get(rule)
            if failures is None or now - failures.last > rule.seconds:
                failures = self._failures[rule] = _Failures(now, now)
            failures.last = now
            is_shared = rule in (OUTAGE, NEW_GRANT)
            began = min(failures.began, first_failure) if is_shared else first_failure
            pause = compute_retry_pause_or_none(rule, tries, now - began, error.retry_after, random.random())
            last_report = self._reported.get(rule)
            is_news = pause is not None and (last_report is None or now - last_report >= REPORT_INTERVAL_SECONDS)
            if is_news:
                self._reported[rule] = now
        if is_news:
            self._report(f"{rule.reason} ({error}); trying again for up to {rule.seconds - (now - began):.0f} s")
        return pause

    def _forget_failures_that_success_disproves(self, call_kind: CallKind) -> None:
        if self._failures:
            with self._lock:
                self._failures.pop(OUTAGE, None)
                if call_kind == "create":
                    self._failures.pop(NEW_GRANT, None)
