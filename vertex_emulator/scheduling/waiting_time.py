"""How long a job may wait in the queue."""

from vertex_api.scalars import parse_seconds
from vertex_emulator.database.records import Job

_DEFAULT = "86400s"  # a day, for FLEX_START (discovery document)


def end(job: Job) -> int | None:
    """When a queued job has waited long enough (ns since 1970); None for one that waits for as long as it takes.

    Only a FLEX_START job gives up: after maxWaitDuration, a day unless it says so, never if it is 0.
    """
    if job.scheduling.get("strategy") != "FLEX_START":
        return None
    wait = parse_seconds(job.scheduling.get("maxWaitDuration", _DEFAULT))
    return job.created + int(wait * 10**9) if wait else None
