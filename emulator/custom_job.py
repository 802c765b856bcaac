"""How a custom job goes from PENDING to its end.

Each step looks at the store and at the containers, does what is missing, and can be repeated: a process that was
killed in the middle is followed by one that takes the same step again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from emulator import buckets, logs
from emulator.data import DataFolder
from emulator.environment import METRIC_FOLDER, output_directories, service_environment
from emulator.errors import ImageUnavailable, ReplicaCannotStart
from emulator.executor import Executor, ReplicaSpec, ReplicaStatus
from emulator.expansion import expand, expand_environment
from emulator.names import replica_hostname
from emulator.records import FAILED, PENDING, QUEUED, RUNNING, SUCCEEDED, Ending, Job, Replica
from emulator.store import Store
from emulator.times import duration_seconds, now_ns

DEFAULT_TIMEOUT = "604800s"  # seven days (Google's page on CustomJob scheduling)
STOP_GRACE_SECONDS = 5.0
_KILL_AGAIN_SECONDS = 1.0
_PRIMARY = Replica(0, 0)
_CODE_INVALID_ARGUMENT = 3
_CODE_DEADLINE_EXCEEDED = 4
_CODE_RESOURCE_EXHAUSTED = 9
CODE_INTERNAL = 13


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
            self.executor.remove(job.id)
            return None
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
            specs = [self._replica_spec(job, place) for place in job.places]
            ready = [self.executor.prepare(job.id, image) for image in sorted({spec.image for spec in specs})]
            if not all(ready):
                return
            for spec in specs:
                self.executor.start(spec)
        except ImageUnavailable as error:
            self.end(job, _failed(f"The replica {_PRIMARY.task} failed to start: image {error}."))
            return
        except ReplicaCannotStart as error:
            self.end(job, _failed(f"The replica {_PRIMARY.task} failed to start: {error}"))
            return
        with self.store.transaction() as change:
            current = change.job(job.id)
            if current is not None and current.state == PENDING and current.ending is None:
                for text in ("Waiting for training program to start.", "Job is preparing.", "Job is running."):
                    change.say(job.id, text)
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
        return (_deadline(job) - now) / 10**9

    def _finish(self, job: Job, ending: Ending) -> float | None:
        statuses = self.executor.inspect(job.id)
        running = [replica for replica, status in statuses.items() if status.phase == "running"]
        if running:
            left = STOP_GRACE_SECONDS - (now_ns() - ending.at) / 10**9
            for replica in running:
                self._stop(job, replica, politely=left > 0)
            return left if left > 0 else _KILL_AGAIN_SECONDS
        for replica in statuses:
            logs.save(self.data.logs, job.id, replica, self.executor.log(job.id, replica))
        with self.store.transaction() as change:
            current = change.job(job.id)
            if current is not None and not current.is_terminal:
                replicas = [_outcome(replica, status) for replica, status in sorted(statuses.items())]
                change.end_job(current, ending, replicas=replicas)
        self._asked_to_stop.difference_update({(job.id, replica) for replica in statuses})
        # The next look removes the containers; others may take their room from now on.
        self.wake(job.id)
        if job.study is not None:
            self.wake(job.study)
        return None

    def _stop(self, job: Job, replica: Replica, politely: bool) -> None:
        if not politely:
            self.executor.signal(job.id, replica, "SIGKILL")
        elif (job.id, replica) not in self._asked_to_stop:
            self.executor.signal(job.id, replica, "SIGTERM")
            self._asked_to_stop.add((job.id, replica))

    def _replica_spec(self, job: Job, replica: Replica) -> ReplicaSpec:
        spec = job.spec["jobSpec"]
        container = spec["workerPoolSpecs"][replica.pool]["containerSpec"]
        environment = expand_environment(
            service_environment(job, replica, self._metric_id(job)),
            [(variable["name"], variable.get("value", "")) for variable in container.get("env", [])],
        )
        for uri in output_directories(spec).values():
            buckets.make_folder(self.data.buckets, uri)
        mounts = {str(self.data.buckets): "/gcs"}
        if job.trial is not None:
            mounts[str(self.data.make_metric_folder(job.id))] = METRIC_FOLDER
        return ReplicaSpec(
            job=job.id,
            replica=replica,
            image=container["imageUri"],
            command=_expanded(container.get("command"), environment),
            args=_expanded(container.get("args"), environment),
            environment=environment,
            hostname=replica_hostname(job.id, replica.pool, replica.index),
            mounts=mounts,
            peers=[replica_hostname(job.id, place.pool, place.index) for place in job.places],
        )

    def _metric_id(self, job: Job) -> str | None:
        if job.study is None:
            return None
        with self.store.reading() as look:
            study = look.job(job.study)
        return study.spec["studySpec"]["metrics"][0]["metricId"] if study is not None else None


def verdict(job: Job, statuses: Mapping[Replica, ReplicaStatus], now: int, link: str) -> Ending | None:
    """How a running job ends, or None while it goes on.

    The first replica to fail fails the job; the primary replica's success is the job's (Google's page on the training
    service). Replicas are judged in the order in which they ended, so an outcome does not depend on when we look.
    """
    exited = [(replica, status) for replica, status in statuses.items() if status.phase == "exited"]
    for replica, status in sorted(exited, key=lambda found: found[1].finished or 0):
        if status.exit_code != 0:
            return _exit_failure(replica, status, link, now)
        if replica == _PRIMARY:
            return Ending(SUCCEEDED, 0, "", now)
    missing = sorted(set(job.places) - set(statuses))
    if missing:
        return Ending(
            FAILED,
            CODE_INTERNAL,
            "Internal error occurred for the current attempt: "
            f"the container of replica {missing[0].task} was removed from outside.",
            now,
        )
    if now >= _deadline(job):
        timeout = job.spec["jobSpec"].get("scheduling", {}).get("timeout", DEFAULT_TIMEOUT)
        return Ending(FAILED, _CODE_DEADLINE_EXCEEDED, f"The job exceeded its timeout of {timeout}.", now)
    return None


def _exit_failure(replica: Replica, status: ReplicaStatus, link: str, now: int) -> Ending:
    where = f"To find out more about why your job exited please check the logs: {link}"
    if status.out_of_memory:
        text = f"The replica {replica.task} ran out of memory and exited with a non-zero status of {status.exit_code}."
        return Ending(FAILED, _CODE_RESOURCE_EXHAUSTED, f"{text} {where}", now)
    text = f"The replica {replica.task} exited with a non-zero status of {status.exit_code}. Termination reason: Error."
    return Ending(FAILED, _CODE_INVALID_ARGUMENT, f"{text} {where}", now)


def _failed(message: str) -> Ending:
    return Ending(FAILED, _CODE_INVALID_ARGUMENT, message, now_ns())


def _deadline(job: Job) -> int:
    timeout = job.spec["jobSpec"].get("scheduling", {}).get("timeout", DEFAULT_TIMEOUT)
    return (job.started or now_ns()) + int(duration_seconds(timeout) * 10**9)


def _expanded(words: list[str] | None, environment: Mapping[str, str]) -> list[str] | None:
    return None if words is None else [expand(word, environment) for word in words]


def _outcome(replica: Replica, status: ReplicaStatus) -> dict[str, Any]:
    return {**asdict(replica), **asdict(status)}
