"""The rules for restarts: which errors are transient, and how often a job or a replica is restarted.

Sources: Google's pages on the training service (exit codes, restarts of workers and jobs), on CustomJob scheduling
(disableRetries, restartJobOnWorkerRestart) and on Spot VMs (six restarts). Whether the count of a worker's restarts
is reset when the whole job is retried is not documented; here it is.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from vertex_emulator.database.records import Ending, Job, Replica, RestartHistory
from vertex_emulator.replicas.executor_protocol import ReplicaStatus

MAX_WORKER_RESTARTS = 5
MAX_RETRIES = 3
MAX_PREEMPTIONS = 6
_ABORTED, _SEGMENTATION_FAULT = (6, 134), (11, 139)
_KILLED = 137


@dataclass(frozen=True)
class RestartPlan:
    """A planned restart: the job's new restart history, whether all replicas restart, and a message for its log."""

    restarts: RestartHistory
    whole_job: bool
    log_message: str


@dataclass(frozen=True)
class SecondStart:
    """The start of a replica's exited container in place, and how its job ends if that is impossible."""

    replica: Replica
    ending_if_impossible: Ending


def is_abort_or_segmentation_fault(status: ReplicaStatus) -> bool:
    """Return whether a replica failed with an error that a retry may avoid: SIGABRT or SIGSEGV."""
    return status.exit_code in _ABORTED + _SEGMENTATION_FAULT


def was_killed_from_outside(status: ReplicaStatus) -> bool:
    """Return whether a replica was killed from outside: by SIGKILL, but not for its memory."""
    return status.phase == "exited" and status.exit_code == _KILLED and not status.out_of_memory


def plan_job_retry_or_none(job: Job, cause: str, now: int) -> RestartPlan | None:
    """Plan a restart of the whole job after a transient error; None if retries are disabled or used up."""
    restarts = job.restarts
    if job.scheduling.get("disableRetries") or restarts.retries >= MAX_RETRIES:
        return None
    count = restarts.retries + 1
    history = replace(restarts, retries=count, workers={})
    return _build_job_restart_plan(job, history, f"{cause} The job is retried: retry {count} of {MAX_RETRIES}.", now)


def plan_replica_or_job_restart_or_none(
    job: Job, lost: Collection[Replica], cause: str, now: int
) -> RestartPlan | None:
    """Plan a restart of lost replicas, with the same host names, or of the whole job; None if none is left."""
    if job.scheduling.get("disableRetries"):
        return None
    counts = {**job.restarts.workers}
    for replica in lost:
        counts[replica.task_name] = counts.get(replica.task_name, 0) + 1
    if max(counts.values()) > MAX_WORKER_RESTARTS:
        return plan_job_retry_or_none(job, cause, now)
    history = replace(job.restarts, workers=counts)
    restart = max(counts[replica.task_name] for replica in lost)
    if job.scheduling.get("restartJobOnWorkerRestart"):
        log_message = f"{cause} The job is restarted with it: restart {restart} of {MAX_WORKER_RESTARTS}."
        return _build_job_restart_plan(job, history, log_message, now)
    log_message = f"{cause} The replica is restarted: restart {restart} of {MAX_WORKER_RESTARTS}."
    return RestartPlan(_build_history_with_restart(history, lost, now), False, log_message)


def plan_preempted_spot_restart_or_none(job: Job, cause: str, now: int) -> RestartPlan | None:
    """Plan a restart of a preempted SPOT job; None for other jobs, and if preemption restarts are used up."""
    restarts = job.restarts
    is_spot = job.scheduling.get("strategy") == "SPOT" and not job.scheduling.get("disableRetries")
    if not is_spot or restarts.preemptions >= MAX_PREEMPTIONS:
        return None
    count = restarts.preemptions + 1
    log_message = f"STOCKOUT: {cause} The job is restarted: restart {count} of {MAX_PREEMPTIONS}."
    return _build_job_restart_plan(job, replace(restarts, preemptions=count), log_message, now)


def _build_job_restart_plan(job: Job, updated_history: RestartHistory, log_message: str, now: int) -> RestartPlan:
    return RestartPlan(_build_history_with_restart(updated_history, job.requested_replicas, now), True, log_message)


def _build_history_with_restart(history: RestartHistory, restarted: Collection[Replica], now: int) -> RestartHistory:
    new_attempts = {replica.task_name: history.attempts.get(replica.task_name, 0) + 1 for replica in restarted}
    return replace(history, attempts={**history.attempts, **new_attempts}, restarting_since=now)
