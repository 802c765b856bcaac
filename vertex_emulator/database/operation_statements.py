"""The statements on operations. All operations are finished: the emulator does the work before it replies."""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import Operation
from vertex_emulator.database.statement_base import Statements
from vertex_emulator.names import new_id
from vertex_emulator.times import now_ns

_NO_FIELDS: Mapping[str, Any] = {}
_EMPTY_RESPONSE = {"@type": "type.googleapis.com/google.protobuf.Empty"}


class Operations(Statements):
    """The statements on operations."""

    def add_finished(
        self,
        parent: str,
        metadata_type: str,
        response: Mapping[str, Any] = _EMPTY_RESPONSE,
        metadata: Mapping[str, Any] = _NO_FIELDS,
    ) -> Operation:
        """Store a finished operation on the resource of that name; `response` is its Any, with its `@type`."""
        operation = Operation(f"{parent}/operations/{new_id()}", now_ns(), metadata_type, metadata, response)
        self._insert_row("operations", **asdict(operation))
        return operation

    def get(self, name: str) -> Operation | None:
        """Return an operation by its full name; None if it does not exist."""
        row = self._select_first("SELECT * FROM operations WHERE name = ?", name)
        return _parse_operation(row) if row else None

    def iterate_under_parent(self, parent: str) -> Iterator[Operation]:
        """Yield the operations of a resource, or of a location and all resources in it, the newest first."""
        query = "SELECT * FROM operations WHERE substr(name, 1, ?) = ? ORDER BY created DESC, name DESC"
        return map(_parse_operation, self._connection.execute(query, (len(parent) + 1, f"{parent}/")))

    def delete_if_exists(self, name: str) -> bool:
        """Delete an operation. Return False if it does not exist."""
        return self._connection.execute("DELETE FROM operations WHERE name = ?", (name,)).rowcount > 0


def _parse_operation(row: sqlite3.Row) -> Operation:
    return Operation(**{**row, **{field: from_json(row[field]) for field in ("metadata", "response")}})
