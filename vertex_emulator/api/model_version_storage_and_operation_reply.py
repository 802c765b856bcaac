"""The operation that stores a version of a model, as uploads and copies return it."""

from collections.abc import Mapping
from typing import Any, Literal

from vertex_emulator.database import Transaction
from vertex_emulator.errors import ApiError, ModelUploadRejected
from vertex_emulator.locations_and_ids import Location
from vertex_emulator.resource_json import serialize_operation
from vertex_emulator.scheduling.model_upload import store_model_version


def store_version_and_operation_and_build_reply(
    transaction: Transaction,
    method: Literal["UploadModel", "CopyModel"],
    location: Location,
    request: Mapping[str, Any],
    spec: Mapping[str, Any],
) -> dict[str, Any]:
    """Store a version as the request of a method says; return the method's done operation. Raises ApiError."""
    try:
        version = store_model_version(transaction, location, request, spec, None)
    except ModelUploadRejected as error:
        raise ApiError(error.status, str(error)) from error
    response = {
        "@type": f"type.googleapis.com/google.cloud.aiplatform.v1.{method}Response",
        "model": version.model_name,
        "modelVersionId": str(version.version),
    }
    return serialize_operation(
        transaction.operations.add_finished(version.model_name, f"{method}OperationMetadata", response)
    )
