"""The reconciler of custom jobs: it takes a job from PENDING to its end.

Each step compares the database with the containers, does what is missing, and can be repeated: after a crash in the
middle of a step, the next process takes the same step again.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.jobs import LAUNCH_TEXTS
from vertex_emulator.database.records import FAILED, PENDING, QUEUED, RUNNING, Ending, Job, Replica
from vertex_emulator.errors import ImageUnavailable, ReplicaCannotStart
from vertex_emulator.replicas import docker_log_size_counter
from vertex_emulator.replicas import saved_logs as logs
from vertex_emulator.replicas.debugpy_injection import add_debugger_to_spec_if_injected
from vertex_emulator.replicas.executor_protocol import Executor, HostResources, LogLine, ReplicaSpec, ReplicaStatus
from vertex_emulator.replicas.replica_preparation import make_folders_and_build_replica_spec
from vertex_emulator.replicas.resource_limits_and_shortfalls import render_shortfall_warnings
from vertex_emulator.scheduling import custom_job_deadlines, ending_or_restart, failure_messages, fault_simulation
from vertex_emulator.scheduling.ending_or_restart import CODE_FAILED_PRECONDITION, CODE_INVALID_ARGUMENT, PRIMARY
from vertex_emulator.scheduling.restart_rules import RestartPlan, SecondStart
from vertex_emulator.times import now_ns

STOP_GRACE_SECONDS = 5.0
_KILL_RETRY_SECONDS = 1.0
_SAVE_RETRY_SECONDS = 5.0
_log = logging.getLogger("vertex_emulator.jobs")
_Statuses = Mapping[Replica, ReplicaStatus]


@dataclass(frozen=True)
class CustomJobReconciler:
    """Advances custom jobs; `wake` schedules a step for another job.

    `build_secret_environment` returns the variables by which a job's containers find their secrets; `open_debug_ports`
    and `close_debug_ports` are called when debugged replicas have started, and when a job has ended.
    """

    database: Database
    executor: Executor
    data: DataFolder
    wake: Callable[[str], None]
    build_secret_environment: Callable[[Job], Mapping[str, str]]
    open_debug_ports: Callable[[Job], None]
    close_debug_ports: Callable[[str], None]
    _signalled: set[tuple[str, Replica]] = field(default_factory=set)

    def reconcile_and_get_delay(self, job: Job) -> float | None:
        """Take the next step; return after how many seconds to take another, or None to wait for a change."""
        if job.is_terminal:
            return self._save_logs_and_clean_up_or_get_delay(job)
        if job.ending is not None:
            return self._end_job_or_get_stop_delay(job, job.ending, self.executor.get_replica_statuses(job.id))
        if job.state == QUEUED:
            return self._end_overdue_queued_job_or_get_delay(job)
        if job.state == PENDING or job.restarts.restarting_since is not None:
            return self._advance_launch_and_get_delay(job)
        return self._end_or_restart_or_get_delay(job)

    def get_or_record_ending_unless_ended(self, job: Job, ending: Ending) -> Ending | None:
        """Record how a job ends unless that is recorded already; return its ending, None if it ended or is deleted."""
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is None or current.is_terminal:
                return None
            return current.ending or transaction.jobs.update(current, ending=ending).ending

    def _end_overdue_queued_job_or_get_delay(self, job: Job) -> float | None:
        queue_deadline = custom_job_deadlines.compute_queue_deadline_or_none(job)
        if queue_deadline is None or now_ns() < queue_deadline:
            return None if queue_deadline is None else (queue_deadline - now_ns()) / 10**9
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is not None and current.state == QUEUED:
                transaction.jobs.end(current, ending_or_restart.build_stockout_ending(job, now_ns()))
        return None

    def _advance_launch_and_get_delay(self, job: Job) -> float | None:
        """Start the replicas at their current attempts, once all earlier attempts have ended."""
        stockout = fault_simulation.compute_stockout_time_or_none(job)
        if stockout is not None:
            if now_ns() < stockout:
                return (stockout - now_ns()) / 10**9
            return self._record_and_end_or_get_delay(job, ending_or_restart.build_stockout_ending(job, now_ns()))
        restarting_since = job.restarts.restarting_since
        if restarting_since is not None:
            statuses = self.executor.get_replica_statuses(job.id)
            ending = custom_job_deadlines.build_timeout_ending_if_due(job, now_ns())
            if ending is not None:
                return self._record_and_end_or_get_delay(job, ending, statuses)
            earlier_attempts = ending_or_restart.select_running_replicas(statuses) - set(job.current_replicas)
            delay = self._signal_replicas_and_get_delay(job, earlier_attempts, restarting_since)
            if delay is not None:
                return delay
        image, replica = "", PRIMARY
        try:
            host, metric_id = self.executor.get_host_resources(), self._get_first_metric_id_or_none(job)
            images = set[str]()
            # Specs are checked first and built again to start: together, those of a hundred replicas fill the memory.
            for replica in job.current_replicas:
                images.add(self._make_folders_and_complete_replica_spec(job, replica, host, metric_id).image)
            for image in sorted(images):
                if not self.executor.has_image_or_starts_pull(job.id, image):
                    return None
            for replica in job.current_replicas:
                self.executor.start_replica_unless_started(
                    self._make_folders_and_complete_replica_spec(job, replica, host, metric_id)
                )
            self.open_debug_ports(job)
        except ImageUnavailable as error:
            text = failure_messages.render_unavailable_image_message(image, str(error), job.location)
            return self._record_and_end_or_get_delay(job, Ending(FAILED, CODE_FAILED_PRECONDITION, text, now_ns()))
        except ReplicaCannotStart as error:
            text = failure_messages.render_failed_start_message(job, replica, str(error))
            return self._record_and_end_or_get_delay(job, Ending(FAILED, CODE_INVALID_ARGUMENT, text, now_ns()))
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is not None and current.ending is None and not current.is_terminal:
                if current.state == PENDING:
                    transaction.jobs.log(job.id, "Job is running.")
                if current.started is None:
                    for text in render_shortfall_warnings(job.spec["jobSpec"]["workerPoolSpecs"], host):
                        transaction.jobs.log(job.id, text, "WARNING")
                restarts = replace(current.restarts, restarting_since=None)
                started = current.started or now_ns()
                transaction.jobs.update(current, state=RUNNING, started=started, restarts=restarts)
        if job.study is not None:
            self.wake(job.study)
        # The executor reports each exit, also one before this moment.
        deadline = custom_job_deadlines.compute_timeout_deadline(job)
        return 0.0 if job.fault is not None else (deadline - now_ns()) / 10**9

    def _make_folders_and_complete_replica_spec(
        self, job: Job, replica: Replica, host: HostResources, metric_id: str | None
    ) -> ReplicaSpec:
        # Every attempt of a replica has the same spec.
        spec = make_folders_and_build_replica_spec(job, replica.first_attempt, self.data, host, metric_id)
        environment = {**spec.environment, **self.build_secret_environment(job)}
        return add_debugger_to_spec_if_injected(job, replace(spec, replica=replica, environment=environment), self.data)

    def _end_or_restart_or_get_delay(self, job: Job) -> float | None:
        now = now_ns()
        statuses = self.executor.get_replica_statuses(job.id)
        read_traceback = partial(self._read_shortened_traceback_or_empty, job)
        outcome = ending_or_restart.decide_ending_or_restart_or_none(job, statuses, now, read_traceback)
        if isinstance(outcome, SecondStart):
            if self.executor.try_to_start_exited_replica(job.id, outcome.replica):
                return 0.0
            outcome = outcome.ending_if_impossible
        if isinstance(outcome, Ending):
            return self._record_and_end_or_get_delay(job, outcome, statuses)
        if isinstance(outcome, RestartPlan):
            self._record_restart_unless_outdated(job, outcome)
            return None
        deadline = custom_job_deadlines.compute_timeout_deadline(job)
        fault_time = fault_simulation.compute_next_fault_time_or_none(job, statuses)
        return (min(deadline, fault_time or deadline) - now) / 10**9

    def _read_shortened_traceback_or_empty(self, job: Job, replica: Replica) -> str:
        lines = self.executor.iterate_log_lines_so_far(job.id, replica)
        return failure_messages.shorten_last_traceback_or_empty(line.text for line in lines if line.stream == "e")

    def _record_restart_unless_outdated(self, job: Job, plan: RestartPlan) -> None:
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is None or current.ending is not None or current.restarts != job.restarts:
                return
            transaction.jobs.log(job.id, plan.log_message, "WARNING")
            if plan.whole_job:
                for text in LAUNCH_TEXTS:
                    transaction.jobs.log(job.id, text)
            state = PENDING if plan.whole_job else RUNNING
            transaction.jobs.update(current, state=state, restarts=plan.restarts)
        self.wake(job.id)

    def _record_and_end_or_get_delay(self, job: Job, ending: Ending, statuses: _Statuses | None = None) -> float | None:
        statuses = self.executor.get_replica_statuses(job.id) if statuses is None else statuses
        if ending_or_restart.select_running_replicas(statuses):
            recorded_ending = self.get_or_record_ending_unless_ended(job, ending)
            if recorded_ending is None:
                return None
            ending = recorded_ending
        return self._end_job_or_get_stop_delay(job, ending, statuses)

    def _end_job_or_get_stop_delay(self, job: Job, ending: Ending, statuses: _Statuses) -> float | None:
        delay = self._signal_replicas_and_get_delay(job, ending_or_restart.select_running_replicas(statuses), ending.at)
        if delay is not None:
            return delay
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is not None and not current.is_terminal:
                replicas = [{**asdict(replica), **asdict(status)} for replica, status in sorted(statuses.items())]
                transaction.jobs.end(current, current.ending or ending, replica_outcomes=replicas)
        # Other jobs may start now; the next step saves the logs and removes the containers.
        self.wake(job.id)
        if job.study is not None:
            self.wake(job.study)
        return None

    def _save_logs_and_clean_up_or_get_delay(self, job: Job) -> float | None:
        """Save the logs of an ended job, then remove its containers. On a full disk they stay until then."""
        self.close_debug_ports(job.id)
        for outcome in job.replica_outcomes:
            replica = Replica(outcome["pool"], outcome["index"], outcome["attempt"])
            self._signalled.discard((job.id, replica))
            if not logs.is_log_saved(self.data.logs, job.id, replica):
                try:
                    logs.save_log(self.data.logs, job.id, replica, self._iterate_log_and_warn_at_limit(job, replica))
                except OSError as error:
                    _log.warning("the log of %s of job %s cannot be saved yet: %s", replica.task_name, job.id, error)
                    return _SAVE_RETRY_SECONDS
        self.executor.remove_containers_and_network(job.id)
        return None

    def _iterate_log_and_warn_at_limit(self, job: Job, replica: Replica) -> Iterator[LogLine]:
        """Read a replica's log; if it reached its limit, say so in the job's log, as lines may have been dropped."""
        counter = docker_log_size_counter.DockerLogSizeCounter()
        yield from counter.iterate_and_count(self.executor.iterate_log_lines_so_far(job.id, replica))
        if counter.counted_bytes < docker_log_size_counter.MIN_LOG_LIMIT_BYTES:
            return
        limit = self.executor.get_log_limit_bytes_or_none(job.id, replica)
        if limit is not None and counter.counted_bytes >= limit:
            text = docker_log_size_counter.render_log_limit_warning(replica.task_name, limit)
            with self.database.write() as transaction:
                transaction.jobs.log(job.id, text, "WARNING")

    def _signal_replicas_and_get_delay(self, job: Job, running: set[Replica], stopping_since: int) -> float | None:
        """Signal replicas: SIGTERM, or SIGKILL after the grace period from `stopping_since` (ns); return the delay."""
        remaining = STOP_GRACE_SECONDS - (now_ns() - stopping_since) / 10**9
        for replica in running:
            if remaining <= 0:
                self.executor.signal_replica_if_running(job.id, replica, "SIGKILL")
            elif (job.id, replica) not in self._signalled:
                self.executor.signal_replica_if_running(job.id, replica, "SIGTERM")
                self._signalled.add((job.id, replica))
        if not running:
            return None
        return remaining if remaining > 0 else _KILL_RETRY_SECONDS

    def _get_first_metric_id_or_none(self, job: Job) -> str | None:
        if job.study is None:
            return None
        with self.database.read() as transaction:
            study = transaction.jobs.get(job.study)
        return study.spec["studySpec"]["metrics"][0]["metricId"] if study is not None else None
