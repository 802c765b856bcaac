"""What becomes of a running custom job, by its replicas' statuses and the time: how it ends, or what is restarted."""

from collections.abc import Callable, Mapping

from vertex_api.jobspec import DEFAULT_MAX_WAIT, DEFAULT_TIMEOUT, explicit_timeout
from vertex_api.scalars import to_seconds
from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Replica
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.scheduling import failures, faults, restarts
from vertex_emulator.scheduling.restarts import Restart, SecondStart
from vertex_emulator.times import now_ns

PRIMARY = Replica(0, 0)

Outcome = Ending | Restart | SecondStart | None
Statuses = Mapping[Replica, ReplicaStatus]
ReadTraceback = Callable[[Replica], str]


def decide(job: Job, statuses: Statuses, now: int, read_traceback: ReadTraceback) -> Outcome:
    """Decide how a running job ends or what is restarted; None while it goes on.

    `statuses` may hold earlier attempts, `now` is in ns, `read_traceback` returns the last traceback in a replica's log
    or "". The first replica to fail fails the job, unless its error is transient (restarts.py). If the primary replica
    succeeds, the job does (Google's page on the training service). Replicas are checked in the order in which they
    ended, so the outcome does not depend on when this is called.
    """
    current = {replica: statuses[replica] for replica in job.current_replicas if replica in statuses}
    if (failure := job.restarts.unnoticed_failure) is not None:
        return faults.judge_hidden(job, failure, current, now) or timeout(job, now)
    fault_time = faults.next_time(job, current)
    if job.fault is not None and fault_time is not None and now >= fault_time:
        match job.fault.kind:
            case "preempt":
                stockout = failures.stockout(job, now)
                return restarts.after_preemption(job, stockout.message, now) or stockout
            case "fail" if job.fault.code is not None:
                return Ending(FAILED, job.fault.code, job.fault.message or "Injected failure.", now)
        current = dict(faults.exit_statuses(job.fault, current, fault_time))
    return _judge_exits(job, current, now, read_traceback) or _judge_losses(job, current, now) or timeout(job, now)


def _judge_exits(job: Job, statuses: Statuses, now: int, read_traceback: ReadTraceback) -> Outcome:
    exited = [item for item in statuses.items() if item[1].phase == "exited"]
    for replica, status in sorted(exited, key=lambda item: item[1].finished or 0):
        if restarts.was_killed(status):
            continue
        if status.exit_code != 0:
            cause = failures.exit_sentence(replica, status.exit_code)
            restart = restarts.retry(job, cause, now) if restarts.is_transient(status) else None
            if restart is not None:
                return restart
            failure = failures.exited(job, replica, status, read_traceback, now)
            return faults.hide_failure(job, replica, status, failure) or failure
        if replica.first_attempt == PRIMARY:
            return Ending(SUCCEEDED, 0, "", now)
    return None


def _judge_losses(job: Job, statuses: Statuses, now: int) -> Outcome:
    removed = [replica for replica in job.current_replicas if replica not in statuses]
    killed = [replica for replica, status in statuses.items() if restarts.was_killed(status)]
    if not removed and not killed:
        return None
    event = "was removed" if removed else "was killed"
    cause = f"the container of replica {(removed or killed)[0].task_name} {event} from outside."
    restart = restarts.replace_lost(job, [*removed, *killed], cause[0].upper() + cause[1:], now)
    return restart or failures.internal(cause, now)


def running(statuses: Statuses) -> set[Replica]:
    """The replicas whose containers run."""
    return {replica for replica, status in statuses.items() if status.phase == "running"}


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
