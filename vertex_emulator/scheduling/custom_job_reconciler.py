"""The reconciler of custom jobs: it takes a job from PENDING to its end.

Each step compares the database with the containers, does what is missing, and can be repeated: after a crash in the
middle of a step, the next process takes the same step again.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import FAILED, PENDING, QUEUED, RUNNING, Ending, Job, Replica
from vertex_emulator.errors import ImageUnavailable, ReplicaCannotStart
from vertex_emulator.replicas import saved_logs as logs
from vertex_emulator.replicas.executor_protocol import Executor, ReplicaStatus
from vertex_emulator.replicas.replica_spec_builder import make_folders_and_build_replica_spec
from vertex_emulator.replicas.resource_limits import render_shortfall_warnings
from vertex_emulator.scheduling import custom_job_outcome, image_error, injected_fault_effects
from vertex_emulator.scheduling.custom_job_outcome import CODE_FAILED_PRECONDITION, CODE_INVALID_ARGUMENT, PRIMARY
from vertex_emulator.scheduling.restart_rules import RestartPlan
from vertex_emulator.timestamps import now_ns

STOP_GRACE_SECONDS = 5.0
_KILL_RETRY_SECONDS = 1.0
_SAVE_RETRY_SECONDS = 5.0
_log = logging.getLogger("vertex_emulator.jobs")
_Statuses = Mapping[Replica, ReplicaStatus]


@dataclass(frozen=True)
class CustomJobReconciler:
    """Advances custom jobs; `build_job_url` returns the page of a job, `wake` schedules a step for another job."""

    database: Database
    executor: Executor
    data: DataFolder
    build_job_url: Callable[[Job], str]
    wake: Callable[[str], None]
    _signalled: set[tuple[str, Replica]] = field(default_factory=set)

    def reconcile(self, job: Job) -> float | None:
        """Take the next step; return after how many seconds to take another, or None to wait for a change."""
        if job.is_terminal:
            return self._save_logs_and_remove_containers(job)
        if job.ending is not None:
            return self._stop_replicas_and_end(job, job.ending, self.executor.get_statuses(job.id))
        if job.state == QUEUED:
            return self._end_if_queued_too_long(job)
        if job.state == PENDING or job.restarts.restarting_since is not None:
            return self._launch_replicas_or_end(job)
        return self._end_or_restart_if_due(job)

    def record_ending_if_none(self, job: Job, ending: Ending) -> Job | None:
        """Record how a job ends unless that is recorded already; return the job, None if it has ended or is deleted."""
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is None or current.is_terminal:
                return None
            return current if current.ending is not None else transaction.update_and_get_job(current, ending=ending)

    def _end_if_queued_too_long(self, job: Job) -> float | None:
        queue_deadline = custom_job_outcome.compute_queue_deadline(job)
        if queue_deadline is None or now_ns() < queue_deadline:
            return None if queue_deadline is None else (queue_deadline - now_ns()) / 10**9
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is not None and current.state == QUEUED:
                transaction.end_job_and_log_outcome(current, custom_job_outcome.build_stockout_ending(job, now_ns()))
        return None

    def _launch_replicas_or_end(self, job: Job) -> float | None:
        """Start the replicas at their current attempts, once all earlier attempts have ended."""
        restarting_since = job.restarts.restarting_since
        if restarting_since is not None:
            statuses = self.executor.get_statuses(job.id)
            ending = custom_job_outcome.get_timeout_ending(job, now_ns())
            if ending is not None:
                return self._record_ending_and_stop(job, ending, statuses)
            earlier_attempts = _select_running_replicas(statuses) - set(job.current_replicas)
            delay = self._terminate_or_kill_replicas(job, earlier_attempts, restarting_since)
            if delay is not None:
                return delay
        image, task = "", PRIMARY.task
        try:
            host, metric_id = self.executor.get_host_resources(), self._get_first_metric_id(job)
            # Every attempt of a replica has the same spec.
            specs = [
                replace(
                    make_folders_and_build_replica_spec(job, replica.at_first_attempt, self.data, host, metric_id),
                    replica=replica,
                )
                for replica in job.current_replicas
            ]
            for image in sorted({spec.image for spec in specs}):
                if not self.executor.has_image_or_starts_pull(job.id, image):
                    return None
            for spec in specs:
                task = spec.replica.task
                self.executor.start_replica(spec)
        except ImageUnavailable as error:
            text = image_error.render_image_error(image, str(error), job.location)
            return self._record_ending_and_stop(job, Ending(FAILED, CODE_FAILED_PRECONDITION, text, now_ns()))
        except ReplicaCannotStart as error:
            text = f"The replica {task} failed to start: {error}"
            return self._record_ending_and_stop(job, Ending(FAILED, CODE_INVALID_ARGUMENT, text, now_ns()))
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is not None and current.ending is None and not current.is_terminal:
                if current.state == PENDING:
                    for text in ("Waiting for training program to start.", "Job is preparing.", "Job is running."):
                        transaction.log_service_message(job.id, text)
                if current.started is None:
                    for text in render_shortfall_warnings(job.spec["jobSpec"]["workerPoolSpecs"], host):
                        transaction.log_service_message(job.id, text, "WARNING")
                restarts = replace(current.restarts, restarting_since=None)
                started = current.started or now_ns()
                transaction.update_and_get_job(current, state=RUNNING, started=started, restarts=restarts)
        if job.study is not None:
            self.wake(job.study)
        # The executor reports each exit, also one before this moment.
        return 0.0 if job.fault is not None else (custom_job_outcome.compute_deadline(job) - now_ns()) / 10**9

    def _end_or_restart_if_due(self, job: Job) -> float | None:
        now = now_ns()
        statuses = self.executor.get_statuses(job.id)
        outcome = custom_job_outcome.decide_job_outcome(job, statuses, now, self.build_job_url(job))
        if isinstance(outcome, Ending):
            return self._record_ending_and_stop(job, outcome, statuses)
        if isinstance(outcome, RestartPlan):
            self._record_restart(job, outcome)
            return None
        moments = (custom_job_outcome.compute_deadline(job), injected_fault_effects.compute_fault_time(job, statuses))
        return (min(moment for moment in moments if moment is not None) - now) / 10**9

    def _record_restart(self, job: Job, plan: RestartPlan) -> None:
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is None or current.ending is not None or current.restarts != job.restarts:
                return
            transaction.log_service_message(job.id, plan.log_message, "WARNING")
            state = PENDING if plan.whole_job else RUNNING
            transaction.update_and_get_job(current, state=state, restarts=plan.restarts)
        self.wake(job.id)

    def _record_ending_and_stop(self, job: Job, ending: Ending, statuses: _Statuses | None = None) -> float | None:
        statuses = self.executor.get_statuses(job.id) if statuses is None else statuses
        if _select_running_replicas(statuses):
            decided = self.record_ending_if_none(job, ending)
            if decided is None or decided.ending is None:
                return None
            ending = decided.ending
        return self._stop_replicas_and_end(job, ending, statuses)

    def _stop_replicas_and_end(self, job: Job, ending: Ending, statuses: _Statuses) -> float | None:
        delay = self._terminate_or_kill_replicas(job, _select_running_replicas(statuses), ending.at)
        if delay is not None:
            return delay
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(job.id)
            if current is not None and not current.is_terminal:
                replicas = [{**asdict(replica), **asdict(status)} for replica, status in sorted(statuses.items())]
                transaction.end_job_and_log_outcome(current, current.ending or ending, replica_outcomes=replicas)
        # Other jobs may start now; the next step saves the logs and removes the containers.
        self.wake(job.id)
        if job.study is not None:
            self.wake(job.study)
        return None

    def _save_logs_and_remove_containers(self, job: Job) -> float | None:
        """Save the logs of an ended job, then remove its containers. On a full disk they stay until then."""
        for outcome in job.replica_outcomes:
            replica = Replica(outcome["pool"], outcome["index"], outcome["attempt"])
            self._signalled.discard((job.id, replica))
            if not logs.is_log_saved(self.data.logs, job.id, replica):
                try:
                    logs.save_log(self.data.logs, job.id, replica, self.executor.read_log(job.id, replica))
                except OSError as error:
                    _log.warning("the log of %s of job %s cannot be saved yet: %s", replica.task, job.id, error)
                    return _SAVE_RETRY_SECONDS
        self.executor.remove_containers_and_network(job.id)
        return None

    def _terminate_or_kill_replicas(self, job: Job, running: Collection[Replica], stopping_since: int) -> float | None:
        """Signal replicas: SIGTERM, or SIGKILL after the grace period from `stopping_since` (ns); return the delay."""
        remaining = STOP_GRACE_SECONDS - (now_ns() - stopping_since) / 10**9
        for replica in running:
            if remaining <= 0:
                self.executor.signal_replica(job.id, replica, "SIGKILL")
            elif (job.id, replica) not in self._signalled:
                self.executor.signal_replica(job.id, replica, "SIGTERM")
                self._signalled.add((job.id, replica))
        if not running:
            return None
        return remaining if remaining > 0 else _KILL_RETRY_SECONDS

    def _get_first_metric_id(self, job: Job) -> str | None:
        if job.study is None:
            return None
        with self.database.read_transaction() as transaction:
            study = transaction.get_job(job.study)
        return study.spec["studySpec"]["metrics"][0]["metricId"] if study is not None else None


def _select_running_replicas(statuses: _Statuses) -> set[Replica]:
    return {replica for replica, status in statuses.items() if status.phase == "running"}
