"""How a custom job goes from PENDING to its end.

Each step looks at the database and at the containers, does what is missing, and can be repeated: a process that was
killed in the middle is followed by one that takes the same step again.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import FAILED, PENDING, QUEUED, RUNNING, Ending, Job, Replica
from vertex_emulator.errors import ImageUnavailable, ReplicaCannotStart
from vertex_emulator.replicas import saved_logs as logs
from vertex_emulator.replicas.executor import Executor, ReplicaStatus
from vertex_emulator.replicas.replica_spec import replica_spec
from vertex_emulator.replicas.resources import shortfalls
from vertex_emulator.scheduling import injected, unreadable_image, waiting_time
from vertex_emulator.scheduling.restarts import Restart
from vertex_emulator.scheduling.verdict import (
    CODE_FAILED_PRECONDITION,
    CODE_INVALID_ARGUMENT,
    PRIMARY,
    deadline,
    no_resources,
    timed_out,
    verdict,
)
from vertex_emulator.times import now_ns

STOP_GRACE_SECONDS = 5.0
_KILL_AGAIN_SECONDS = 1.0
_SAVE_AGAIN_SECONDS = 5.0
_log = logging.getLogger("emulator.jobs")
_Statuses = Mapping[Replica, ReplicaStatus]


@dataclass(frozen=True)
class CustomJobReconciler:
    """Advances custom jobs; `link` gives the page of a job, `wake` asks for a look at another job."""

    database: Database
    executor: Executor
    data: DataFolder
    link: Callable[[Job], str]
    wake: Callable[[str], None]
    _asked_to_stop: set[tuple[str, Replica]] = field(default_factory=set)

    def advance(self, job: Job) -> float | None:
        """Take the next step; the seconds after which to look again, or None to wait for a change."""
        if job.is_terminal:
            return self._clear(job)
        if job.ending is not None:
            return self._finish(job, job.ending, self.executor.get_statuses(job.id))
        if job.state == QUEUED:
            return self._wait(job)
        if job.state == PENDING or job.restarts.restarting_since is not None:
            return self._launch(job)
        return self._watch(job)

    def end(self, job: Job, ending: Ending) -> Job | None:
        """Decide how a job ends, unless that has been decided already; the job, None when it is over or gone."""
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is None or current.is_terminal:
                return None
            return current if current.ending is not None else transaction.update_job(current, ending=ending)

    def _wait(self, job: Job) -> float | None:
        until = waiting_time.end(job)
        if until is None or now_ns() < until:
            return None if until is None else (until - now_ns()) / 10**9
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is not None and current.state == QUEUED:
                transaction.end_job(current, no_resources(job, now_ns()))
        return None

    def _launch(self, job: Job) -> float | None:
        """Start the replicas at the attempts that they have come to, once the attempts before are over."""
        begun = job.restarts.restarting_since
        if begun is not None:
            statuses = self.executor.get_statuses(job.id)
            ending = timed_out(job, now_ns())
            if ending is not None:
                return self._end_now(job, ending, statuses)
            again = self._stop(job, _running(statuses) - set(job.current_replicas), begun)
            if again is not None:
                return again
        image, task = "", PRIMARY.task
        try:
            host, metric_id = self.executor.get_host_resources(), self._metric_id(job)
            # What a replica is given is the same at every attempt.
            given = [replica_spec(job, place, self.data, host, metric_id) for place in job.requested_replicas]
            specs = [replace(spec, replica=replica) for spec, replica in zip(given, job.current_replicas, strict=True)]
            for image in sorted({spec.image for spec in specs}):
                if not self.executor.ensure_image(job.id, image):
                    return None
            for spec in specs:
                task = spec.replica.task
                self.executor.start_replica(spec)
        except ImageUnavailable as error:
            text = unreadable_image.message(image, str(error), job.location)
            return self._end_now(job, Ending(FAILED, CODE_FAILED_PRECONDITION, text, now_ns()))
        except ReplicaCannotStart as error:
            text = f"The replica {task} failed to start: {error}"
            return self._end_now(job, Ending(FAILED, CODE_INVALID_ARGUMENT, text, now_ns()))
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is not None and current.ending is None and not current.is_terminal:
                if current.state == PENDING:
                    for text in ("Waiting for training program to start.", "Job is preparing.", "Job is running."):
                        transaction.log_service_message(job.id, text)
                for text in shortfalls(job.spec["jobSpec"]["workerPoolSpecs"], host) if current.started is None else ():
                    transaction.log_service_message(job.id, text, "WARNING")
                restarts = replace(current.restarts, restarting_since=None)
                transaction.update_job(current, state=RUNNING, started=current.started or now_ns(), restarts=restarts)
        if job.study is not None:
            self.wake(job.study)
        # Its containers' ends are told, even those before this moment.
        return 0.0 if job.fault is not None else (deadline(job) - now_ns()) / 10**9

    def _watch(self, job: Job) -> float | None:
        now = now_ns()
        statuses = self.executor.get_statuses(job.id)
        found = verdict(job, statuses, now, self.link(job))
        if isinstance(found, Ending):
            return self._end_now(job, found, statuses)
        if isinstance(found, Restart):
            self._restart(job, found)
            return None
        moments = (deadline(job), injected.moment(job, statuses))
        return (min(moment for moment in moments if moment is not None) - now) / 10**9

    def _restart(self, job: Job, restart: Restart) -> None:
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is None or current.ending is not None or current.restarts != job.restarts:
                return
            transaction.log_service_message(job.id, restart.line, "WARNING")
            state = PENDING if restart.whole_job else RUNNING
            transaction.update_job(current, state=state, restarts=restart.restarts)
        self.wake(job.id)

    def _end_now(self, job: Job, ending: Ending, statuses: _Statuses | None = None) -> float | None:
        statuses = self.executor.get_statuses(job.id) if statuses is None else statuses
        if _running(statuses):
            decided = self.end(job, ending)
            if decided is None or decided.ending is None:
                return None
            ending = decided.ending
        return self._finish(job, ending, statuses)

    def _finish(self, job: Job, ending: Ending, statuses: _Statuses) -> float | None:
        again = self._stop(job, _running(statuses), ending.at)
        if again is not None:
            return again
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is not None and not current.is_terminal:
                replicas = [_outcome(replica, status) for replica, status in sorted(statuses.items())]
                transaction.end_job(current, current.ending or ending, replica_outcomes=replicas)
        # Others may take the room from now on; the next look saves the logs and removes the containers.
        self.wake(job.id)
        if job.study is not None:
            self.wake(job.study)
        return None

    def _clear(self, job: Job) -> float | None:
        """Save the logs of an ended job, then remove its containers: a log that finds no room stays in Docker."""
        for replica in (Replica(found["pool"], found["index"], found["attempt"]) for found in job.replica_outcomes):
            self._asked_to_stop.discard((job.id, replica))
            if not logs.is_saved(self.data.logs, job.id, replica):
                try:
                    logs.save(self.data.logs, job.id, replica, self.executor.read_log(job.id, replica))
                except OSError as error:
                    _log.warning("the log of %s of job %s cannot be saved yet: %s", replica.task, job.id, error)
                    return _SAVE_AGAIN_SECONDS
        self.executor.remove_job(job.id)
        return None

    def _stop(self, job: Job, running: Collection[Replica], since: int) -> float | None:
        """End running replicas, by force once the grace since `since` (ns) is over; seconds to the next look."""
        left = STOP_GRACE_SECONDS - (now_ns() - since) / 10**9
        for replica in running:
            if left <= 0:
                self.executor.signal_replica(job.id, replica, "SIGKILL")
            elif (job.id, replica) not in self._asked_to_stop:
                self.executor.signal_replica(job.id, replica, "SIGTERM")
                self._asked_to_stop.add((job.id, replica))
        if not running:
            return None
        return left if left > 0 else _KILL_AGAIN_SECONDS

    def _metric_id(self, job: Job) -> str | None:
        if job.study is None:
            return None
        with self.database.read_transaction() as transaction:
            study = transaction.get_job(job.study)
        return study.spec["studySpec"]["metrics"][0]["metricId"] if study is not None else None


def _running(statuses: _Statuses) -> set[Replica]:
    return {replica for replica, status in statuses.items() if status.phase == "running"}


def _outcome(replica: Replica, status: ReplicaStatus) -> dict[str, Any]:
    return {**asdict(replica), **asdict(status)}
