"""The base of all classes with statements: what inserting into any table has in common."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any


class Statements:
    """The statements on some tables, valid while their transaction is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _insert_row(self, table: str, **columns: Any) -> None:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        self._connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", encode_values(columns.values()))

    def _select_first(self, query: str, *values: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._connection.execute(query, values).fetchone()
        return row


def encode_values(values: Iterable[Any]) -> list[Any]:
    """Return values as SQLite stores them: mappings, lists, tuples and dataclasses as JSON."""
    values = [asdict(value) if is_dataclass(value) else value for value in values]  # type: ignore[arg-type]
    return [json.dumps(value) if isinstance(value, Mapping | list | tuple) else value for value in values]
