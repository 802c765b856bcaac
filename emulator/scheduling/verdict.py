"""How a running custom job ends, by what its replicas came to."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.containers.executor import ReplicaStatus
from emulator.records import FAILED, SUCCEEDED, Ending, Job, Replica
from emulator.times import duration_seconds, now_ns

DEFAULT_TIMEOUT = "604800s"  # seven days (Google's page on CustomJob scheduling)
PRIMARY = Replica(0, 0)
CODE_INVALID_ARGUMENT = 3
_CODE_DEADLINE_EXCEEDED = 4
_CODE_RESOURCE_EXHAUSTED = 9
CODE_INTERNAL = 13


def verdict(job: Job, statuses: Mapping[Replica, ReplicaStatus], now: int, link: str) -> Ending | None:
    """How a running job ends, or None while it goes on.

    The first replica to fail fails the job; the primary replica's success is the job's (Google's page on the training
    service). Replicas are judged in the order in which they ended, so an outcome does not depend on when we look.
    """
    exited = [(replica, status) for replica, status in statuses.items() if status.phase == "exited"]
    for replica, status in sorted(exited, key=lambda found: found[1].finished or 0):
        if status.exit_code != 0:
            return _exit_failure(replica, status, link, now)
        if replica == PRIMARY:
            return Ending(SUCCEEDED, 0, "", now)
    missing = sorted(set(job.places) - set(statuses))
    if missing:
        return Ending(
            FAILED,
            CODE_INTERNAL,
            "Internal error occurred for the current attempt: "
            f"the container of replica {missing[0].task} was removed from outside.",
            now,
        )
    if now >= deadline(job):
        timeout = job.spec["jobSpec"].get("scheduling", {}).get("timeout", DEFAULT_TIMEOUT)
        return Ending(FAILED, _CODE_DEADLINE_EXCEEDED, f"The job exceeded its timeout of {timeout}.", now)
    return None


def _exit_failure(replica: Replica, status: ReplicaStatus, link: str, now: int) -> Ending:
    where = f"To find out more about why your job exited please check the logs: {link}"
    if status.out_of_memory:
        text = f"The replica {replica.task} ran out of memory and exited with a non-zero status of {status.exit_code}."
        return Ending(FAILED, _CODE_RESOURCE_EXHAUSTED, f"{text} {where}", now)
    text = f"The replica {replica.task} exited with a non-zero status of {status.exit_code}. Termination reason: Error."
    return Ending(FAILED, CODE_INVALID_ARGUMENT, f"{text} {where}", now)


def deadline(job: Job) -> int:
    """When a job's timeout is over, in nanoseconds since 1970."""
    timeout = job.spec["jobSpec"].get("scheduling", {}).get("timeout", DEFAULT_TIMEOUT)
    return (job.started or now_ns()) + int(duration_seconds(timeout) * 10**9)
