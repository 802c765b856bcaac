"""An injected fault as it strikes a running job."""

from collections.abc import Mapping
from dataclasses import replace

from vertex_emulator.database.records import Job, Replica
from vertex_emulator.injected_faults import InjectedFault
from vertex_emulator.replicas.executor import ReplicaStatus

_OUT_OF_MEMORY = 137


def moment(job: Job, statuses: Mapping[Replica, ReplicaStatus]) -> int | None:
    """When the job's fault strikes (ns), by the start of its primary replica; None when none will any more."""
    fault = job.fault
    if fault is None or _has_struck(job, fault):
        return None
    primary = statuses.get(job.current_replicas[0])
    if primary is None or primary.started is None:
        return None
    due = primary.started + int(fault.after * 10**9)
    return due if primary.finished is None or due <= primary.finished else None


def exited(fault: InjectedFault, statuses: Mapping[Replica, ReplicaStatus], at: int) -> dict[Replica, ReplicaStatus]:
    """The replicas as they would be if the fault's replica had come to its end at `at`."""
    out_of_memory = fault.kind == "oom"
    code = _OUT_OF_MEMORY if out_of_memory else fault.exit_code or 0
    return {
        replica: replace(status, phase="exited", exit_code=code, out_of_memory=out_of_memory, finished=at)
        if replica.task == fault.replica
        else status
        for replica, status in statuses.items()
    }


def _has_struck(job: Job, fault: InjectedFault) -> bool:
    """Whether the fault has had all its times, by what it left in the job's record."""
    if fault.kind == "preempt":
        return job.restarts.preemptions >= fault.times
    return fault.code is None and job.restarts.attempts.get(fault.replica, 0) >= fault.times
