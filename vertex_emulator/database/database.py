"""The database: jobs, trials, models, service lines and operations in one SQLite file.

One connection under one lock: the work is a few statements at a time, and a reader never sees half a change. Every
state change is one transaction, so a process killed at any moment leaves either the state before or the state after.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vertex_emulator.database.job_change_notifier import JobChangeNotifier, create_live_set_of_changed_job_ids
from vertex_emulator.database.transaction import Transaction
from vertex_emulator.errors import StartError

SCHEMA_VERSION = 5  # checkouts before the first release wrote 1 to 4
SNAPSHOT_SCHEMA_VERSION = 4
"""The version of the tables that snapshots have: those of version 4, which has no schedules."""
_SCHEMA, _SCHEDULE_TABLES = (Path(__file__).with_name(name) for name in ("schema.sql", "schedule_tables.sql"))


class Database:
    """The SQLite file. Raises StartError if this version cannot use it."""

    def __init__(self, path: Path) -> None:
        self.changes = JobChangeNotifier()
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing; the loss of power may take the last changes, and it ends all containers.
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA busy_timeout = 10000")
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._validate_version_and_create_missing_tables(path)
            self._changed = create_live_set_of_changed_job_ids(self._connection)
        except sqlite3.Error as error:
            raise StartError(f"the database {path} cannot be used: {error}") from error

    def _validate_version_and_create_missing_tables(self, path: Path) -> None:
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
            scripts = [*([_SCHEMA] if version == 0 else []), _SCHEDULE_TABLES]
            tables = " ".join(script.read_text() for script in scripts)
            self._connection.executescript(f"BEGIN IMMEDIATE; {tables} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")

    def close(self) -> None:
        """Close the file; nothing may use the database afterwards."""
        with self._lock:
            self._connection.close()

    def shrink_file(self) -> None:
        """Make the file as small as its content."""
        with self._lock:
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def write_transaction(self) -> Iterator[Transaction]:
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
    def read_transaction(self) -> Iterator[Transaction]:
        """Open a consistent view of the database, for reading only."""
        with self._lock:
            yield Transaction(self._connection)
