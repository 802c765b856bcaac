"""Which jobs have changed, for those who show them."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator

# On the connection only: the file itself stays as every version knows it.
_TRIGGERS = """
CREATE TEMP TRIGGER job_added AFTER INSERT ON jobs BEGIN SELECT job_changed(NEW.id), job_changed(NEW.study); END;
CREATE TEMP TRIGGER job_moved AFTER UPDATE ON jobs BEGIN SELECT job_changed(NEW.id), job_changed(NEW.study); END;
CREATE TEMP TRIGGER job_removed AFTER DELETE ON jobs BEGIN SELECT job_changed(OLD.id), job_changed(OLD.study); END;
CREATE TEMP TRIGGER trial_added AFTER INSERT ON trials BEGIN SELECT job_changed(NEW.study); END;
CREATE TEMP TRIGGER trial_moved AFTER UPDATE ON trials BEGIN SELECT job_changed(NEW.study); END;
CREATE TEMP TRIGGER message_added AFTER INSERT ON service_messages
BEGIN SELECT job_changed(id), job_changed(study) FROM jobs WHERE id = NEW.job; END;
"""


class ChangeFeed:
    """Tells watchers the ids of jobs that changed; a trial's job changes its study too.

    A watcher that is slow finds all that it missed in one set, so what waits for it never outgrows the jobs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: set[Subscription] = set()
        self._closed = False

    @contextlib.contextmanager
    def subscribe(self) -> "Iterator[Subscription]":
        """A watcher of the running event loop, told of changes until the block is left."""
        watcher = Subscription(asyncio.get_running_loop())
        with self._lock:
            self._watchers.add(watcher)
            if self._closed:
                watcher.tell((), over=True)
        try:
            yield watcher
        finally:
            with self._lock:
                self._watchers.discard(watcher)

    def publish(self, jobs: Iterable[str]) -> None:
        """Tell every watcher. From any thread."""
        told = frozenset(jobs)
        if told:
            with self._lock:
                for watcher in self._watchers:
                    watcher.tell(told)

    def close(self) -> None:
        """Let every watcher go, and those that are still to come."""
        with self._lock:
            self._closed = True
            for watcher in self._watchers:
                watcher.tell((), over=True)


class Subscription:
    """One listener on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._told = asyncio.Event()
        self._jobs: set[str] = set()
        self._over = False

    def tell(self, jobs: Iterable[str], over: bool = False) -> None:
        """Add to what the next `changed` gives."""
        with self._lock:
            self._jobs.update(jobs)
            self._over = self._over or over
        self._loop.call_soon_threadsafe(self._told.set)

    async def changed(self, timeout: float) -> frozenset[str] | None:
        """The jobs that changed since the last call, empty after `timeout` seconds without any; None at the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._told.wait()
        with self._lock:
            self._told.clear()
            jobs, self._jobs = frozenset(self._jobs), set()
            return None if self._over else jobs


def record_changed_jobs(connection: sqlite3.Connection) -> set[str]:
    """A set to which every statement on the connection adds the ids of the jobs that it changes."""
    noted: set[str] = set()

    def note(job: str | None) -> None:
        if job is not None:
            noted.add(job)

    connection.create_function("job_changed", 1, note)
    connection.executescript(_TRIGGERS)
    return noted
