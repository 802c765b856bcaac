"""The API's methods on operations, without HTTP. Every operation is done when its client learns of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from vertex_emulator import filters
from vertex_emulator.api.listing import Listing, answer
from vertex_emulator.database import Database
from vertex_emulator.database.records import Operation
from vertex_emulator.errors import ApiError
from vertex_emulator.resource_json import serialize_operation

_FILTERABLE = ("name", "done")


@dataclass(frozen=True)
class Operations:
    """Methods on the database."""

    database: Database

    def get(self, name: str) -> dict[str, Any]:
        """An operation by its full name. Raises ApiError NOT_FOUND."""
        with self.database.read_transaction() as transaction:
            operation = transaction.operations.get(name)
        if operation is None:
            raise _unknown(name)
        return serialize_operation(operation)

    def page(self, parent: str, listing: Listing) -> dict[str, Any]:
        """A page of the operations of a location or of a resource, the newest first. Raises ApiError."""
        condition = listing.condition(_FILTERABLE)
        before = listing.after(str)
        with self.database.read_transaction() as transaction:
            found = (
                operation
                for operation in transaction.operations.list_of(parent)
                if (before is None or _place(operation) < before)
                and filters.matches(condition, partial(_field, operation))
            )
            operations, token = listing.page(found, _place)
        return answer("operations", [serialize_operation(operation) for operation in operations], token)

    def cancel(self, name: str) -> dict[str, Any]:
        """Nothing is left to cancel. Raises ApiError NOT_FOUND."""
        self.get(name)
        return {}

    def delete(self, name: str) -> dict[str, Any]:
        """Forget an operation. Raises ApiError NOT_FOUND."""
        with self.database.write_transaction() as transaction:
            if not transaction.operations.delete(name):
                raise _unknown(name)
        return {}


def _place(operation: Operation) -> str:
    return f"{operation.created:020} {operation.name}"


def _field(operation: Operation, field: str) -> str | None:
    return {"name": operation.name, "done": "true"}.get(field)


def _unknown(name: str) -> ApiError:
    return ApiError("NOT_FOUND", f"The Operation {name} does not exist.")
