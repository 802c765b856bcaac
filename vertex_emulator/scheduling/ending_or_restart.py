"""Decides how a running custom job ends or what of it is restarted, by the statuses of its replicas."""

from collections.abc import Callable, Mapping

from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Replica
from vertex_emulator.replicas.executor_protocol import ReplicaStatus
from vertex_emulator.scheduling import failure_messages, fault_simulation, restart_rules
from vertex_emulator.scheduling.custom_job_deadlines import build_timeout_ending_if_due
from vertex_emulator.scheduling.restart_rules import RestartPlan, SecondStart

PRIMARY = Replica(0, 0)
CODE_INVALID_ARGUMENT = 3
_CODE_RESOURCE_EXHAUSTED = 8
CODE_FAILED_PRECONDITION = 9
CODE_INTERNAL = 13

JobOutcome = Ending | RestartPlan | SecondStart | None
ReadTraceback = Callable[[Replica], str]


def decide_ending_or_restart_or_none(
    job: Job, statuses: Mapping[Replica, ReplicaStatus], now: int, read_traceback: ReadTraceback
) -> JobOutcome:
    """Decide how a running job ends or what is restarted; None while it goes on.

    `statuses` may hold earlier attempts, `now` is in ns, `read_traceback` returns the last traceback in a replica's log
    or "". The first replica to fail fails the job, unless its error is
    transient (restart_rules.py). If the primary replica succeeds, the job does (Google's page on the training service).
    Replicas are checked in the order in which they ended, so the outcome does not depend on when this is called.
    """
    current = {replica: statuses[replica] for replica in job.current_replicas if replica in statuses}
    if (failure := job.restarts.unnoticed_failure) is not None:
        step = fault_simulation.decide_second_start_or_teardown_or_none(job, failure, current, now)
        return step or build_timeout_ending_if_due(job, now)
    fault_time = fault_simulation.compute_next_fault_time_or_none(job, current)
    if job.fault is not None and fault_time is not None and now >= fault_time:
        match job.fault.kind:
            case "preempt":
                return _decide_outcome_of_preemption(job, now)
            case "fail" if job.fault.code is not None:
                return Ending(FAILED, job.fault.code, job.fault.message or "Injected failure.", now)
        current = fault_simulation.copy_statuses_with_fault_exit(job.fault, current, fault_time)
    return (
        _decide_outcome_of_exits_or_none(job, current, now, read_traceback)
        or _decide_outcome_of_lost_replicas_or_none(job, current, now)
        or build_timeout_ending_if_due(job, now)
    )


def select_running_replicas(statuses: Mapping[Replica, ReplicaStatus]) -> set[Replica]:
    """Return the replicas whose containers run."""
    return {replica for replica, status in statuses.items() if status.phase == "running"}


def build_stockout_ending(job: Job, now: int) -> Ending:
    """Build the ending of a job for which there are no machines."""
    return Ending(FAILED, _CODE_RESOURCE_EXHAUSTED, failure_messages.render_stockout_message(job.location.region), now)


def _decide_outcome_of_preemption(job: Job, now: int) -> Ending | RestartPlan:
    restart = restart_rules.plan_preempted_spot_restart_or_none(
        job, failure_messages.render_stockout_message(job.location.region), now
    )
    return restart or build_stockout_ending(job, now)


def _decide_outcome_of_exits_or_none(
    job: Job, statuses: Mapping[Replica, ReplicaStatus], now: int, read_traceback: ReadTraceback
) -> JobOutcome:
    exited = [item for item in statuses.items() if item[1].phase == "exited"]
    for replica, status in sorted(exited, key=lambda item: item[1].finished or 0):
        if restart_rules.was_killed_from_outside(status):
            continue
        if status.exit_code != 0:
            can_retry = restart_rules.is_abort_or_segmentation_fault(status)
            cause = f"The replica {replica.task_name} exited with a non-zero status of {status.exit_code}."
            restart = restart_rules.plan_job_retry_or_none(job, cause, now) if can_retry else None
            if restart is not None:
                return restart
            failure = _build_failed_exit_ending(job, replica, status, now, read_traceback)
            restart = fault_simulation.plan_injected_second_start_or_none(job, replica, status, failure)
            return restart or failure
        if replica.first_attempt == PRIMARY:
            return Ending(SUCCEEDED, 0, "", now)
    return None


def _decide_outcome_of_lost_replicas_or_none(
    job: Job, statuses: Mapping[Replica, ReplicaStatus], now: int
) -> JobOutcome:
    removed = [replica for replica in job.current_replicas if replica not in statuses]
    killed = [replica for replica, status in statuses.items() if restart_rules.was_killed_from_outside(status)]
    if not removed and not killed:
        return None
    event = "was removed" if removed else "was killed"
    cause = f"the container of replica {(removed or killed)[0].task_name} {event} from outside."
    restart = restart_rules.plan_replica_or_job_restart_or_none(
        job, [*removed, *killed], cause[0].upper() + cause[1:], now
    )
    return restart or Ending(FAILED, CODE_INTERNAL, f"Internal error occurred for the current attempt: {cause}", now)


def _build_failed_exit_ending(
    job: Job, replica: Replica, status: ReplicaStatus, now: int, read_traceback: ReadTraceback
) -> Ending:
    if status.out_of_memory:
        return Ending(FAILED, _CODE_RESOURCE_EXHAUSTED, failure_messages.render_low_memory_message(replica), now)
    is_package = "pythonPackageSpec" in job.spec["jobSpec"]["workerPoolSpecs"][replica.pool]
    traceback = read_traceback(replica) if is_package else ""
    message = failure_messages.render_nonzero_exit_message(job, replica, status.exit_code, traceback)
    return Ending(FAILED, CODE_INVALID_ARGUMENT, message, now)
