"""The statements on operations: all of them are done, because what they stand for is done when they are answered."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import Operation
from vertex_emulator.times import now_ns


class Operations:
    """Valid while its transaction is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, name: str, metadata_type: str, response: Mapping[str, Any]) -> Operation:
        """Remember a finished operation; `response` is its Any, with its `@type`."""
        operation = Operation(name, now_ns(), metadata_type, response)
        self._connection.execute(
            "INSERT INTO operations (name, created, metadata_type, response) VALUES (?, ?, ?, ?)",
            (name, operation.created, metadata_type, json.dumps(response)),
        )
        return operation

    def get(self, name: str) -> Operation | None:
        """An operation by its full name."""
        row = self._connection.execute("SELECT * FROM operations WHERE name = ?", (name,)).fetchone()
        return _operation(row) if row else None

    def list_of(self, parent: str) -> Iterator[Operation]:
        """The operations of a location or of a resource, the newest first."""
        rows = self._connection.execute(
            "SELECT * FROM operations WHERE substr(name, 1, ?) = ? ORDER BY created DESC, name DESC",
            (len(parent) + 1, f"{parent}/"),
        )
        return (_operation(row) for row in rows)

    def delete(self, name: str) -> bool:
        """Forget an operation; False when there is none."""
        return self._connection.execute("DELETE FROM operations WHERE name = ?", (name,)).rowcount > 0


def _operation(row: sqlite3.Row) -> Operation:
    return Operation(row["name"], row["created"], row["metadata_type"], from_json(row["response"]))
