"""The upload of a model: the choice of its id, and its new version."""

from collections.abc import Mapping
from typing import Any

from vertex_emulator.database import Transaction
from vertex_emulator.database.records import ModelVersion
from vertex_emulator.errors import ModelUploadRejected
from vertex_emulator.locations_and_ids import Location, generate_id, parse_model_location_and_id_or_none


def require_or_generate_model_id(transaction: Transaction, location: Location, request: Mapping[str, Any]) -> str:
    """Choose the id of an uploaded model: that of `parentModel` (a resource name), `modelId`, or a new one.

    `request` is an UploadModelRequest or a TrainingPipeline. Raises ModelUploadRejected: NOT_FOUND if the parent does
    not exist, ALREADY_EXISTS if `modelId` is taken.
    """
    model_id, parent_model = request.get("modelId", ""), request.get("parentModel", "")
    location_name = location.name_with_project_number
    if parent_model:
        parsed = parse_model_location_and_id_or_none(parent_model)
        if parsed is None or parsed[0].name_with_project_number != location_name:
            raise ModelUploadRejected("NOT_FOUND", f'The parent model "{parent_model}" is no model of {location_name}.')
        parent_id = parsed[1].partition("@")[0]
        if not transaction.models.list_versions(location, parent_id):
            raise ModelUploadRejected("NOT_FOUND", f'The Model "{location_name}/models/{parent_id}" does not exist.')
        return parent_id
    if model_id and transaction.models.list_versions(location, model_id):
        raise ModelUploadRejected("ALREADY_EXISTS", f"The Model {location_name}/models/{model_id} already exists.")
    return model_id or generate_id()


def store_model_version(
    transaction: Transaction,
    location: Location,
    request: Mapping[str, Any],
    model: Mapping[str, Any],
    pipeline_name: str | None,
) -> ModelVersion:
    """Store a canonical Model as a new version; `pipeline_name` is the resource name of the training pipeline, if any.

    `request` is as in `require_or_generate_model_id`. Raises ModelUploadRejected.
    """
    fields = {name: value for name, value in model.items() if name not in ("name", "versionAliases", "etag")}
    model_id = require_or_generate_model_id(transaction, location, request)
    return transaction.models.add_version_and_move_aliases(
        model_id, location, fields, model.get("versionAliases", []), pipeline_name
    )
