"""Which errors pass, and how often a job or a replica is started again because of them.

Sources: Google's pages on the training service (exit codes, restarts of workers and jobs), on CustomJob scheduling
(disableRetries, restartJobOnWorkerRestart) and on Spot VMs (six restarts). Whether the count of a worker's restarts
begins again when the whole job is retried is not documented; here it does.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from vertex_emulator.database.records import Job, Replica, Restarts
from vertex_emulator.replicas.executor import ReplicaStatus

MOST_WORKER_RESTARTS = 5
MOST_RETRIES = 3
MOST_PREEMPTIONS = 6
_ABORTED, _SEGMENTATION_FAULT = (6, 134), (11, 139)
_KILLED = 137


@dataclass(frozen=True)
class Restart:
    """A decision: the job's record from now on, whether all replicas begin again, and the line in the job's log."""

    restarts: Restarts
    whole_job: bool
    line: str


def is_passing(status: ReplicaStatus) -> bool:
    """Whether a replica ended by an error that a retry may not meet again: SIGABRT or SIGSEGV."""
    return status.exit_code in _ABORTED + _SEGMENTATION_FAULT


def is_lost(status: ReplicaStatus) -> bool:
    """Whether a replica was killed from outside: by SIGKILL and not for its memory, as when its machine goes."""
    return status.phase == "exited" and status.exit_code == _KILLED and not status.out_of_memory


def retry(job: Job, cause: str, now: int) -> Restart | None:
    """Start the whole job again after a passing error; None when that is not allowed or has been tried enough."""
    restarts = job.restarts
    if job.scheduling.get("disableRetries") or restarts.retries >= MOST_RETRIES:
        return None
    count = restarts.retries + 1
    changed = replace(restarts, retries=count, workers={})
    return _whole_job(job, changed, f"{cause} The job is retried: retry {count} of {MOST_RETRIES}.", now)


def replace_workers(job: Job, lost: Collection[Replica], cause: str, now: int) -> Restart | None:
    """Start lost replicas again, with the same host names, or the whole job; None when nothing is allowed any more."""
    if job.scheduling.get("disableRetries"):
        return None
    counts = {**job.restarts.workers}
    for replica in lost:
        counts[replica.task] = counts.get(replica.task, 0) + 1
    if max(counts.values()) > MOST_WORKER_RESTARTS:
        return retry(job, cause, now)
    changed = replace(job.restarts, workers=counts)
    worst = max(counts[replica.task] for replica in lost)
    if job.scheduling.get("restartJobOnWorkerRestart"):
        line = f"{cause} The job is restarted with it: restart {worst} of {MOST_WORKER_RESTARTS}."
        return _whole_job(job, changed, line, now)
    line = f"{cause} The replica is restarted: restart {worst} of {MOST_WORKER_RESTARTS}."
    return Restart(_next_attempts(job, changed, lost, now), False, line)


def after_preemption(job: Job, cause: str, now: int) -> Restart | None:
    """Start a SPOT job again that lost its machines; None for other jobs, and when that has been tried enough."""
    restarts = job.restarts
    is_spot = job.scheduling.get("strategy") == "SPOT" and not job.scheduling.get("disableRetries")
    if not is_spot or restarts.preemptions >= MOST_PREEMPTIONS:
        return None
    count = restarts.preemptions + 1
    changed = replace(restarts, preemptions=count)
    return _whole_job(
        job, changed, f"STOCKOUT: {cause} The job is restarted: restart {count} of {MOST_PREEMPTIONS}.", now
    )


def _whole_job(job: Job, changed: Restarts, line: str, now: int) -> Restart:
    return Restart(_next_attempts(job, changed, job.requested_replicas, now), True, line)


def _next_attempts(job: Job, changed: Restarts, replicas: Collection[Replica], now: int) -> Restarts:
    known: Mapping[str, int] = job.restarts.attempts
    tasks = [replica.task for replica in replicas]
    return replace(
        changed, attempts={**known, **{task: known.get(task, 0) + 1 for task in tasks}}, restarting_since=now
    )
