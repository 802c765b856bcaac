"""The database: jobs, trials, models, service lines and operations in one SQLite file.

One connection under one lock: the work is a few statements at a time, and a reader never sees half a change. Every
state change is one transaction, so a process killed at any moment leaves either the state before or the state after.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vertex_emulator.database import changes
from vertex_emulator.database.jobs import Faults, Jobs, Queue
from vertex_emulator.database.models import Models, Operations
from vertex_emulator.database.schedules import Schedules
from vertex_emulator.database.tables import Rows, Settings
from vertex_emulator.database.trials import Pipelines, Trials
from vertex_emulator.errors import StartError

SCHEMA_VERSION = 5  # checkouts before the first release wrote 1 to 4
SNAPSHOT_SCHEMA_VERSION = 4
"""The version of the tables that snapshots have: those of version 4, which has no schedules."""
_JOBS, _SCHEDULES = (Path(__file__).with_name(name) for name in ("schema.sql", "schedules.sql"))


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
        self.settings = Settings(connection)
        self.rows = Rows(connection)


class Database:
    """The SQLite file. Raises StartError if this version cannot use it."""

    def __init__(self, path: Path) -> None:
        self.changes = changes.Changes()
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
            self._changed = changes.watch(self._connection)
        except sqlite3.Error as error:
            raise StartError(f"the database {path} cannot be used: {error}") from error

    def _create_tables(self, path: Path) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SNAPSHOT_SCHEMA_VERSION, SCHEMA_VERSION):
            newer = f"a newer emulator (schema {version}): upgrade this one"
            reset = f"vertex-emulator reset --data {path.parent}"
            older = f"an older emulator (schema {version}): remove its jobs with `{reset}`"
            raise StartError(
                f"the database {path} was written by {newer if version > SCHEMA_VERSION else older}, or choose another "
                "folder with --data"
            )
        if version != SCHEMA_VERSION:
            scripts = [*([_JOBS] if version == 0 else []), _SCHEDULES]
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
