"""The changes of jobs: SQLite triggers collect the ids of changed jobs, and subscribers are notified of them."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator

# Temporary triggers belong to the connection; the file does not change.
_TRIGGERS = """
CREATE TEMP TRIGGER job_added AFTER INSERT ON jobs BEGIN SELECT job_changed(NEW.id), job_changed(NEW.study); END;
CREATE TEMP TRIGGER job_moved AFTER UPDATE ON jobs BEGIN SELECT job_changed(NEW.id), job_changed(NEW.study); END;
CREATE TEMP TRIGGER job_removed AFTER DELETE ON jobs BEGIN SELECT job_changed(OLD.id), job_changed(OLD.study); END;
CREATE TEMP TRIGGER trial_added AFTER INSERT ON trials BEGIN SELECT job_changed(NEW.study); END;
CREATE TEMP TRIGGER trial_moved AFTER UPDATE ON trials BEGIN SELECT job_changed(NEW.study); END;
CREATE TEMP TRIGGER message_added AFTER INSERT ON service_messages
BEGIN SELECT job_changed(id), job_changed(study) FROM jobs WHERE id = NEW.job; END;
"""


def watch(connection: sqlite3.Connection) -> set[str]:
    """Return a set to which every statement on the connection adds the ids of the jobs that it changes."""
    changed: set[str] = set()

    def add(job_id: str | None) -> None:
        if job_id is not None:
            changed.add(job_id)

    connection.create_function("job_changed", 1, add)
    connection.executescript(_TRIGGERS)
    return changed


class Changes:
    """Notifies subscribers of the ids of changed jobs; a trial's job changes its study too.

    A slow subscriber gets all that it missed as one set, which never has more ids than there are jobs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: set[Subscription] = set()
        self._listeners: list[Callable[[frozenset[str]], object]] = []
        self._closed = False

    def listen(self, listener: Callable[[frozenset[str]], object]) -> None:
        """Call a function with the ids of changed jobs, in the thread that changes them; it must return at once."""
        with self._lock:
            self._listeners.append(listener)

    @contextlib.contextmanager
    def subscribe(self) -> "Iterator[Subscription]":
        """Subscribe the running event loop to changes until the block is left."""
        subscription = Subscription(asyncio.get_running_loop())
        with self._lock:
            self._subscriptions.add(subscription)
            if self._closed:
                subscription.notify((), closed=True)
        try:
            yield subscription
        finally:
            with self._lock:
                self._subscriptions.discard(subscription)

    def publish(self, job_ids: Iterable[str]) -> None:
        """Notify every subscriber; may be called from any thread."""
        changed = frozenset(job_ids)
        if changed:
            with self._lock:
                for subscription in self._subscriptions:
                    subscription.notify(changed)
                for listener in self._listeners:
                    listener(changed)

    def close(self) -> None:
        """End all subscriptions, also later ones."""
        with self._lock:
            self._closed = True
            for subscription in self._subscriptions:
                subscription.notify((), closed=True)


class Subscription:
    """One subscriber on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._notified = asyncio.Event()
        self._jobs: set[str] = set()
        self._closed = False

    def notify(self, job_ids: Iterable[str], closed: bool = False) -> None:
        """Add jobs to the result of the next `wait`."""
        with self._lock:
            self._jobs.update(job_ids)
            self._closed = self._closed or closed
        self._loop.call_soon_threadsafe(self._notified.set)

    async def wait(self, timeout_seconds: float) -> frozenset[str] | None:
        """Return the jobs changed since the last call, none after `timeout_seconds`; None at the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._notified.wait()
        with self._lock:
            self._notified.clear()
            jobs, self._jobs = frozenset(self._jobs), set()
            return None if self._closed else jobs
