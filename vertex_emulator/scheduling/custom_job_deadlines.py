"""The deadlines of a custom job: its timeout with the ending that it causes, and until when a queued job waits."""

from vertex_api.jobspec import DEFAULT_MAX_WAIT, DEFAULT_TIMEOUT, explicit_timeout
from vertex_api.scalars import to_seconds
from vertex_emulator.database.records import FAILED, Ending, Job
from vertex_emulator.times import now_ns

_CODE_DEADLINE_EXCEEDED = 4


def build_timeout_ending_if_due(job: Job, now: int) -> Ending | None:
    """Decide how a job ends that exceeds its timeout; None before."""
    if now < compute_timeout_deadline(job):
        return None
    timeout = explicit_timeout(job.spec["jobSpec"]) or DEFAULT_TIMEOUT
    return Ending(FAILED, _CODE_DEADLINE_EXCEEDED, f"The job exceeded its timeout of {timeout}.", now)


def compute_timeout_deadline(job: Job) -> int:
    """Compute when a job times out, in ns since 1970; the timeout counts from its first start."""
    timeout = explicit_timeout(job.spec["jobSpec"]) or DEFAULT_TIMEOUT
    return (job.started or now_ns()) + int(to_seconds(timeout) * 10**9)


def compute_queue_deadline_or_none(job: Job) -> int | None:
    """Compute when a queued job gives up, in ns since 1970; None if it waits without limit.

    Only a FLEX_START job gives up: after maxWaitDuration, by default a day; 0 means no limit.
    """
    if job.scheduling.get("strategy") != "FLEX_START":
        return None
    wait = to_seconds(job.scheduling.get("maxWaitDuration", DEFAULT_MAX_WAIT))
    return job.created + int(wait * 10**9) if wait else None
