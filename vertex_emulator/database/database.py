"""The database: jobs, trials, models, service lines and operations in one SQLite file.

One connection under one lock: the work is a few statements at a time, and a reader never sees half a change. Every
state change is one transaction, so a process killed at any moment leaves either the state before or the state after.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vertex_emulator.database.change_feed import ChangeFeed, record_changed_jobs
from vertex_emulator.database.transaction import Transaction
from vertex_emulator.errors import StartError

SCHEMA_VERSION = 3  # checkouts before the first release wrote 1 and 2
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE jobs (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  collection TEXT NOT NULL,
  project TEXT NOT NULL,
  number TEXT NOT NULL,
  region TEXT NOT NULL,
  spec TEXT NOT NULL,
  state TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  started INTEGER,
  ended INTEGER,
  ending TEXT,
  study TEXT REFERENCES jobs (id) ON DELETE CASCADE,
  trial INTEGER,
  slots INTEGER NOT NULL,
  replica_outcomes TEXT NOT NULL DEFAULT '[]',
  restarts TEXT NOT NULL DEFAULT '{{}}',
  fault TEXT,
  served INTEGER
);
CREATE INDEX jobs_listed ON jobs (collection, number, region, sequence) WHERE study IS NULL;
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_study ON jobs (study);
CREATE INDEX jobs_in_queue ON jobs (collection, study, sequence) WHERE state = 'JOB_STATE_QUEUED';
CREATE TABLE trials (
  study TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  state TEXT NOT NULL,
  parameters TEXT NOT NULL,
  job TEXT NOT NULL,
  started INTEGER,
  ended INTEGER,
  measurements TEXT NOT NULL DEFAULT '[]',
  final TEXT,
  infeasible_reason TEXT,
  PRIMARY KEY (study, number)
) WITHOUT ROWID;
CREATE TABLE service_messages (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  severity TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX service_messages_by_job ON service_messages (job, sequence);
CREATE TABLE operations (
  name TEXT PRIMARY KEY,
  created INTEGER NOT NULL,
  metadata_type TEXT NOT NULL,
  response TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE injected_faults (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  remaining INTEGER NOT NULL,
  fault TEXT NOT NULL
);
CREATE TABLE pipelines (
  pipeline TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  job TEXT NOT NULL,
  model TEXT
) WITHOUT ROWID;
CREATE INDEX pipelines_by_job ON pipelines (job);
CREATE TABLE models (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  project TEXT NOT NULL,
  number TEXT NOT NULL,
  region TEXT NOT NULL,
  spec TEXT NOT NULL,
  aliases TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  pipeline TEXT,
  UNIQUE (number, region, id, version)
);
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class Database:
    """The SQLite file. Raises StartError if this version cannot use it."""

    def __init__(self, path: Path) -> None:
        self.changes = ChangeFeed()
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
            self._changed = record_changed_jobs(self._connection)
        except sqlite3.Error as error:
            raise StartError(f"the database {path} cannot be used: {error}") from error

    def _create_tables(self, path: Path) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA_VERSION):
            newer = f"a newer emulator (schema {version}): upgrade this one"
            reset = f"vertex-emulator reset --data {path.parent}"
            older = f"an older emulator (schema {version}): remove its jobs with `{reset}`"
            raise StartError(
                f"the database {path} was written by {newer if version > SCHEMA_VERSION else older}, or choose another "
                "folder with --data"
            )
        if version == 0:
            self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file; nothing may use the database afterwards."""
        with self._lock:
            self._connection.close()

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
