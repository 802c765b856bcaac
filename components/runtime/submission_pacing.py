"""The pace of a run's submissions at each location, as the stack or its target sets it.

A provider has no fields, so what it needs of the stack comes from the configuration that the engine gives its process.
"""

import threading
import time
from functools import cache, partial

from vertex_api.calls.submission_pace import SubmissionPace, estimate_min_submission_seconds

from .submission_count import (
    SubmissionCount,
    format_duration,
    render_submission_total_line,
    render_submitted_count_line,
)

CONFIG_KEY = "vertex-training:submissionsPerMinute"
_PROGRESS_SECONDS = 60.0


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


def render_pace_line(min_submissions: int, per_minute: int) -> str:
    """Return what is said when the first submission has to wait; `min_submissions` is how many there are."""
    seconds = estimate_min_submission_seconds(min_submissions, per_minute)
    amount = f"{min_submissions} of them take at least {format_duration(seconds)}" if seconds else "each has its turn"
    return f"creating and deleting jobs is paced at {per_minute} a minute ({CONFIG_KEY}): {amount}"


@cache
def get_submission_pacing() -> SubmissionPacing:
    """Return the pacing of this process, which Pulumi starts and ends with each run, for all providers."""
    return SubmissionPacing()
