"""The API's methods on long-running operations. Every operation is done when its client first sees it."""

from dataclasses import dataclass
from typing import Any

from vertex_emulator.api import lists
from vertex_emulator.api.lists import ListRequest
from vertex_emulator.database import Database
from vertex_emulator.database.records import Operation
from vertex_emulator.errors import ApiError
from vertex_emulator.resources import operation_json

_OPERATION_FIELDS = lists.Fields[Operation]({"name": lambda operation: operation.name, "done": lambda _: "true"})


@dataclass(frozen=True)
class OperationService:
    """The methods on operations in the database."""

    database: Database

    def get(self, name: str) -> dict[str, Any]:
        """Return an operation by its full name. Raises ApiError NOT_FOUND."""
        with self.database.read() as transaction:
            operation = transaction.operations.get(name)
        if operation is None:
            raise _not_found(name)
        return operation_json(operation)

    def list(self, parent: str, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of the operations of a location or a resource, the newest first. Raises ApiError."""
        condition = list_request.condition(_OPERATION_FIELDS)
        before = list_request.position(str)
        with self.database.read() as transaction:
            matching = (
                operation
                for operation in transaction.operations.under(parent)
                if (before is None or _position(operation) < before) and _OPERATION_FIELDS.match(condition, operation)
            )
            page, token = list_request.page(matching, _position)
        return lists.reply("operations", [operation_json(operation) for operation in page], token)

    def cancel(self, name: str) -> dict[str, Any]:
        """Do nothing, as the operation is done. Raises ApiError NOT_FOUND."""
        self.get(name)
        return {}

    def delete(self, name: str) -> dict[str, Any]:
        """Delete an operation. Raises ApiError NOT_FOUND."""
        with self.database.write() as transaction:
            if not transaction.operations.delete(name):
                raise _not_found(name)
        return {}


def _position(operation: Operation) -> str:
    return f"{operation.created:020} {operation.name}"


def _not_found(name: str) -> ApiError:
    return ApiError("NOT_FOUND", f"The Operation {name} does not exist.")
