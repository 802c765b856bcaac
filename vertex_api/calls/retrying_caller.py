"""RetryingCaller: the one place through which all calls to the API pass, in turn and again after errors that pass."""

import itertools
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from vertex_api.calls.retry_rules import (
    LOST_ANSWER_SECONDS,
    NEW_GRANT,
    OUTAGE,
    SUBMISSIONS,
    CallKind,
    RetryRule,
    compute_retry_pause_or_none,
    find_retry_rule_or_none,
)
from vertex_api.calls.submission_pace import SubmissionPace
from vertex_api.client_errors import Interrupted, VertexError

Result = TypeVar("Result")
REPORT_INTERVAL_SECONDS = 60.0


@dataclass
class _Failures:
    """Failures of calls for one reason since such calls last succeeded: when they began, and the last one."""

    began: float
    last: float


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


class RetryingCaller:
    """Makes calls for one client, whose threads share a pace and know of each other's failures.

    `before_retry` is called before a call is made again, and `report` with a line for users. `wait` waits for seconds,
    and returns whether the run is to stop. `lost_answer_seconds` is how long what a create has made may stay unseen.
    """

    def __init__(
        self,
        pace: SubmissionPace | None = None,
        before_retry: Callable[[], object] = lambda: None,
        report: Callable[[str], None] = lambda _line: None,
        wait: Callable[[float], bool] = _sleep,
        lost_answer_seconds: float = LOST_ANSWER_SECONDS,
    ) -> None:
        self._pace, self._before_retry, self._report, self._wait = pace, before_retry, report, wait
        self._lost_answer_seconds = lost_answer_seconds
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
        keep_first: Callable[[Result], Result] = lambda result: result,
    ) -> Result:
        """Return the result of `attempt`, which is made again as the retry rules say. Raises VertexError.

        `check_before` is called right before each attempt. After a create that may have been successful although it
        failed, `find_earlier_result` returns what it has done: it is asked twice before the create is made again, and
        once before it is given up. If that was made again, `keep_first` removes what there is more than once, and
        returns the result that stays.
        """
        lost = 0
        first_failures: dict[RetryRule, float] = {}
        for tries in itertools.count(1):
            if self._pace and call_kind in SUBMISSIONS:
                self._pace.wait_for_turn()
            check_before()
            try:
                result = attempt()
            except VertexError as error:
                rule = find_retry_rule_or_none(call_kind, error)
                pause = (
                    self._record_and_report_failure_and_get_pause_or_none(rule, tries, first_failures, error)
                    if rule
                    else None
                )
                is_lost = call_kind == "create" and rule is not None and rule.may_be_done
                lost += is_lost
                if pause is None:
                    with suppress(VertexError):  # the failure to report is that of the call
                        if is_lost and self._lost_answer_seconds:
                            self._wait(self._lost_answer_seconds)
                        if lost and (done := find_earlier_result()) is not None:
                            return self._settle(done, keep_first) if lost > 1 else done
                    raise
                looks = [max(pause, self._lost_answer_seconds), self._lost_answer_seconds] if is_lost else [pause]
                for seconds in filter(None, looks):
                    if self._wait(seconds):
                        found = "; the next `pulumi up` finds what it may have created" if lost else ""
                        raise Interrupted(f"stopped while it was to be tried again ({error}){found}") from error
                    self._before_retry()
                    if lost and (done := find_earlier_result()) is not None:
                        return self._settle(done, keep_first) if lost > 1 else done
            else:
                self._forget_failures_that_success_disproves(call_kind)
                return self._settle(result, keep_first) if lost else result
        raise AssertionError("unreachable")

    def _settle(self, result: Result, keep_first: Callable[[Result], Result]) -> Result:
        """Return what stays of a create that was made more than once. A run that is to stop looks at once."""
        if self._lost_answer_seconds:
            self._wait(self._lost_answer_seconds)
        return keep_first(result)

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
