"""How a running custom job ends or is restarted, by what its replicas came to."""

from collections.abc import Mapping

from vertex_api.catalog.job_defaults import DEFAULT_TIMEOUT, get_timeout
from vertex_api.scalars import parse_seconds
from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Replica
from vertex_emulator.replicas.executor import ReplicaStatus
from vertex_emulator.scheduling import injected
from vertex_emulator.scheduling.restarts import Restart, after_preemption, is_lost, is_passing, replace_workers, retry
from vertex_emulator.times import now_ns

PRIMARY = Replica(0, 0)
CODE_INVALID_ARGUMENT = 3
_CODE_DEADLINE_EXCEEDED = 4
_CODE_RESOURCE_EXHAUSTED = 8
_CODE_OUT_OF_MEMORY = 9
CODE_FAILED_PRECONDITION = 9
CODE_INTERNAL = 13

Verdict = Ending | Restart | None


def verdict(job: Job, statuses: Mapping[Replica, ReplicaStatus], now: int, link: str) -> Verdict:
    """How a running job ends, or what is restarted; None while it goes on.

    `statuses` may hold earlier attempts. The first replica to fail fails the job, unless its error is one that passes
    (restarts.py); the primary replica's success is the job's (Google's page on the training service). Replicas are
    judged in the order in which they ended, so an outcome does not depend on when we look.
    """
    current = {replica: statuses[replica] for replica in job.current_replicas if replica in statuses}
    due = injected.moment(job, current)
    if job.fault is not None and due is not None and now >= due:
        match job.fault.kind:
            case "preempt":
                return _preemption(job, now)
            case "fail" if job.fault.code is not None:
                return Ending(FAILED, job.fault.code, job.fault.message or "Injected failure.", now)
        current = injected.exited(job.fault, current, due)
    return _by_exits(job, current, now, link) or _by_losses(job, current, now) or timed_out(job, now)


def timed_out(job: Job, now: int) -> Ending | None:
    """The end of a job that runs longer than it may."""
    if now < deadline(job):
        return None
    timeout = get_timeout(job.spec["jobSpec"]) or DEFAULT_TIMEOUT
    return Ending(FAILED, _CODE_DEADLINE_EXCEEDED, f"The job exceeded its timeout of {timeout}.", now)


def deadline(job: Job) -> int:
    """When a job's timeout is over, in nanoseconds since 1970; it counts from the first start."""
    timeout = get_timeout(job.spec["jobSpec"]) or DEFAULT_TIMEOUT
    return (job.started or now_ns()) + int(parse_seconds(timeout) * 10**9)


def stockout(region: str) -> str:
    """What the service says when it has no machines left (Google's page on troubleshooting)."""
    return f"Resources are insufficient in region: {region}. Try a different region or use a different accelerator."


def no_resources(job: Job, now: int) -> Ending:
    """The end of a job for which there are no machines."""
    return Ending(FAILED, _CODE_RESOURCE_EXHAUSTED, stockout(job.location.region), now)


def _preemption(job: Job, now: int) -> Ending | Restart:
    return after_preemption(job, stockout(job.location.region), now) or no_resources(job, now)


def _by_exits(job: Job, statuses: Mapping[Replica, ReplicaStatus], now: int, link: str) -> Verdict:
    exited = [found for found in statuses.items() if found[1].phase == "exited" and not is_lost(found[1])]
    for replica, status in sorted(exited, key=lambda found: found[1].finished or 0):
        if status.exit_code != 0:
            restart = retry(job, _exit_text(replica, status), now) if is_passing(status) else None
            return restart or _exit_failure(replica, status, link, now)
        if replica.first_attempt == PRIMARY:
            return Ending(SUCCEEDED, 0, "", now)
    return None


def _by_losses(job: Job, statuses: Mapping[Replica, ReplicaStatus], now: int) -> Verdict:
    removed = [replica for replica in job.current_replicas if replica not in statuses]
    killed = [replica for replica, status in statuses.items() if is_lost(status)]
    if not removed and not killed:
        return None
    what = "was removed" if removed else "was killed"
    cause = f"the container of replica {(removed or killed)[0].task} {what} from outside."
    restart = replace_workers(job, [*removed, *killed], cause[0].upper() + cause[1:], now)
    return restart or Ending(FAILED, CODE_INTERNAL, f"Internal error occurred for the current attempt: {cause}", now)


def _exit_text(replica: Replica, status: ReplicaStatus) -> str:
    if status.out_of_memory:
        return f"The replica {replica.task} ran out of memory and exited with a non-zero status of {status.exit_code}."
    return f"The replica {replica.task} exited with a non-zero status of {status.exit_code}. Termination reason: Error."


def _exit_failure(replica: Replica, status: ReplicaStatus, link: str, now: int) -> Ending:
    code = _CODE_OUT_OF_MEMORY if status.out_of_memory else CODE_INVALID_ARGUMENT
    where = f"To find out more about why your job exited please check the logs: {link}"
    return Ending(FAILED, code, f"{_exit_text(replica, status)} {where}", now)
