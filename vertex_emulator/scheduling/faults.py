"""The effect of an injected fault on a running job: when it hits, and which replica statuses it simulates.

Of kind `second-start`, a capture shows this: after exit 1 a container was started again in place some 70 s later, until
the tear-down (docs/fidelity.md). That the job runs on in between, as nobody has noticed its failure, is inferred.
"""

from collections.abc import Mapping
from dataclasses import replace

from vertex_emulator.database.records import FAILED, Ending, Job, Replica
from vertex_emulator.faults import InjectedFault, UnnoticedFailure
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.scheduling.failures import exit_sentence
from vertex_emulator.scheduling.restarts import Restart, SecondStart

Statuses = Mapping[Replica, ReplicaStatus]
_OUT_OF_MEMORY = 137


def next_time(job: Job, statuses: Statuses) -> int | None:
    """When the job's fault hits next (ns); None if none is left.

    Time counts from the start of the primary replica, or from the exit of the container that is started again.
    """
    fault = job.fault
    if fault is not None and job.restarts.unnoticed_failure is not None:
        return _second_start_time(fault, job.restarts.unnoticed_failure, statuses)
    if fault is None or fault.kind in ("stockout", "second-start", "debug") or _is_used_up(job, fault):
        return None
    primary = statuses.get(job.current_replicas[0])
    if primary is None or primary.started is None:
        return None
    due = primary.started + int(fault.after * 10**9)
    return due if primary.finished is None or due <= primary.finished else None


def _is_used_up(job: Job, fault: InjectedFault) -> bool:
    """Whether the fault has hit as often as it should, by the job's restart history."""
    if fault.kind == "preempt":
        return job.restarts.preemptions >= fault.times
    return fault.code is None and job.restarts.attempts.get(fault.task_name, 0) >= fault.times


def stockout_time(job: Job) -> int | None:
    """When a job fails that an injected fault leaves without machines (ns); None without such a fault."""
    if job.fault is None or job.fault.kind != "stockout":
        return None
    return job.created + int(job.fault.after * 10**9)


def exit_statuses(fault: InjectedFault, statuses: Statuses, exit_time: int) -> Statuses:
    """The statuses as if the fault's replica had exited at `exit_time` (ns)."""
    out_of_memory = fault.kind == "oom"
    code = _OUT_OF_MEMORY if out_of_memory else fault.exit_code or 0
    return {
        replica: replace(status, phase="exited", exit_code=code, out_of_memory=out_of_memory, finished=exit_time)
        if replica.task_name == fault.task_name
        else status
        for replica, status in statuses.items()
    }


def hide_failure(job: Job, replica: Replica, status: ReplicaStatus, failure: Ending) -> Restart | None:
    """Let the job run on after an exit that fails it, to start the container again; None without such a fault."""
    fault = job.fault
    if fault is None or fault.kind != "second-start" or fault.replica not in (None, replica.task_name):
        return None
    unnoticed = UnnoticedFailure(replica.task_name, status.finished or failure.at, failure.code, failure.message)
    message = (
        f"{exit_sentence(replica, status.exit_code)} As injected, its container is started again in place "
        f"{fault.after:g} s later, and the job is torn down after that."
    )
    return Restart(replace(job.restarts, unnoticed_failure=unnoticed), False, message)


def judge_hidden(job: Job, failure: UnnoticedFailure, statuses: Statuses, now: int) -> SecondStart | Ending | None:
    """Decide what to do with a job whose failure is unnoticed; None while it waits.

    It is torn down `run_for` seconds after the second start, or earlier if the container exits again or is removed.
    """
    assert job.fault is not None
    ending = Ending(FAILED, failure.code, failure.message, now)
    found = [(replica, status) for replica, status in statuses.items() if replica.task_name == failure.task_name]
    if not found:
        return ending
    [(replica, status)] = found
    has_started_again = (status.started or 0) > failure.exited
    if has_started_again and status.phase == "exited":
        return ending
    if now < _second_start_time(job.fault, failure, statuses):
        return None
    return ending if has_started_again else SecondStart(replica, ending)


def _second_start_time(fault: InjectedFault, failure: UnnoticedFailure, statuses: Statuses) -> int:
    """When the failed container is started again or, if it has been, when its job is torn down (ns)."""
    started = [status.started or 0 for replica, status in statuses.items() if replica.task_name == failure.task_name]
    last_start = max(started, default=0)
    if last_start > failure.exited:
        return last_start + int((fault.run_for or 0.0) * 10**9)
    return failure.exited + int(fault.after * 10**9)
