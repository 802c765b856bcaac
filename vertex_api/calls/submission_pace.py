"""The pace of submissions: a token bucket that never exceeds a number of calls in any minute.

Vertex AI takes 60 submissions a minute for a project and region (page "Quotas and limits", "Job or
long-running-operation submission requests per minute"). Creating and deleting a job both count. How evenly the service
measures is not documented, so calls are spread over the minute after a burst of five seconds' worth.
"""

import threading
import time
from collections.abc import Callable

SUBMISSIONS_PER_MINUTE = 60
"""Vertex AI's limit for a project and region."""
SUBMISSION_METRIC = "aiplatform.googleapis.com/job_or_lro_submission_requests"
_BURSTS_PER_MINUTE = 12


class SubmissionPace:
    """Gives each submission its turn. One pace is shared by all threads that submit to a project and region.

    `before_wait` is called with the number of turns so far before a thread waits for its turn.
    """

    def __init__(self, per_minute: int, before_wait: Callable[[int], None] = lambda _turns: None) -> None:
        self.per_minute = per_minute
        self._burst, self._interval = _compute_burst_and_interval(per_minute)
        self._before_wait = before_wait
        self._lock = threading.Lock()
        self._next_even_turn = 0.0
        self._turns = 0

    @property
    def has_begun(self) -> bool:
        """Whether a turn has been taken."""
        return self._turns > 0

    def wait_for_turn(self) -> None:
        """Wait until the next submission may be sent."""
        pause = self.reserve_turn_and_get_pause(time.monotonic())
        if pause > 0:
            self._before_wait(self._turns)
            time.sleep(pause)

    def reserve_turn_and_get_pause(self, now: float) -> float:
        """Reserve the next turn and return in how many seconds from `now` it is."""
        with self._lock:
            # The generic cell rate algorithm: a token bucket whose only state is a time.
            even_turn = max(self._next_even_turn, now)
            self._next_even_turn = even_turn + self._interval
            self._turns += 1
            return max(0.0, even_turn - (self._burst - 1) * self._interval - now)


def estimate_min_submission_seconds(submissions: int, per_minute: int) -> float:
    """Return how long so many submissions take at the least."""
    burst, interval = _compute_burst_and_interval(per_minute)
    return max(0, submissions - burst) * interval


def _compute_burst_and_interval(per_minute: int) -> tuple[int, float]:
    """Return how many calls may go at once, and the seconds between later ones.

    The call after a minute's last one comes a minute after the first: burst + 60 s / interval = per_minute + 1.
    """
    burst = max(1, per_minute // _BURSTS_PER_MINUTE)
    return burst, 60 / (per_minute + 1 - burst)
