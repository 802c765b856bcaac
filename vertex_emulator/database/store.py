"""The store: jobs, trials, models, service lines and operations in one SQLite file.

One connection under one lock: the work is a few statements at a time, and a reader never sees half a change. Every
state change is one transaction, so a process killed at any moment leaves either the state before or the state after.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vertex_emulator.database.changes import Changes, noting
from vertex_emulator.database.transaction import Transaction
from vertex_emulator.errors import StartError

SCHEMA_VERSION = 2
_PIPELINES_AND_MODELS = """
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
"""
_SCHEMA = (
    """
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
  replicas TEXT NOT NULL DEFAULT '[]',
  restarts TEXT NOT NULL DEFAULT '{}',
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
CREATE TABLE service_lines (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  severity TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX service_lines_by_job ON service_lines (job, sequence);
CREATE TABLE operations (
  name TEXT PRIMARY KEY,
  created INTEGER NOT NULL,
  metadata_type TEXT NOT NULL DEFAULT 'DeleteOperationMetadata',
  response TEXT NOT NULL DEFAULT '{"@type": "type.googleapis.com/google.protobuf.Empty"}'
) WITHOUT ROWID;
CREATE TABLE injections (sequence INTEGER PRIMARY KEY AUTOINCREMENT, remaining INTEGER NOT NULL, fault TEXT NOT NULL);
"""
    + _PIPELINES_AND_MODELS
)
_FROM_1_TO_2 = [
    "DROP INDEX jobs_by_parent;",
    "CREATE INDEX jobs_listed ON jobs (collection, number, region, sequence) WHERE study IS NULL;",
    "ALTER TABLE operations ADD COLUMN metadata_type TEXT NOT NULL DEFAULT 'DeleteOperationMetadata';",
    "ALTER TABLE operations ADD COLUMN response TEXT NOT NULL"
    """ DEFAULT '{"@type": "type.googleapis.com/google.protobuf.Empty"}';""",
    _PIPELINES_AND_MODELS,
    "ALTER TABLE jobs ADD COLUMN restarts TEXT NOT NULL DEFAULT '{}';",
    "ALTER TABLE jobs ADD COLUMN fault TEXT;",
    "ALTER TABLE jobs ADD COLUMN served INTEGER;",
    "CREATE INDEX jobs_in_queue ON jobs (collection, study, sequence) WHERE state = 'JOB_STATE_QUEUED';",
    "CREATE TABLE injections (sequence INTEGER PRIMARY KEY AUTOINCREMENT, remaining INTEGER NOT NULL,"
    " fault TEXT NOT NULL);",
]


class Store:
    """The file. Raises StartError for one that this version cannot use."""

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
            self._migrate(path)
            self._changed = noting(self._connection)
        except sqlite3.Error as error:
            raise StartError(f"the store {path} cannot be used: {error}") from error

    def _migrate(self, path: Path) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StartError(
                f"the store {path} was written by a newer emulator (schema {version}, this one knows "
                f"{SCHEMA_VERSION}): upgrade, or choose another folder with --data"
            )
        if version < SCHEMA_VERSION:
            script = _SCHEMA if version == 0 else "".join(_FROM_1_TO_2)
            self._connection.executescript(f"BEGIN IMMEDIATE;{script}PRAGMA user_version = {SCHEMA_VERSION};COMMIT;")

    def close(self) -> None:
        """Close the file; nothing may use the store afterwards."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One change, all of it or nothing; then `changes` tells of it."""
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
    def reading(self) -> Iterator[Transaction]:
        """A consistent look at the store, for reading only."""
        with self._lock:
            yield Transaction(self._connection)
