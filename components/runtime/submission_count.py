"""How many submissions a run needs, and the lines that say so: their total, and how many of them are done."""

import threading
from collections.abc import Iterable

from vertex_api.calls.submission_pace import estimate_min_submission_seconds


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


def render_submission_total_line(submissions: int, per_minute: int) -> str:
    """Return what a preview says of a stack that needs more than a minute."""
    duration = format_duration(estimate_min_submission_seconds(submissions, per_minute))
    return f"{submissions:,} submissions: at least {duration} at {per_minute:,} a minute"


def render_submitted_count_line(submitted_count: int, min_submissions: int) -> str:
    """Return what is said once a minute while submissions wait."""
    least = f", of at least {min_submissions}" if min_submissions > submitted_count else ""
    return f"{submitted_count} jobs created or deleted so far{least}"


def format_duration(seconds: float) -> str:
    """Return a duration in whole minutes, or in seconds if it is less than one."""
    return f"{seconds // 60:.0f} min" if seconds >= 120 else "1 min" if seconds >= 60 else f"{seconds:.0f} s"
