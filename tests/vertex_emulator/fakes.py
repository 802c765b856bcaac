"""A machine in memory: containers that outlive the emulator, a clock, and a kill at any step."""

import functools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.vertex_emulator.jobs import IMAGE
from vertex_emulator.api.jobs import JobService
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction, jobs, models
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import ExecutorUnavailable, ImageUnavailable
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.replicas.logs import LogLine
from vertex_emulator.replicas.size import Host
from vertex_emulator.replicas.spec import ReplicaSpec
from vertex_emulator.scheduling import custom_job, lifecycle, outcome, pipeline, study
from vertex_emulator.scheduling.scheduler import Scheduler, WorkQueue

SECOND = 10**9


class Killed(BaseException):
    """The process is gone from here on."""


class Clock:
    """Seconds for the queue and nanoseconds for the database, from one hand."""

    def __init__(self) -> None:
        self.nanoseconds = 1_700_000_000 * SECOND

    def __call__(self) -> float:
        return self.nanoseconds / SECOND

    def now_ns(self) -> int:
        self.nanoseconds += 1000
        return self.nanoseconds

    def advance(self, seconds: float) -> None:
        self.nanoseconds += int(seconds * SECOND) + 1000


class Fuse:
    """Kills the process at its n-th step; None never does."""

    def __init__(self, steps: int | None = None) -> None:
        self.left = steps

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Killed


@dataclass
class Container:
    """A container of the machine."""

    spec: ReplicaSpec
    status: ReplicaStatus


@dataclass
class Machine:
    """What Docker holds; `program` gives a container's exit code and may write files, as training code would."""

    clock: Clock
    program: Callable[[ReplicaSpec], int] = lambda spec: 0
    ignores_sigterm: bool = False
    is_down: bool = False
    fuse: Fuse = field(default_factory=Fuse)
    images: set[str] = field(default_factory=lambda: {IMAGE})
    containers: dict[tuple[str, Replica], Container] = field(default_factory=dict)
    started: Counter[tuple[str, Replica]] = field(default_factory=Counter)
    most_at_once: int = 0
    signals: list[str] = field(default_factory=list)
    obstacle: str | None = None

    def ping(self) -> None:
        self._reach()

    def host(self) -> Host:
        self._reach()
        return Host(cpus=8, memory=64 << 30)

    def ensure_image(self, job: str, image: str) -> bool:
        self._reach()
        if image not in self.images:
            raise ImageUnavailable(f"{image} cannot be pulled: not found")
        return True

    def lacks_image(self, image: str) -> bool:
        return image not in self.images

    def start(self, spec: ReplicaSpec) -> None:
        self._reach()
        place = (spec.job, spec.replica)
        if place not in self.containers:
            self.containers[place] = Container(spec, ReplicaStatus("created"))
        self.fuse.step()
        container = self.containers[place]
        if container.status.phase == "created":
            container.status = ReplicaStatus("running", started=self.clock.now_ns())
            self.started[place] += 1
            self.most_at_once = max(self.most_at_once, len(self._running()))
        self.fuse.step()

    def restart(self, job: str, replica: Replica) -> bool:
        self._reach()
        container = self.containers.get((job, replica))
        if container is not None and container.status.phase == "exited":
            container.status = ReplicaStatus("running", started=self.clock.now_ns())
            self.started[job, replica] += 1
        self.fuse.step()
        return container is not None

    def container_name(self, job: str, replica: Replica) -> str:
        return f"container-{job}-{replica.task_name}-{replica.attempt}"

    def statuses(self, job: str) -> Mapping[Replica, ReplicaStatus]:
        self._reach()
        return {place[1]: found.status for place, found in self.containers.items() if place[0] == job}

    def signal(self, job: str, replica: Replica, signal: str) -> None:
        self._reach()
        self.signals.append(signal)
        container = self.containers.get((job, replica))
        if container and container.status.phase == "running" and not (signal == "SIGTERM" and self.ignores_sigterm):
            self._exit(container, 143 if signal == "SIGTERM" else 137)
        self.fuse.step()

    def read_log(self, job: str, replica: Replica, since_ns: int = 0) -> Iterator[LogLine]:
        self._reach()
        yield LogLine(self.clock.now_ns(), "o", f"hello from {replica.task_name}")
        self.fuse.step()

    def log_limit(self, job: str, replica: Replica) -> int | None:
        return None

    def remains(self, job: str, replica: Replica) -> None:
        return None

    def describe_networks(self) -> str:
        return "nothing"

    def remove(self, job: str) -> None:
        self._reach()
        for place in [place for place in self.containers if place[0] == job]:
            del self.containers[place]
            self.fuse.step()

    def job_ids(self) -> set[str]:
        self._reach()
        return {job for job, _ in self.containers}

    def watch(self, on_begin: Callable[[], None]) -> Iterator[str]:
        raise NotImplementedError("tests wake jobs themselves")

    def finish_one(self) -> str | None:
        """Let the container that has run longest come to its end; the job's id, None when none runs."""
        running = self._running()
        if not running:
            return None
        container = running[0]
        self._exit(container, self.program(container.spec))
        return container.spec.job

    def end(self, job: str, replica: Replica, code: int | None = None) -> None:
        """Let one container come to its end, by its program's exit code or by another."""
        container = self.containers[job, replica]
        self._exit(container, self.program(container.spec) if code is None else code)

    def _running(self) -> list[Container]:
        return [found for found in self.containers.values() if found.status.phase == "running"]

    def _exit(self, container: Container, code: int) -> None:
        container.status = replace(container.status, phase="exited", exit_code=code, finished=self.clock.now_ns())

    def _reach(self) -> None:
        self.fuse.step()
        if self.is_down:
            raise ExecutorUnavailable("Docker does not answer: it is down")


