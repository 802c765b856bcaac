"""What all tables have in common, and the tables whose rows are plain values: settings, and those of a snapshot."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

SNAPSHOT = ("jobs", "trials", "service_messages", "operations", "pipelines", "models")
"""What a snapshot has of the database, in an order in which each table refers to earlier ones only.

Settings are of one data folder, injected faults of jobs to come, and schedules of a stack: an archive starts no job.
"""


class Table:
    """The base of all statements, which are valid while their transaction is open. Times are ns since 1970."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _first(self, query: str, *values: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._connection.execute(query, values).fetchone()
        return row

    def _insert(self, table: str, **columns: Any) -> None:
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
        self._connection.execute(statement, encode(columns.values()))

    def _update(self, table: str, key: Mapping[str, Any], **columns: Any) -> None:
        changes = ", ".join(f"{name} = ?" for name in columns)
        where = " AND ".join(f"{name} = ?" for name in key)
        values = (*encode(columns.values()), *key.values())
        self._connection.execute(f"UPDATE {table} SET {changes} WHERE {where}", values)


def encode(values: Iterable[Any]) -> list[Any]:
    """Return values as SQLite stores them: mappings, lists, tuples and dataclasses as JSON."""
    values = [asdict(value) if is_dataclass(value) else value for value in values]  # type: ignore[arg-type]
    return [json.dumps(value) if isinstance(value, Mapping | list | tuple) else value for value in values]


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


class Rows(Table):
    """The rows of any table, as they are."""

    def read(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table of SNAPSHOT by its key, each as its columns."""
        return map(dict, self._connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2"))

    def insert(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows; raises ValueError for a row with other columns than the table's."""
        columns = [row["name"] for row in self._connection.execute(f"PRAGMA table_info({table})")]
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        for row in rows:
            if row.keys() != set(columns):
                raise ValueError(f"a row of {table} has other columns")
            self._connection.execute(statement, [row[column] for column in columns])

    def specs(self, without: Collection[str]) -> Iterator[str]:
        """Yield the specs, as JSON, of all models, schedules and jobs, but for jobs of these ids and their trials."""
        for row in self._connection.execute("SELECT id, study, spec FROM jobs"):
            if row["id"] not in without and row["study"] not in without:
                yield row["spec"]
        for table, column in (("models", "spec"), ("schedules", "jobs"), ("schedule_runs", "jobs")):
            for row in self._connection.execute(f"SELECT {column} AS spec FROM {table}"):
                yield row["spec"]
