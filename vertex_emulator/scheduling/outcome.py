"""What becomes of a running custom job, by its replicas' statuses and the time: how it ends, or what is restarted.

Sources: Google's pages on the training service (exit codes, restarts of workers and jobs), on CustomJob scheduling
(disableRetries, restartJobOnWorkerRestart) and on Spot VMs (six restarts). Whether the count of a worker's restarts
is reset when the whole job is retried is not documented; here it is.

Of an injected `second-start`, a capture shows this: after exit 1 a container was started again in place some 70 s
later, until the tear-down (docs/fidelity.md). That the job runs on in between, as nobody has noticed its failure, is
inferred.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from vertex_api.jobspec import DEFAULT_MAX_WAIT, DEFAULT_TIMEOUT, explicit_timeout
from vertex_api.scalars import to_seconds
from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Replica, RestartHistory
from vertex_emulator.faults import InjectedFault, UnnoticedFailure
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.scheduling import failures
from vertex_emulator.times import now_ns

PRIMARY = Replica(0, 0)
MAX_WORKER_RESTARTS = 5
MAX_RETRIES = 3
MAX_PREEMPTIONS = 6
_ABORTED, _SEGMENTATION_FAULT = (6, 134), (11, 139)
_KILLED = _OUT_OF_MEMORY = 137


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


Outcome = Ending | Restart | SecondStart | None
Statuses = Mapping[Replica, ReplicaStatus]
ReadTraceback = Callable[[Replica], str]


def running(statuses: Statuses) -> set[Replica]:
    """The replicas whose containers run."""
    return {replica for replica, status in statuses.items() if status.phase == "running"}


def decide(job: Job, statuses: Statuses, now: int, read_traceback: ReadTraceback) -> Outcome:
    """Decide how a running job ends or what is restarted; None while it goes on.

    `statuses` may hold earlier attempts, `now` is in ns, `read_traceback` returns the last traceback in a replica's log
    or "". The first replica to fail fails the job, unless its error is transient. If the primary replica succeeds, the
    job does (Google's page on the training service). Replicas are checked in the order in which they ended, so the
    outcome does not depend on when this is called.
    """
    current = {replica: statuses[replica] for replica in job.current_replicas if replica in statuses}
    if (failure := job.restarts.unnoticed_failure) is not None:
        return _judge_unnoticed(job, failure, current, now) or timeout(job, now)
    fault_time = next_fault_time(job, current)
    if job.fault is not None and fault_time is not None and now >= fault_time:
        match job.fault.kind:
            case "preempt":
                stockout = failures.stockout(job, now)
                return _restart_preempted(job, stockout.message, now) or stockout
            case "fail" if job.fault.code is not None:
                return Ending(FAILED, job.fault.code, job.fault.message or "Injected failure.", now)
        current = _with_fault(job.fault, current, fault_time)
    return _judge_exits(job, current, now, read_traceback) or _judge_losses(job, current, now) or timeout(job, now)


def _judge_exits(job: Job, statuses: Statuses, now: int, read_traceback: ReadTraceback) -> Outcome:
    exited = [item for item in statuses.items() if item[1].phase == "exited"]
    for replica, status in sorted(exited, key=lambda item: item[1].finished or 0):
        if _was_killed(status):
            continue
        if status.exit_code != 0:
            cause = failures.exit_sentence(replica, status.exit_code)
            # SIGABRT and SIGSEGV are errors that a retry may avoid.
            is_transient = status.exit_code in _ABORTED + _SEGMENTATION_FAULT
            restart = _retry(job, cause, now) if is_transient else None
            if restart is not None:
                return restart
            failure = failures.exited(job, replica, status, read_traceback, now)
            return _hide(job, replica, status, failure) or failure
        if replica.first_attempt == PRIMARY:
            return Ending(SUCCEEDED, 0, "", now)
    return None


def _judge_losses(job: Job, statuses: Statuses, now: int) -> Outcome:
    removed = [replica for replica in job.current_replicas if replica not in statuses]
    killed = [replica for replica, status in statuses.items() if _was_killed(status)]
    if not removed and not killed:
        return None
    event = "was removed" if removed else "was killed"
    cause = f"the container of replica {(removed or killed)[0].task_name} {event} from outside."
    restart = _replace(job, [*removed, *killed], cause[0].upper() + cause[1:], now)
    return restart or failures.internal(cause, now)


def _was_killed(status: ReplicaStatus) -> bool:
    """Whether a replica was killed from outside: by SIGKILL, but not for its memory."""
    return status.phase == "exited" and status.exit_code == _KILLED and not status.out_of_memory


def _retry(job: Job, cause: str, now: int) -> Restart | None:
    """Restart the whole job after a transient error; None if retries are disabled or used up."""
    restarts = job.restarts
    if job.scheduling.get("disableRetries") or restarts.retries >= MAX_RETRIES:
        return None
    count = restarts.retries + 1
    history = replace(restarts, retries=count, workers={})
    return _restart_job(job, history, f"{cause} The job is retried: retry {count} of {MAX_RETRIES}.", now)


def _replace(job: Job, lost: Collection[Replica], cause: str, now: int) -> Restart | None:
    """Restart lost replicas, with the same host names, or the whole job; None if no restart is left."""
    if job.scheduling.get("disableRetries"):
        return None
    counts = {**job.restarts.workers}
    for replica in lost:
        counts[replica.task_name] = counts.get(replica.task_name, 0) + 1
    if max(counts.values()) > MAX_WORKER_RESTARTS:
        return _retry(job, cause, now)
    history = replace(job.restarts, workers=counts)
    count = max(counts[replica.task_name] for replica in lost)
    if job.scheduling.get("restartJobOnWorkerRestart"):
        message = f"{cause} The job is restarted with it: restart {count} of {MAX_WORKER_RESTARTS}."
        return _restart_job(job, history, message, now)
    message = f"{cause} The replica is restarted: restart {count} of {MAX_WORKER_RESTARTS}."
    return Restart(_next_attempts(history, lost, now), False, message)


def _restart_preempted(job: Job, cause: str, now: int) -> Restart | None:
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


def timeout(job: Job, now: int) -> Ending | None:
    """How a job ends that exceeds its timeout; None before."""
    if now < deadline(job):
        return None
    message = f"The job exceeded its timeout of {_timeout_duration(job)}."
    return Ending(FAILED, failures.DEADLINE_EXCEEDED, message, now)


def deadline(job: Job) -> int:
    """When a job times out, in ns since 1970; the timeout counts from its first start."""
    return (job.started or now_ns()) + int(to_seconds(_timeout_duration(job)) * 10**9)


def _timeout_duration(job: Job) -> str:
    return explicit_timeout(job.spec["jobSpec"]) or DEFAULT_TIMEOUT


def queue_deadline(job: Job) -> int | None:
    """When a queued job gives up, in ns since 1970; None if it waits without limit.

    Only a FLEX_START job gives up: after maxWaitDuration, by default a day; 0 means no limit.
    """
    if job.scheduling.get("strategy") != "FLEX_START":
        return None
    wait = to_seconds(job.scheduling.get("maxWaitDuration", DEFAULT_MAX_WAIT))
    return job.created + int(wait * 10**9) if wait else None


def stockout_time(job: Job) -> int | None:
    """When a job fails that an injected fault leaves without machines (ns); None without such a fault."""
    if job.fault is None or job.fault.kind != "stockout":
        return None
    return job.created + int(job.fault.after * 10**9)


def next_fault_time(job: Job, statuses: Statuses) -> int | None:
    """When the job's injected fault hits next (ns); None if none is left.

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


def _with_fault(fault: InjectedFault, statuses: Statuses, exit_time: int) -> dict[Replica, ReplicaStatus]:
    """The statuses as if the fault's replica had exited at `exit_time` (ns)."""
    out_of_memory = fault.kind == "oom"
    code = _OUT_OF_MEMORY if out_of_memory else fault.exit_code or 0
    return {
        replica: replace(status, phase="exited", exit_code=code, out_of_memory=out_of_memory, finished=exit_time)
        if replica.task_name == fault.task_name
        else status
        for replica, status in statuses.items()
    }


def _hide(job: Job, replica: Replica, status: ReplicaStatus, failure: Ending) -> Restart | None:
    """Let the job run on after an exit that fails it, to start the container again; None without such a fault."""
    fault = job.fault
    if fault is None or fault.kind != "second-start" or fault.replica not in (None, replica.task_name):
        return None
    unnoticed = UnnoticedFailure(replica.task_name, status.finished or failure.at, failure.code, failure.message)
    message = (
        f"{failures.exit_sentence(replica, status.exit_code)} As injected, its container is started again in place "
        f"{fault.after:g} s later, and the job is torn down after that."
    )
    return Restart(replace(job.restarts, unnoticed_failure=unnoticed), False, message)


def _judge_unnoticed(job: Job, failure: UnnoticedFailure, statuses: Statuses, now: int) -> SecondStart | Ending | None:
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
