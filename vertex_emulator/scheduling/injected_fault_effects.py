"""The effect of an injected fault on a running job: when it hits, and which replica statuses it simulates."""

from collections.abc import Mapping
from dataclasses import replace

from vertex_emulator.database.records import Job, Replica
from vertex_emulator.injected_faults import InjectedFault
from vertex_emulator.replicas.executor_protocol import ReplicaStatus

_OUT_OF_MEMORY = 137


def compute_fault_time_or_none(job: Job, statuses: Mapping[Replica, ReplicaStatus]) -> int | None:
    """Return when the job's fault hits (ns), counted from the start of its primary replica; None if none is left."""
    fault = job.fault
    if fault is None or fault.kind in ("stockout", "debug") or _is_used_up(job, fault):
        return None
    primary = statuses.get(job.current_replicas[0])
    if primary is None or primary.started is None:
        return None
    due = primary.started + int(fault.after * 10**9)
    return due if primary.finished is None or due <= primary.finished else None


def compute_stockout_time_or_none(job: Job) -> int | None:
    """Return when a job fails that an injected fault leaves without machines (ns); None without such a fault."""
    if job.fault is None or job.fault.kind != "stockout":
        return None
    return job.created + int(job.fault.after * 10**9)


def simulate_fault_exit(
    fault: InjectedFault, statuses: Mapping[Replica, ReplicaStatus], exit_time: int
) -> dict[Replica, ReplicaStatus]:
    """Return the statuses as if the fault's replica had exited at `exit_time` (ns)."""
    out_of_memory = fault.kind == "oom"
    code = _OUT_OF_MEMORY if out_of_memory else fault.exit_code or 0
    return {
        replica: replace(status, phase="exited", exit_code=code, out_of_memory=out_of_memory, finished=exit_time)
        if replica.task_name == fault.task_name
        else status
        for replica, status in statuses.items()
    }


def _is_used_up(job: Job, fault: InjectedFault) -> bool:
    """Return whether the fault has hit as often as it should, by the job's restart history."""
    if fault.kind == "preempt":
        return job.restarts.preemptions >= fault.times
    return fault.code is None and job.restarts.attempts.get(fault.task_name, 0) >= fault.times
