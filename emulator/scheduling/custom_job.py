"""How a custom job goes from PENDING to its end.

Each step looks at the store and at the containers, does what is missing, and can be repeated: a process that was
killed in the middle is followed by one that takes the same step again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from emulator import logs
from emulator.containers.executor import Executor, ReplicaStatus
from emulator.data import DataFolder
from emulator.errors import ImageUnavailable, ReplicaCannotStart
from emulator.records import FAILED, PENDING, QUEUED, RUNNING, Ending, Job, Replica
from emulator.replica.replica_spec import replica_spec
from emulator.replica.resources import shortfalls
from emulator.scheduling.verdict import CODE_INVALID_ARGUMENT, PRIMARY, deadline, verdict
from emulator.store import Store
from emulator.times import now_ns

STOP_GRACE_SECONDS = 5.0
_KILL_AGAIN_SECONDS = 1.0
_SAVE_AGAIN_SECONDS = 5.0
_log = logging.getLogger("emulator.jobs")


@dataclass(frozen=True)
class CustomJobReconciler:
    """Advances custom jobs; `link` gives the page of a job, `wake` asks for a look at another job."""

    store: Store
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
            return self._finish(job, job.ending)
        if job.state == QUEUED:
            return None
        if job.state == PENDING:
            self._launch(job)
            return None
        return self._watch(job)

    def end(self, job: Job, ending: Ending) -> None:
        """Decide how a job ends, unless that has been decided already."""
        with self.store.transaction() as change:
            current = change.job(job.id)
            if current is not None and current.ending is None and not current.is_terminal:
                change.change_job(current, ending=ending)
        self.wake(job.id)

    def _launch(self, job: Job) -> None:
        try:
            host = self.executor.host()
            specs = [replica_spec(job, place, self.data, host, self._metric_id(job)) for place in job.places]
            ready = [self.executor.prepare(job.id, image) for image in sorted({spec.image for spec in specs})]
            if not all(ready):
                return
            for spec in specs:
                self.executor.start(spec)
        except ImageUnavailable as error:
            self.end(job, _failed(f"The replica {PRIMARY.task} failed to start: image {error}."))
            return
        except ReplicaCannotStart as error:
            self.end(job, _failed(f"The replica {PRIMARY.task} failed to start: {error}"))
            return
        with self.store.transaction() as change:
            current = change.job(job.id)
            if current is not None and current.state == PENDING and current.ending is None:
                for text in ("Waiting for training program to start.", "Job is preparing.", "Job is running."):
                    change.say(job.id, text)
                for text in shortfalls(job.spec["jobSpec"]["workerPoolSpecs"], host):
                    change.say(job.id, text, "WARNING")
                change.change_job(current, state=RUNNING, started=now_ns())
        self.wake(job.id)
        if job.study is not None:
            self.wake(job.study)

    def _watch(self, job: Job) -> float | None:
        now = now_ns()
        ending = verdict(job, self.executor.inspect(job.id), now, self.link(job))
        if ending is not None:
            self.end(job, ending)
            return None
        return (deadline(job) - now) / 10**9

    def _finish(self, job: Job, ending: Ending) -> float | None:
        statuses = self.executor.inspect(job.id)
        running = [replica for replica, status in statuses.items() if status.phase == "running"]
        if running:
            left = STOP_GRACE_SECONDS - (now_ns() - ending.at) / 10**9
            for replica in running:
                self._stop(job, replica, politely=left > 0)
            return left if left > 0 else _KILL_AGAIN_SECONDS
        with self.store.transaction() as change:
            current = change.job(job.id)
            if current is not None and not current.is_terminal:
                replicas = [_outcome(replica, status) for replica, status in sorted(statuses.items())]
                change.end_job(current, ending, replicas=replicas)
        self._asked_to_stop.difference_update({(job.id, replica) for replica in statuses})
        # The next look saves the logs and removes the containers; others may take their room from now on.
        self.wake(job.id)
        if job.study is not None:
            self.wake(job.study)
        return None

    def _clear(self, job: Job) -> float | None:
        """Save the logs of an ended job, then remove its containers: a log that finds no room stays in Docker."""
        for replica in self.executor.inspect(job.id):
            if not logs.is_saved(self.data.logs, job.id, replica):
                try:
                    logs.save(self.data.logs, job.id, replica, self.executor.log(job.id, replica))
                except OSError as error:
                    _log.warning("the log of %s of job %s cannot be saved yet: %s", replica.task, job.id, error)
                    return _SAVE_AGAIN_SECONDS
        self.executor.remove(job.id)
        return None

    def _stop(self, job: Job, replica: Replica, politely: bool) -> None:
        if not politely:
            self.executor.signal(job.id, replica, "SIGKILL")
        elif (job.id, replica) not in self._asked_to_stop:
            self.executor.signal(job.id, replica, "SIGTERM")
            self._asked_to_stop.add((job.id, replica))

    def _metric_id(self, job: Job) -> str | None:
        if job.study is None:
            return None
        with self.store.reading() as look:
            study = look.job(job.study)
        return study.spec["studySpec"]["metrics"][0]["metricId"] if study is not None else None


def _failed(message: str) -> Ending:
    return Ending(FAILED, CODE_INVALID_ARGUMENT, message, now_ns())


def _outcome(replica: Replica, status: ReplicaStatus) -> dict[str, Any]:
    return {**asdict(replica), **asdict(status)}
