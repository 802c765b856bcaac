"""The rules for restarts: which errors are transient, and how often a job or a replica is restarted.

Sources: Google's pages on the training service (exit codes, restarts of workers and jobs), on CustomJob scheduling
(disableRetries, restartJobOnWorkerRestart) and on Spot VMs (six restarts). Whether the count of a worker's restarts
is reset when the whole job is retried is not documented; here it is.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from vertex_emulator.database.records import Ending, Job, Replica, RestartHistory
from vertex_emulator.replicas.containers import ReplicaStatus

MAX_WORKER_RESTARTS = 5
MAX_RETRIES = 3
MAX_PREEMPTIONS = 6
_ABORTED, _SEGMENTATION_FAULT = (6, 134), (11, 139)
_KILLED = 137


@dataclass(frozen=True)
class Restart:
    """A planned restart: the job's new restart history, whether all replicas restart, and a message for its log."""

    history: RestartHistory
    whole_job: bool
    log_message: str


@dataclass(frozen=True)
class SecondStart:
    """The start of a replica's exited container in place, and how its job ends if that is impossible."""

    replica: Replica
    ending_if_impossible: Ending


def is_transient(status: ReplicaStatus) -> bool:
    """Whether a replica failed with an error that a retry may avoid: SIGABRT or SIGSEGV."""
    return status.exit_code in _ABORTED + _SEGMENTATION_FAULT


def was_killed(status: ReplicaStatus) -> bool:
    """Whether a replica was killed from outside: by SIGKILL, but not for its memory."""
    return status.phase == "exited" and status.exit_code == _KILLED and not status.out_of_memory


def retry(job: Job, cause: str, now: int) -> Restart | None:
    """Restart the whole job after a transient error; None if retries are disabled or used up."""
    restarts = job.restarts
    if job.scheduling.get("disableRetries") or restarts.retries >= MAX_RETRIES:
        return None
    count = restarts.retries + 1
    history = replace(restarts, retries=count, workers={})
    return _restart_job(job, history, f"{cause} The job is retried: retry {count} of {MAX_RETRIES}.", now)


def replace_lost(job: Job, lost: Collection[Replica], cause: str, now: int) -> Restart | None:
    """Restart lost replicas, with the same host names, or the whole job; None if no restart is left."""
    if job.scheduling.get("disableRetries"):
        return None
    counts = {**job.restarts.workers}
    for replica in lost:
        counts[replica.task_name] = counts.get(replica.task_name, 0) + 1
    if max(counts.values()) > MAX_WORKER_RESTARTS:
        return retry(job, cause, now)
    history = replace(job.restarts, workers=counts)
    count = max(counts[replica.task_name] for replica in lost)
    if job.scheduling.get("restartJobOnWorkerRestart"):
        message = f"{cause} The job is restarted with it: restart {count} of {MAX_WORKER_RESTARTS}."
        return _restart_job(job, history, message, now)
    message = f"{cause} The replica is restarted: restart {count} of {MAX_WORKER_RESTARTS}."
    return Restart(_next_attempts(history, lost, now), False, message)


def after_preemption(job: Job, cause: str, now: int) -> Restart | None:
    """Restart a preempted SPOT job; None for other jobs, and if preemption restarts are used up."""
    scheduling, restarts = job.scheduling, job.restarts
    is_spot = scheduling.get("strategy") == "SPOT" and not scheduling.get("disableRetries")
    if not is_spot or restarts.preemptions >= MAX_PREEMPTIONS:
        return None
    count = restarts.preemptions + 1
    message = f"STOCKOUT: {cause} The job is restarted: restart {count} of {MAX_PREEMPTIONS}."
    return _restart_job(job, replace(restarts, preemptions=count), message, now)


def _restart_job(job: Job, history: RestartHistory, message: str, now: int) -> Restart:
    return Restart(_next_attempts(history, job.requested_replicas, now), True, message)


def _next_attempts(history: RestartHistory, restarted: Collection[Replica], now: int) -> RestartHistory:
    attempts = {replica.task_name: history.attempts.get(replica.task_name, 0) + 1 for replica in restarted}
    return replace(history, attempts={**history.attempts, **attempts}, restarting_since=now)
