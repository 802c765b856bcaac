"""The scheduler: workers that look at one job at a time until nothing is left to do.

Level-triggered, like a Kubernetes controller: an event only says which job to look at, never what happened. So a missed
or doubled event changes nothing, and a restart is nothing but a look at everything.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from vertex_api.kinds import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import FAILED, PENDING, Ending, Job
from vertex_emulator.errors import ExecutorUnavailable
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.scheduling.admission import admitted
from vertex_emulator.scheduling.custom_job import CustomJobReconciler
from vertex_emulator.scheduling.pipeline import PipelineReconciler
from vertex_emulator.scheduling.study import StudyReconciler
from vertex_emulator.scheduling.verdict import CODE_INTERNAL
from vertex_emulator.scheduling.workqueue import WorkQueue
from vertex_emulator.times import now_ns

_WORKERS = 8
_ADMISSION = "admission"  # two keys that are no jobs: who may leave the queue,
_EVERYTHING = "everything"  # and, as a safety net, a look at all that is unfinished
_EVERYTHING_SECONDS = 30.0
_RECONNECT_SECONDS = 1.0
_FIRST_RETRY_SECONDS = 0.2
_LAST_RETRY_SECONDS = 30.0
_FAILURES_BEFORE_GIVING_UP = 6
_log = logging.getLogger("emulator.scheduler")


@dataclass
class Scheduler:
    """Runs jobs; `capacity` is how many replicas may run at once."""

    database: Database
    executor: Executor
    data: DataFolder
    queue: WorkQueue
    capacity: int
    link: Callable[[Job], str]

    def __post_init__(self) -> None:
        self._custom_jobs = CustomJobReconciler(self.database, self.executor, self.data, self.link, self.wake)
        self._studies = StudyReconciler(self.database, self.data, self.wake)
        self._pipelines = PipelineReconciler(self.database, self.data, self.wake)
        self._failures: dict[str, int] = {}
        self._stopping = threading.Event()

    def wake(self, job: str) -> None:
        """Look at a job, and at the queue of jobs."""
        self.queue.add(_ADMISSION)
        self.queue.add(job)

    def start(self) -> None:
        """Start the workers and the watch on containers."""
        self.queue.add(_ADMISSION)
        self.queue.add(_EVERYTHING)
        threading.Thread(target=self._watch, daemon=True, name="watch").start()
        self._threads = [threading.Thread(target=self._work, daemon=True, name=f"worker {i}") for i in range(_WORKERS)]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> None:
        """Let the workers end what they are at, for so many seconds each; containers go on."""
        self._stopping.set()
        self.queue.close()
        for thread in self._threads:
            thread.join(timeout / _WORKERS)

    def look_at_everything(self) -> None:
        """Wake every job that has not ended, and every one that left something behind."""
        with self.database.read_transaction() as transaction:
            unfinished = transaction.list_unfinished_jobs()
            known = {job: transaction.get_job(job) for job in self.data.jobs_with_files()}
        for job in [
            _ADMISSION,
            *unfinished,
            *self.executor.list_jobs(),
            *(id for id, job in known.items() if job is None),
        ]:
            self.queue.add(job)

    def step(self, timeout: float | None = None) -> bool:
        """Look at one key; False when there was none."""
        key = self.queue.take(timeout)
        if key is None:
            return False
        again: float | None = _LAST_RETRY_SECONDS
        try:
            again = self._guarded_look(key)
        finally:
            self.queue.done(key, again)
        return True

    def _guarded_look(self, key: str) -> float | None:
        try:
            again = self._look(key)
        except ExecutorUnavailable as error:
            self._say_once(key, f"Waiting for Docker. {error}")
            return _retry_after(self._failed_again(key))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with one job, the others go on
            _log.exception("a look at %s", key)
            failures = self._failed_again(key)
            if failures == _FAILURES_BEFORE_GIVING_UP:
                self._give_up(key, error)
            return _retry_after(failures)
        self._failures.pop(key, None)
        return again

    def _look(self, key: str) -> float | None:
        if key == _ADMISSION:
            self._admit()
            return None
        if key == _EVERYTHING:
            self.look_at_everything()
            return _EVERYTHING_SECONDS
        with self.database.read_transaction() as transaction:
            job = transaction.get_job(key)
            pipeline = transaction.pipelines.get_pipeline_of_job(key)
        if job is None:
            self.executor.remove_job(key)
            self.data.remove_files(key)
            return None
        if job.kind == TRAINING_PIPELINE:
            self._pipelines.advance(job)
            return None
        reconciler = self._studies if job.kind == HYPERPARAMETER_TUNING_JOB else self._custom_jobs
        again = reconciler.advance(job)
        if pipeline is not None:
            self.queue.add(pipeline)
        return again

    def _admit(self) -> None:
        """Let jobs out of the queue for which there is room."""
        with self.database.write_transaction() as transaction:
            chosen = admitted(
                transaction.queue.list_candidates(self.capacity),
                transaction.queue.count_replicas_by_owner(),
                self.capacity,
            )
            for waiting in chosen:
                job = transaction.get_job(waiting.id)
                assert job is not None
                transaction.queue.mark_admitted(job)
                transaction.update_job(job, state=PENDING)
                transaction.log_service_message(
                    job.id,
                    "Vertex AI is provisioning job running framework. First time usage might take couple of minutes, "
                    "and subsequent runs can be much faster.",
                )
                transaction.log_service_message(job.id, "Vertex AI is setting up this job.")
        for waiting in chosen:
            self.queue.add(waiting.id)

    def _failed_again(self, key: str) -> int:
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        return failures

    def _give_up(self, key: str, error: Exception) -> None:
        with self.database.read_transaction() as transaction:
            job = transaction.get_job(key)
        if job is not None:
            message = f"Internal error occurred for the current attempt: {type(error).__name__}: {error}"
            self._custom_jobs.end(job, Ending(FAILED, CODE_INTERNAL, message, now_ns()))
            self.wake(key)

    def _say_once(self, key: str, text: str) -> None:
        with self.database.write_transaction() as transaction:
            if transaction.get_job(key) is not None:
                lines = transaction.list_service_messages(key)
                if not lines or lines[-1].text != text:
                    transaction.log_service_message(key, text, "WARNING")

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self.step()
            except Exception:  # noqa: BLE001 - a disk that is full today may have room tomorrow
                _log.exception("a worker")

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                for job in self.executor.watch_jobs():
                    if job is None:
                        self._failures.clear()
                        self.look_at_everything()
                    else:
                        self.queue.add(job)
                        self.database.changes.publish([job])
            except ExecutorUnavailable as error:
                _log.warning("%s", error)
            except Exception:  # noqa: BLE001 - without the watch, jobs would only be looked at now and then
                _log.exception("the watch on containers")
            self._stopping.wait(_RECONNECT_SECONDS)


def _retry_after(failures: int) -> float:
    return min(_FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 10), _LAST_RETRY_SECONDS)