class FusedDatabase(Database):
    """A database that the process may be killed right before and right after a transaction."""

    def __init__(self, path: Path, fuse: Fuse) -> None:
        if not path.exists():
            path.write_bytes(_create_empty_database())
        super().__init__(path)
        self._connection.execute("PRAGMA synchronous = OFF")  # no test takes the machine's power
        self._fuse = fuse

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        self._fuse.step()
        with super().write() as transaction:
            yield transaction
        self._fuse.step()


@functools.cache
def _create_empty_database() -> bytes:
    """Create a database once, and return the content of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "emulator.db")
        Database(path).close()
        return path.read_bytes()


class TimedQueue(WorkQueue):
    def get_next_timer(self) -> float | None:
        """Return when the next timer is due, on the queue's clock; None without timers."""
        return min(self._timers.values(), default=None)


class Emulator:
    """The emulator without threads or HTTP: `run` looks at keys until every job has ended."""

    def __init__(self, root: Path, machine: Machine, capacity: int = 4) -> None:
        self.machine = machine
        self.capacity = capacity
        self.data = DataFolder.open(root)
        self.start()

    def start(self) -> None:
        """Start, or start again on what a killed process left."""
        self.database = FusedDatabase(self.data.database, self.machine.fuse)
        self.queue = TimedQueue(self.machine.clock)
        self.scheduler = Scheduler(
            self.database,
            self.machine,
            self.data,
            self.queue,
            self.capacity,
        )
        wake = self.scheduler.wake
        self.jobs = JobService(self.database, self.data.buckets, self.capacity, self.machine, wake, "http://here")
        self.queue.add("admission")
        self.queue.add("resync")

    def job(self, job_id: str) -> Job:
        with self.database.read() as transaction:
            found = transaction.jobs.get(job_id)
        assert found is not None
        return found

    def run_ready_steps(self) -> None:
        """Take every step that can be taken now."""
        while self.scheduler.step(timeout=0):
            pass

    def run(self, until: "Callable[[Emulator], bool] | None" = None) -> None:
        """Go on until `until`, by default until every job has ended: containers end, and time passes."""
        for _ in range(2000):
            self.run_ready_steps()
            if (until or _all_ended)(self):
                return
            ended = self.machine.finish_one()
            if ended is not None:
                self.queue.add(ended)
            else:
                timer = self.queue.get_next_timer()
                assert timer is not None, "nothing is left to wait for"
                self.machine.clock.advance(max(timer - self.machine.clock(), 0))
        raise AssertionError("the jobs do not end")


def _all_ended(emulator: Emulator) -> bool:
    with emulator.database.read() as transaction:
        return not transaction.jobs.unfinished()


def use_clock(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the emulator's modules read the time from `clock`."""
    for module in (
        lifecycle,
        custom_job,
        pipeline,
        study,
        outcome,
        jobs,
        jobs,
        models,
        models,
    ):
        monkeypatch.setattr(module, "now_ns", clock.now_ns)
