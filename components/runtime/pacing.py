"""The pace of a run's submissions at each location, how many there are, and what users are told of both.

A provider has no fields, so what it needs of the stack comes from the configuration that the engine gives its process,
or from the stack's ledger, which comes before any job.
"""

import threading
import time
from collections.abc import Iterable
from functools import cache, partial

from vertex_api.retry import Pace, least_seconds

KEY = "submissionsPerMinute"
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

    def expect(self, declared: Iterable[str], new: Iterable[str], removed_count: int) -> None:
        """Record which jobs a ledger declares, which of them are new, and how many others are removed.

        If some have been decided already, this begins anew: an update follows its preview in the same process.
        """
        declared = set(declared)
        with self._lock:
            if declared & self._decided.keys():
                self._undecided, self._new, self._removed = set(), set(), 0
                self._decided.clear()
            self._undecided |= declared
            self._new |= set(new)
            self._removed += removed_count

    def expects(self, job_name: str) -> bool:
        """Return whether a ledger declares a job that is not decided yet. Those of a program itself are in none."""
        return job_name in self._undecided

    def decide(self, job_name: str, submissions: int) -> int | None:
        """Record how many submissions a job needs; return the number of all, once, when the last one is decided."""
        with self._lock:
            is_last = self._undecided == {job_name}
            self._undecided.discard(job_name)
            self._decided[job_name] = submissions
            return self._known() if is_last else None

    @property
    def least(self) -> int:
        """How many submissions the run needs by what is known so far."""
        with self._lock:
            return self._known()

    def _known(self) -> int:
        return self._removed + sum(self._decided.values()) + len(self._undecided & self._new)


class Pacing:
    """The paces of this process by location, and what users are told of them. `count` is of the whole run."""

    def __init__(self) -> None:
        self.count = SubmissionCount()
        self._override: int | None = None
        self._lock = threading.Lock()
        self._limits: dict[str, int] = {}
        self._paces: dict[str, Pace] = {}
        self._last_line: float | None = None

    def override(self, per_minute: str | None) -> None:
        """Take the value of `KEY`, which the program has checked, instead of the target's default."""
        self._override = int(per_minute) if per_minute else None

    def limit(self, location: str, per_minute: int) -> None:
        """Take what a stack sets for its location, instead of the value of `KEY`: of several, the lowest."""
        with self._lock:
            lowest = self._limits[location] = min(per_minute, self._limits.get(location, per_minute))
            if location in self._paces:
                self._paces[location].limit(lowest)

    def pace(self, location: str, default_per_minute: int | None) -> Pace | None:
        """Return the pace of a location, always the same one; None if submissions there are not paced."""
        with self._lock:
            per_minute = self._limits.get(location) or self._override or default_per_minute
            if per_minute is None:
                return None
            return self._paces.setdefault(location, Pace(per_minute, partial(self._print_progress, per_minute)))

    def decide(self, job_name: str, submissions: int, pace: Pace | None) -> bool:
        """Record how many submissions a job needs, and return whether that of all declared jobs is known now.

        If they take long, print a line.
        """
        total = self.count.decide(job_name, submissions)
        if pace and total and total > pace.per_minute and not pace.has_begun:
            print(total_line(total, pace.per_minute), flush=True)  # noqa: T201
        return total is not None

    def _print_progress(self, per_minute: int, submitted: int) -> None:
        """Print a line, at most once a minute."""
        now = time.monotonic()
        with self._lock:
            if self._last_line is not None and now - self._last_line < _PROGRESS_SECONDS:
                return
            is_first, self._last_line = self._last_line is None, now
        least = self.count.least
        print(pace_line(least, per_minute) if is_first else progress_line(submitted, least), flush=True)  # noqa: T201


@cache
def current() -> Pacing:
    """Return the pacing of this process, which Pulumi starts and ends with each run, for all providers."""
    return Pacing()


def total_line(submissions: int, per_minute: int) -> str:
    """Return what a preview says of a stack that needs more than a minute."""
    least = duration(least_seconds(submissions, per_minute))
    return f"{submissions:,} submissions: at least {least} at {per_minute:,} a minute"


def pace_line(submissions: int, per_minute: int) -> str:
    """Return what is said when the first submission has to wait, of at least so many."""
    seconds = least_seconds(submissions, per_minute)
    amount = f"{submissions} of them take at least {duration(seconds)}" if seconds else "each has its turn"
    return f"creating and deleting jobs is paced at {per_minute} a minute (vertex-training:{KEY}): {amount}"


def progress_line(submitted: int, least: int) -> str:
    """Return what is said once a minute while submissions wait."""
    of = f", of at least {least}" if least > submitted else ""
    return f"{submitted} jobs created or deleted so far{of}"


def duration(seconds: float) -> str:
    """Return a duration in whole minutes, or in seconds if it is less than one."""
    return f"{seconds // 60:.0f} min" if seconds >= 120 else "1 min" if seconds >= 60 else f"{seconds:.0f} s"
