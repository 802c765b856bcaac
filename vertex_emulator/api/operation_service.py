"""The API's methods on long-running operations. Every operation is done when its client first sees it."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from vertex_emulator.api.list_request import ListRequest, build_list_reply
from vertex_emulator.database import Database
from vertex_emulator.database.records import Operation
from vertex_emulator.errors import ApiError
from vertex_emulator.filters.expression_tree import matches
from vertex_emulator.resources import operation_json

_FILTERABLE_FIELDS = ("name", "done")


@dataclass(frozen=True)
class OperationService:
    """The methods on operations in the database."""

    database: Database

    def get(self, name: str) -> dict[str, Any]:
        """Return an operation by its full name. Raises ApiError NOT_FOUND."""
        with self.database.read() as transaction:
            operation = transaction.operations.get(name)
        if operation is None:
            raise _build_operation_not_found_error(name)
        return operation_json(operation)

    def list_operations(self, parent: str, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of the operations of a location or a resource, the newest first. Raises ApiError."""
        condition = list_request.parse_and_validate_filter(_FILTERABLE_FIELDS)
        before = list_request.decode_page_token_or_none(str)
        with self.database.read() as transaction:
            matching = (
                operation
                for operation in transaction.operations.under(parent)
                if (before is None or _get_page_position(operation) < before)
                and matches(condition, partial(_get_field_text_or_none, operation))
            )
            operations, token = list_request.take_page_and_next_token(matching, _get_page_position)
        return build_list_reply("operations", [operation_json(operation) for operation in operations], token)

    def accept_cancel_of_done_operation(self, name: str) -> dict[str, Any]:
        """Do nothing, as the operation is done. Raises ApiError NOT_FOUND."""
        self.get(name)
        return {}

    def delete(self, name: str) -> dict[str, Any]:
        """Delete an operation. Raises ApiError NOT_FOUND."""
        with self.database.write() as transaction:
            if not transaction.operations.delete(name):
                raise _build_operation_not_found_error(name)
        return {}


def _get_page_position(operation: Operation) -> str:
    return f"{operation.created:020} {operation.name}"


def _get_field_text_or_none(operation: Operation, field: str) -> str | None:
    return {"name": operation.name, "done": "true"}.get(field)


def _build_operation_not_found_error(name: str) -> ApiError:
    return ApiError("NOT_FOUND", f"The Operation {name} does not exist.")
