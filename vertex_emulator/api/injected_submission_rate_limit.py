"""The injected fault of kind `rate`: a limit a minute on the requests that create and delete jobs, by location."""

import threading
import time

from vertex_api.retry import SUBMISSION_METRIC
from vertex_emulator.errors import ApiError
from vertex_emulator.names import Location

_LIMIT_NAME = "Job or long running operation submission requests"
_BURSTS_PER_MINUTE = 10


class InjectedSubmissionRateLimit:
    """A token bucket for each location; there is no limit while `limit_per_minute` is None."""

    def __init__(self) -> None:
        self.limit_per_minute: int | None = None
        self._lock = threading.Lock()
        self._next_even_request: dict[str, float] = {}

    def count_submission_or_raise_quota_error(self, location: Location) -> None:
        """Take a request from the location's token bucket. Raises ApiError RESOURCE_EXHAUSTED if it is empty."""
        limit = self.limit_per_minute
        if limit is None:
            return
        burst, interval, now = max(1, limit // _BURSTS_PER_MINUTE), 60 / limit, time.monotonic()
        key = location.name
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
