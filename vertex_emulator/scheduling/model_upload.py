"""Uploading a model: under which name it goes, and what stands in its way."""

from collections.abc import Mapping
from typing import Any

from vertex_emulator.database import Transaction
from vertex_emulator.database.records import ModelVersion
from vertex_emulator.errors import ModelUploadRejected
from vertex_emulator.names import Location, new_id, parse_path


def destination(transaction: Transaction, location: Location, model_id: str, parent_model: str) -> str:
    """The id under which a model is uploaded: `parent_model`'s (a resource name), `model_id`, or a new one.

    Raises UploadRefused: NOT_FOUND for a parent that is not there, ALREADY_EXISTS for an id that is taken.
    """
    if parent_model:
        path = parse_path(parent_model)
        if path is None or path.collection != "models" or path.id is None or path.location.name != location.name:
            raise ModelUploadRejected("NOT_FOUND", f'The parent model "{parent_model}" is no model of {location.name}.')
        found = path.id.partition("@")[0]
        if not transaction.models.list_versions(location, found):
            raise ModelUploadRejected("NOT_FOUND", f"The Model {location.name}/models/{found} does not exist.")
        return found
    if model_id and transaction.models.list_versions(location, model_id):
        raise ModelUploadRejected("ALREADY_EXISTS", f"The Model {location.name}/models/{model_id} already exists.")
    return model_id or new_id()


def upload(
    transaction: Transaction,
    location: Location,
    spec: Mapping[str, Any],
    model_id: str = "",
    parent_model: str = "",
    pipeline: str | None = None,
) -> ModelVersion:
    """Upload a canonical Model; `pipeline` is the name of the one that trained it. Raises UploadRefused."""
    aliases = spec.get("versionAliases", [])
    own = {name: value for name, value in spec.items() if name not in ("name", "versionAliases", "etag")}
    target = destination(transaction, location, model_id, parent_model)
    return transaction.models.add(target, location, own, aliases, pipeline)
