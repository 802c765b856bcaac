"""The database: jobs, trials, models, tensorboards, lineage, usage, service lines and operations in one SQLite file.

One connection under one lock: the work is a few statements at a time, and a reader never sees half a change. Every
state change is one transaction, so a process killed at any moment leaves either the state before or the state after.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vertex_emulator.database.jobs import Faults, Jobs, Pipelines, Queue, Trials
from vertex_emulator.database.lineage import Lineage
from vertex_emulator.database.models import Models, Operations
from vertex_emulator.database.permissions import Permissions
from vertex_emulator.database.records import Table
from vertex_emulator.database.schedules import Schedules
from vertex_emulator.database.tensorboards import Tensorboards
from vertex_emulator.database.usage import Usages
from vertex_emulator.errors import StartError

SNAPSHOT_SCHEMA_VERSION = 4  # checkouts before the first release wrote 1 to 4
"""The version of the tables of jobs that snapshots have; the format of an archive says which other tables it has."""
SCRIPTS = {
    SNAPSHOT_SCHEMA_VERSION: "schema.sql",
    5: "schedules.sql",
    6: "tensorboards.sql",
    7: "usage.sql",
    8: "lineage.sql",
    9: "permissions.sql",
}
"""What each version has added."""
SCHEMA_VERSION = max(SCRIPTS)


class Transaction:
    """All statements, by what they are about; valid until the transaction ends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.jobs = Jobs(connection)
        self.queue = Queue(connection)
        self.faults = Faults(connection)
        self.trials = Trials(connection)
        self.pipelines = Pipelines(connection)
        self.models = Models(connection)
        self.operations = Operations(connection)
        self.schedules = Schedules(connection)
        self.tensorboards = Tensorboards(connection)
        self.lineage = Lineage(connection)
        self.usage = Usages(connection)
        self.permissions = Permissions(connection)
        self.settings = Settings(connection)
        self.rows = Rows(connection)


class Database:
    """The SQLite file. Raises StartError if this version cannot use it."""

    def __init__(self, path: Path) -> None:
        self.changes = Changes()
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing; the loss of power may take the last changes, and it ends all containers.
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA busy_timeout = 10000")
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._create_tables(path)
            self._changed = _watch(self._connection)
        except sqlite3.Error as error:
            raise StartError(f"the database {path} cannot be used: {error}") from error

    def _create_tables(self, path: Path) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, *SCRIPTS):
            newer = f"a newer emulator (schema {version}): upgrade this one"
            reset = f"vertex-emulator reset --data {path.parent}"
            older = f"an older emulator (schema {version}): remove its jobs with `{reset}`"
            raise StartError(
                f"the database {path} was written by {newer if version > SCHEMA_VERSION else older}, or choose another "
                "folder with --data"
            )
        if version != SCHEMA_VERSION:
            scripts = (Path(__file__).with_name(script) for added, script in SCRIPTS.items() if added > version)
            tables = " ".join(script.read_text() for script in scripts)
            self._connection.executescript(f"BEGIN IMMEDIATE; {tables} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that is committed as a whole or not at all; then `changes` is notified."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield Transaction(self._connection)
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite itself rolls back on some errors, a full disk for one.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self.changes.publish(self._changed)
            self._changed.clear()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a consistent view of the database, for reading only."""
        with self._lock:
            yield Transaction(self._connection)

    def shrink(self) -> None:
        """Make the file as small as its content."""
        with self._lock:
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file; nothing may use the database afterwards."""
        with self._lock:
            self._connection.close()


def is_disk_full(error: sqlite3.Error) -> bool:
    """Return whether a change failed because the disk is full; the database is unchanged."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def describe(error: sqlite3.Error) -> str:
    """Tell users why the database cannot be used."""
    if is_disk_full(error):
        return "The disk of the data folder is full: make room on it, and the emulator goes on by itself"
    return f"The emulator cannot use its database: {error}"


class Settings(Table):
    """The settings of a data folder: texts by key."""

    def get(self, key: str) -> str | None:
        """Return a setting; None if it was never set."""
        row = self._first("SELECT value FROM settings WHERE key = ?", key)
        return row["value"] if row else None

    def set(self, key: str, value: str) -> None:
        """Store a setting."""
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, value))

    def remove(self, key: str) -> None:
        """Remove a setting, as if it had never been set."""
        self._connection.execute("DELETE FROM settings WHERE key = ?", (key,))


_RECORDS = ("tensorboards", "tensorboard_points", "lineage_nodes", "lineage_edges")
SNAPSHOT = ("jobs", "trials", "service_messages", "operations", "pipelines", "models", *_RECORDS)
"""What a snapshot has of the database, in an order in which each table refers to earlier ones only.

Settings are of one data folder, injected faults of jobs to come, and schedules of a stack: an archive starts no job.
"""


_SPECS = (("models", "spec"), ("schedules", "jobs"), ("schedule_runs", "jobs"), ("lineage_nodes", "spec"))


class Rows(Table):
    """The rows of any table, as they are."""

    def read(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table of SNAPSHOT by its key, each as its columns."""
        return map(dict, self._connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2"))

    def insert(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows; raises ValueError for a row with other columns than the table's."""
        columns = [row["name"] for row in self._connection.execute(f"PRAGMA table_info({table})")]
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        expected = frozenset(columns)

        def values() -> Iterator[list[Any]]:
            for row in rows:
                if row.keys() != expected:
                    raise ValueError(f"a row of {table} has other columns")
                yield [row[column] for column in columns]

        self._connection.executemany(statement, values())

    def specs(self, without: Collection[str]) -> Iterator[str]:
        """Yield the specs, as JSON, of all jobs, models, schedules and of what is in metadata stores.

        Those of jobs of these ids and their trials are left out.
        """
        for row in self._connection.execute("SELECT id, study, spec FROM jobs"):
            if row["id"] not in without and row["study"] not in without:
                yield row["spec"]
        for table, column in _SPECS:
            for row in self._connection.execute(f"SELECT {column} AS spec FROM {table}"):
                yield row["spec"]


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


def _watch(connection: sqlite3.Connection) -> set[str]:
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

    @contextmanager
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
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._notified.wait()
        with self._lock:
            self._notified.clear()
            jobs, self._jobs = frozenset(self._jobs), set()
            return None if self._closed else jobs
