"""Lookup of a model by name: all its versions, and the one that the name means."""

import re
from collections.abc import Iterable

from vertex_emulator.database import Transaction
from vertex_emulator.database.models import DEFAULT_ALIAS
from vertex_emulator.database.records import ModelVersion
from vertex_emulator.errors import ApiError
from vertex_emulator.http.invalid_request_errors import build_malformed_name_error, build_not_found_error
from vertex_emulator.names import Location

_ID_AND_ALIAS = re.compile(r"[a-z0-9_][a-z0-9_-]{0,62}(@[a-zA-Z0-9-]{1,128})?")


def require_all_versions_and_named_one(
    transaction: Transaction, location: Location, model: str
) -> tuple[list[ModelVersion], ModelVersion]:
    """Return all versions of a model, and that of `ID`, `ID@version` or `ID@alias`. Raises ApiError NOT_FOUND."""
    model_id, _, alias = model.partition("@")
    versions = transaction.models.versions(location, model_id)
    version = find_version_or_none(versions, alias or DEFAULT_ALIAS)
    if version is None:
        raise build_model_not_found_or_malformed_name_error(location, model)
    return versions, version


def find_version_or_none(versions: Iterable[ModelVersion], number_or_alias: str) -> ModelVersion | None:
    """Return the version with a number or an alias."""
    return next((each for each in versions if number_or_alias in (str(each.version), *each.aliases)), None)


def build_model_not_found_or_malformed_name_error(location: Location, model: str) -> ApiError:
    """Return the error for a model that does not exist, or whose name no model can have."""
    if not _ID_AND_ALIAS.fullmatch(model):
        return build_malformed_name_error("Model")
    return build_not_found_error("Model", f"{location.name}/models/{model}")
