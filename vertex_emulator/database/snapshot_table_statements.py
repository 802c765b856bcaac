"""The statements on the tables that a snapshot of a data folder has, with all their rows."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vertex_emulator.database.statement_base import Statements

TABLES = ("jobs", "trials", "service_messages", "operations", "pipelines", "models")
"""What a snapshot has of the database, in an order in which each table refers to earlier ones only.

Settings are of one data folder, injected faults of jobs to come, and schedules of a stack: an archive starts no job.
"""


class TableRows(Statements):
    """The statements on rows of any table of TABLES."""

    def iterate_rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table by its key, each as its columns."""
        return map(dict, self._connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2"))

    def insert_rows(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows; raises ValueError for a row with other columns than the table's."""
        columns = [row["name"] for row in self._connection.execute(f"PRAGMA table_info({table})")]
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        for row in rows:
            if row.keys() != set(columns):
                raise ValueError(f"a row of {table} has other columns")
            self._connection.execute(statement, [row[column] for column in columns])
