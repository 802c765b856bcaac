"""The pace of a run's submissions, as the stack and its target set it, and what users are told of it.

A provider has no fields, so what it needs of the stack comes from the configuration that the engine gives its process.
"""

import threading
import time
from collections.abc import Iterable
from functools import cache, partial

from vertex_api.calls.submission_pace import SubmissionPace, estimate_min_submission_seconds

CONFIG_KEY = "vertex-training:submissionsPerMinute"
_PROGRESS_SECONDS = 60.0


class SubmissionCount:
    """How many submissions a run needs, as far as they are known.

    The ledger says which jobs are declared before any of them is submitted. Then the provider learns of one job at a
    time whether it is created, replaced, or left as it is.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._undecided: set[str] = set()
        self._new: set[str] = set()
        self._decided: dict[str, int] = {}
        self._removed = 0

    def set_expected_jobs(self, declared_names: Iterable[str], new_names: Iterable[str], removed_count: int) -> None:
        """Record which jobs are declared, which of them are new, and how many others are removed."""
        with self._lock:
            self._undecided, self._new, self._removed = set(declared_names), set(new_names), removed_count
            self._decided.clear()

    def record_and_get_total_if_last(self, job_name: str, submissions: int) -> int | None:
        """Record how many submissions a job needs; return the number of all, once, when the last one is decided."""
        with self._lock:
            is_last = self._undecided == {job_name}
            self._undecided.discard(job_name)
            self._decided[job_name] = submissions
            return self._count_known_submissions() if is_last else None

    @property
    def min_submissions(self) -> int:
        """How many submissions the run needs by what is known so far."""
        with self._lock:
            return self._count_known_submissions()

    def _count_known_submissions(self) -> int:
        return self._removed + sum(self._decided.values()) + len(self._undecided & self._new)


class SubmissionPacing:
    """The paces of this process by location, and what users are told of them. `count` is of the whole run."""

    def __init__(self) -> None:
        self.count = SubmissionCount()
        self._override: int | None = None
        self._lock = threading.Lock()
        self._paces: dict[str, SubmissionPace] = {}
        self._last_line: float | None = None

    def set_pace_override(self, per_minute_text: str | None) -> None:
        """Take the value of `CONFIG_KEY`, which the program has checked, instead of the target's default."""
        self._override = int(per_minute_text) if per_minute_text else None

    def get_pace_or_none(self, location: str, default_per_minute: int | None) -> SubmissionPace | None:
        """Return the pace of a location, always the same one; `None` if submissions there are not paced."""
        per_minute = self._override or default_per_minute
        if per_minute is None:
            return None
        with self._lock:
            return self._paces.setdefault(
                location,
                SubmissionPace(per_minute, partial(self._print_progress_line_at_most_once_a_minute, per_minute)),
            )

    def record_and_print_total_if_last_and_slow(
        self, job_name: str, submissions: int, pace: SubmissionPace | None
    ) -> None:
        """Record how many submissions a job needs. If that of all is known and they take long, print a line."""
        total = self.count.record_and_get_total_if_last(job_name, submissions)
        if pace and total and total > pace.per_minute and not pace.has_begun:
            print(render_submission_total_line(total, pace.per_minute), flush=True)  # noqa: T201

    def _print_progress_line_at_most_once_a_minute(self, per_minute: int, submitted_count: int) -> None:
        now = time.monotonic()
        with self._lock:
            if self._last_line is not None and now - self._last_line < _PROGRESS_SECONDS:
                return
            is_first, self._last_line = self._last_line is None, now
        min_submissions = self.count.min_submissions
        line = (
            render_pace_line(min_submissions, per_minute)
            if is_first
            else render_submitted_count_line(submitted_count, min_submissions)
        )
        print(line, flush=True)  # noqa: T201


def render_submission_total_line(submissions: int, per_minute: int) -> str:
    """Return what a preview says of a stack that needs more than a minute."""
    duration = _format_duration(estimate_min_submission_seconds(submissions, per_minute))
    return f"{submissions:,} submissions: at least {duration} at {per_minute:,} a minute"


def render_pace_line(min_submissions: int, per_minute: int) -> str:
    """Return what is said when the first submission has to wait; `min_submissions` is how many there are."""
    seconds = estimate_min_submission_seconds(min_submissions, per_minute)
    amount = f"{min_submissions} of them take at least {_format_duration(seconds)}" if seconds else "each has its turn"
    return f"creating and deleting jobs is paced at {per_minute} a minute ({CONFIG_KEY}): {amount}"


def render_submitted_count_line(submitted_count: int, min_submissions: int) -> str:
    """Return what is said once a minute while submissions wait."""
    least = f", of at least {min_submissions}" if min_submissions > submitted_count else ""
    return f"{submitted_count} jobs created or deleted so far{least}"


def _format_duration(seconds: float) -> str:
    return f"{seconds // 60:.0f} min" if seconds >= 120 else "1 min" if seconds >= 60 else f"{seconds:.0f} s"


@cache
def get_submission_pacing() -> SubmissionPacing:
    """Return the pacing of this process, which Pulumi starts and ends with each run, for all providers."""
    return SubmissionPacing()
