"""The scheduler: workers that advance one job at a time until nothing is left to do.

It is level-triggered, like a Kubernetes controller: an event says which job to process, never what happened. So missed
and repeated events do no harm, and a restart of the emulator just processes every job.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from vertex_api.names import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.errors import ExecutorUnavailable
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.scheduling import custom_job, failures, lifecycle, pipeline, study
from vertex_emulator.scheduling.custom_job import Hooks
from vertex_emulator.scheduling.meter import Meter
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


class WorkQueue:
    """Keys to process, without duplicates: one worker per key at a time, and one timer per key.

    A key that is added while a worker processes it is processed again afterwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._ready: deque[str] = deque()
        self._waiting: set[str] = set()
        self._in_progress: set[str] = set()
        self._timers: dict[str, float] = {}
        self._closed = False

    def add(self, key: str) -> None:
        """Queue `key` for the next free worker."""
        with self._changed:
            self._enqueue(key)
            self._changed.notify()

    def reserve(self, timeout: float | None = None) -> str | None:
        """Return the next key, reserved until `release`; None after `timeout` seconds or once the queue is closed."""
        deadline = None if timeout is None else self._clock() + timeout
        with self._changed:
            while not self._closed:
                self._enqueue_due()
                if self._ready:
                    key = self._ready.popleft()
                    self._waiting.discard(key)
                    self._in_progress.add(key)
                    return key
                moments = [*self._timers.values(), *([] if deadline is None else [deadline])]
                pause = min(moments) - self._clock() if moments else None
                if deadline is not None and self._clock() >= deadline:
                    return None
                self._changed.wait(pause if pause is None else max(pause, 0.0))
            return None

    def release(self, key: str, delay: float | None = None) -> None:
        """Release `key`, and queue it again after `delay` seconds unless something adds it before."""
        with self._changed:
            self._in_progress.discard(key)
            self._timers.pop(key, None)
            if key in self._waiting:
                self._ready.append(key)
            elif delay is not None:
                self._timers[key] = self._clock() + delay
            self._changed.notify()

    def close(self) -> None:
        """Close the queue, so that every `reserve` returns None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enqueue_due(self) -> None:
        now = self._clock()
        for key in [key for key, moment in self._timers.items() if moment <= now]:
            del self._timers[key]
            self._enqueue(key)

    def _enqueue(self, key: str) -> None:
        if key not in self._waiting:
            self._waiting.add(key)
            if key not in self._in_progress:
                self._ready.append(key)


@dataclass
class Scheduler:
    """Runs jobs; `capacity` is the maximum number of running replicas."""

    database: Database
    executor: Executor
    data: DataFolder
    queue: WorkQueue
    capacity: int
    hooks: Hooks = field(default_factory=Hooks)

    def __post_init__(self) -> None:
        self._meter = Meter(self.database, self.executor)
        self._custom_jobs = custom_job.Reconciler(
            self.database, self.executor, self.data, self.wake, self.hooks, self._meter
        )
        self._studies = study.Reconciler(self.database, self.data, self.wake)
        self._pipelines = pipeline.Reconciler(self.database, self.data, self.wake)
        self._failures: dict[str, int] = {}
        self._stopping = threading.Event()

    def wake(self, job_id: str) -> None:
        """Schedule a step for a job, and an admission of queued jobs."""
        self.queue.add(_ADMISSION)
        self.queue.add(job_id)

    def start(self) -> None:
        """Start the workers and the watch on containers."""
        self._meter.start()
        self.queue.add(_ADMISSION)
        self.queue.add(_RESYNC)
        threading.Thread(target=self._watch, daemon=True, name="watch").start()
        self._threads = [threading.Thread(target=self._work, daemon=True, name=f"worker {i}") for i in range(_WORKERS)]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> None:
        """Stop the workers, waiting at most `timeout` seconds for their current steps; containers keep running."""
        self._stopping.set()
        self.queue.close()
        for thread in self._threads:
            thread.join(timeout / _WORKERS)
        self._meter.stop()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self.step()
            except Exception:  # noqa: BLE001 - a full disk may have room later
                if not self._stopping.is_set():
                    _log.exception("a worker failed")

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                for job_id in self.executor.watch(self._begin_watch):
                    self.queue.add(job_id)
                    self.database.changes.publish([job_id])
            except ExecutorUnavailable as error:
                _log.warning("%s", error)
            except Exception:  # noqa: BLE001 - without the watch, jobs advance only by timers
                if not self._stopping.is_set():
                    _log.exception("watching containers failed")
            self._stopping.wait(_RECONNECT_SECONDS)

    def _begin_watch(self) -> None:
        self._failures.clear()
        self.resync()

    def resync(self) -> None:
        """Schedule a step for every unfinished job, and for every job that left containers or files behind."""
        with self.database.read() as transaction:
            unfinished = transaction.jobs.unfinished()
            deleted = transaction.jobs.missing(self.data.job_ids())
        for key in [_ADMISSION, *unfinished, *self.executor.job_ids(), *deleted]:
            self.queue.add(key)

    def step(self, timeout: float | None = None) -> bool:
        """Process the next key of the queue. Return False if there is none within `timeout` seconds."""
        key = self.queue.reserve(timeout)
        if key is None:
            return False
        delay: float | None = _LAST_RETRY_SECONDS
        try:
            delay = self._try(key)
        finally:
            self.queue.release(key, delay)
        return True

    def _try(self, key: str) -> float | None:
        """Process a key; return after how many seconds to do so again, None to wait for a change."""
        try:
            delay = self._process(key)
        except ExecutorUnavailable as error:
            self._log_once(key, f"Waiting for Docker. {error}")
            return self._retry_delay(key)
        except Exception as error:  # noqa: BLE001 - an error of one job must not stop the others
            if self._stopping.is_set():
                return None  # the database may be closed already; the next start processes the key again
            _log.exception("processing %s failed", key)
            delay = self._retry_delay(key)
            if self._failures[key] == _MAX_FAILURES:
                self._fail(key, error)
            return delay
        self._failures.pop(key, None)
        return delay

    def _process(self, key: str) -> float | None:
        if key == _ADMISSION:
            with self.database.write() as transaction:
                admitted = lifecycle.admit(transaction, self.capacity)
            for job_id in admitted:
                self.queue.add(job_id)
            return None
        if key == _RESYNC:
            self.resync()
            return _RESYNC_SECONDS
        with self.database.read() as transaction:
            job = transaction.jobs.get(key)
            pipeline_id = transaction.pipelines.of_job(key)
        if job is None:
            self.executor.remove(key)
            self.data.remove_job(key)
            return None
        if job.kind == TRAINING_PIPELINE:
            self._pipelines.advance(job)
            return None
        reconciler = self._studies if job.kind == HYPERPARAMETER_TUNING_JOB else self._custom_jobs
        delay = reconciler.advance(job)
        if pipeline_id is not None:
            self.queue.add(pipeline_id)
        return delay

    def _retry_delay(self, key: str) -> float:
        """Count a failure, and return the delay that grows with them."""
        self._failures[key] = count = self._failures.get(key, 0) + 1
        return min(_FIRST_RETRY_SECONDS * 2.0 ** min(count - 1, 10), _LAST_RETRY_SECONDS)

    def _fail(self, job_id: str, error: Exception) -> None:
        """End a job with an internal error, unless its ending is decided."""
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
        if job is not None:
            self._custom_jobs.record_ending(job, failures.internal(f"{type(error).__name__}: {error}", now_ns()))
            self.wake(job_id)

    def _log_once(self, job_id: str, message: str) -> None:
        """Log a message of the service unless it is the job's last one."""
        with self.database.write() as transaction:
            if transaction.jobs.get(job_id) is not None:
                lines = transaction.jobs.messages(job_id)
                if not lines or lines[-1].text != message:
                    transaction.jobs.log(job_id, message, "WARNING")
