"""The scheduler: workers that advance one job at a time until nothing is left to do.

It is level-triggered, like a Kubernetes controller: an event says which job to process, never what happened. So missed
and repeated events do no harm, and a restart of the emulator just processes every job.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vertex_api.names import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import FAILED, Ending, Job
from vertex_emulator.errors import ExecutorUnavailable
from vertex_emulator.replicas.executor_protocol import Executor
from vertex_emulator.scheduling.custom_job_reconciler import CustomJobReconciler
from vertex_emulator.scheduling.ending_or_restart import CODE_INTERNAL
from vertex_emulator.scheduling.enqueuing_and_admission import admit_jobs_and_get_ids
from vertex_emulator.scheduling.pipeline_reconciler import PipelineReconciler
from vertex_emulator.scheduling.study_reconciler import StudyReconciler
from vertex_emulator.scheduling.work_queue import WorkQueue
from vertex_emulator.times import now_ns

_WORKERS = 8
_ADMISSION = "admission"  # two keys that are not jobs: admit jobs from the queue,
_RESYNC = "resync"  # and, as a safety net, process all unfinished jobs
_RESYNC_SECONDS = 30.0
_RECONNECT_SECONDS = 1.0
_FIRST_RETRY_SECONDS = 0.2
_LAST_RETRY_SECONDS = 30.0
_MAX_FAILURES = 6
_log = logging.getLogger("vertex_emulator.scheduler")


@dataclass
class Scheduler:
    """Runs jobs; `capacity` is the maximum number of running replicas.

    `build_secret_environment`, `open_debug_ports` and `close_debug_ports` are those of CustomJobReconciler.
    """

    database: Database
    executor: Executor
    data: DataFolder
    queue: WorkQueue
    capacity: int
    build_secret_environment: Callable[[Job], Mapping[str, str]] = lambda _job: {}
    open_debug_ports: Callable[[Job], None] = lambda _job: None
    close_debug_ports: Callable[[str], None] = lambda _job_id: None

    def __post_init__(self) -> None:
        self._custom_jobs = CustomJobReconciler(
            self.database,
            self.executor,
            self.data,
            self.wake,
            self.build_secret_environment,
            self.open_debug_ports,
            self.close_debug_ports,
        )
        self._studies = StudyReconciler(self.database, self.data, self.wake)
        self._pipelines = PipelineReconciler(self.database, self.data, self.wake)
        self._failures: dict[str, int] = {}
        self._stopping = threading.Event()

    def wake(self, job_id: str) -> None:
        """Schedule a step for a job, and an admission of queued jobs."""
        self.queue.add(_ADMISSION)
        self.queue.add(job_id)

    def start(self) -> None:
        """Start the workers and the watch on containers."""
        self.queue.add(_ADMISSION)
        self.queue.add(_RESYNC)
        threading.Thread(target=self._watch_containers, daemon=True, name="watch").start()
        self._threads = [
            threading.Thread(target=self._run_worker, daemon=True, name=f"worker {i}") for i in range(_WORKERS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> None:
        """Stop the workers, waiting at most `timeout` seconds for their current steps; containers keep running."""
        self._stopping.set()
        self.queue.close()
        for thread in self._threads:
            thread.join(timeout / _WORKERS)

    def wake_unfinished_and_leftover_jobs(self) -> None:
        """Schedule a step for every unfinished job, and for every job that left containers or files behind."""
        with self.database.read() as transaction:
            unfinished = transaction.jobs.unfinished()
            deleted = transaction.jobs.missing(self.data.job_ids())
        for key in [_ADMISSION, *unfinished, *self.executor.list_ids_of_jobs_with_containers_or_network(), *deleted]:
            self.queue.add(key)

    def try_to_process_next_key(self, timeout: float | None = None) -> bool:
        """Process the next key of the queue. Return False if there is none within `timeout` seconds."""
        key = self.queue.reserve_next_key_or_none(timeout)
        if key is None:
            return False
        delay: float | None = _LAST_RETRY_SECONDS
        try:
            delay = self._try_to_process_key_and_get_delay(key)
        finally:
            self.queue.release(key, delay)
        return True

    def _try_to_process_key_and_get_delay(self, key: str) -> float | None:
        try:
            delay = self._process_key_and_get_delay(key)
        except ExecutorUnavailable as error:
            self._log_service_message_unless_repeated(key, f"Waiting for Docker. {error}")
            return _compute_retry_delay(self._increment_failure_count(key))
        except Exception as error:  # noqa: BLE001 - an error of one job must not stop the others
            if self._stopping.is_set():
                return None  # the database may be closed already; the next start processes the key again
            _log.exception("processing %s failed", key)
            failures = self._increment_failure_count(key)
            if failures == _MAX_FAILURES:
                self._record_internal_error_if_undecided(key, error)
            return _compute_retry_delay(failures)
        self._failures.pop(key, None)
        return delay

    def _process_key_and_get_delay(self, key: str) -> float | None:
        if key == _ADMISSION:
            self._admit_and_wake_jobs()
            return None
        if key == _RESYNC:
            self.wake_unfinished_and_leftover_jobs()
            return _RESYNC_SECONDS
        with self.database.read() as transaction:
            job = transaction.jobs.get(key)
            pipeline = transaction.pipelines.of_job(key)
        if job is None:
            self.executor.remove_containers_and_network(key)
            self.data.remove_job(key)
            return None
        if job.kind == TRAINING_PIPELINE:
            self._pipelines.reconcile(job)
            return None
        reconciler = self._studies if job.kind == HYPERPARAMETER_TUNING_JOB else self._custom_jobs
        delay = reconciler.reconcile_and_get_delay(job)
        if pipeline is not None:
            self.queue.add(pipeline)
        return delay

    def _admit_and_wake_jobs(self) -> None:
        with self.database.write() as transaction:
            admitted_ids = admit_jobs_and_get_ids(transaction, self.capacity)
        for job_id in admitted_ids:
            self.queue.add(job_id)

    def _increment_failure_count(self, key: str) -> int:
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        return failures

    def _record_internal_error_if_undecided(self, job_id: str, error: Exception) -> None:
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
        if job is not None:
            message = f"Internal error occurred for the current attempt: {type(error).__name__}: {error}"
            self._custom_jobs.get_or_record_ending_unless_ended(job, Ending(FAILED, CODE_INTERNAL, message, now_ns()))
            self.wake(job_id)

    def _log_service_message_unless_repeated(self, job_id: str, message: str) -> None:
        with self.database.write() as transaction:
            if transaction.jobs.get(job_id) is not None:
                lines = transaction.jobs.messages(job_id)
                if not lines or lines[-1].text != message:
                    transaction.jobs.log(job_id, message, "WARNING")

    def _clear_failures_and_wake_jobs(self) -> None:
        self._failures.clear()
        self.wake_unfinished_and_leftover_jobs()

    def _run_worker(self) -> None:
        while not self._stopping.is_set():
            try:
                self.try_to_process_next_key()
            except Exception:  # noqa: BLE001 - a full disk may have room later
                if not self._stopping.is_set():
                    _log.exception("a worker failed")

    def _watch_containers(self) -> None:
        while not self._stopping.is_set():
            try:
                for job_id in self.executor.iterate_job_ids_of_container_exits(self._clear_failures_and_wake_jobs):
                    self.queue.add(job_id)
                    self.database.changes.publish([job_id])
            except ExecutorUnavailable as error:
                _log.warning("%s", error)
            except Exception:  # noqa: BLE001 - without the watch, jobs advance only by timers
                if not self._stopping.is_set():
                    _log.exception("watching containers failed")
            self._stopping.wait(_RECONNECT_SECONDS)


def _compute_retry_delay(failure_count: int) -> float:
    return min(_FIRST_RETRY_SECONDS * 2.0 ** min(failure_count - 1, 10), _LAST_RETRY_SECONDS)
