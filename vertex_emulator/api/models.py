"""The API's methods on models, without HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_snake

from vertex_api import types
from vertex_api.validation.messages import validate_message
from vertex_api.validation.rules import Violation, model
from vertex_emulator import filters
from vertex_emulator.api.jobs import EMPTY
from vertex_emulator.api.listing import Listing, answer
from vertex_emulator.api.masks import masked, read_mask
from vertex_emulator.database import Database
from vertex_emulator.database.models import DEFAULT_ALIAS
from vertex_emulator.database.records import ModelVersion
from vertex_emulator.errors import ApiError, ModelUploadRejected, invalid_argument_error
from vertex_emulator.names import Location, new_id
from vertex_emulator.resource_json import serialize_model, serialize_operation
from vertex_emulator.scheduling.model_upload import upload_model

_FILTERABLE = ("model", "display_name", "base_model_name")
_SORTABLE = ("display_name", "create_time", "update_time")


@dataclass(frozen=True)
class Models:
    """Methods on the database. A model is the list of its versions; by its bare name it stands for the default one."""

    database: Database

    def upload(self, location: Location, body: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a model, or a version of one. A done operation. Raises ApiError with every problem of the request."""
        request, problems = validate_message(types.UploadModelRequest, body, _find_violations, output_only="drop")
        if problems:
            raise invalid_argument_error(problems)
        with self.database.write_transaction() as transaction:
            try:
                version = upload_model(
                    transaction,
                    location,
                    request["model"],
                    request.get("modelId", ""),
                    request.get("parentModel", ""),
                )
            except ModelUploadRejected as error:
                raise ApiError(error.status, str(error)) from error
            response = {
                "@type": "type.googleapis.com/google.cloud.aiplatform.v1.UploadModelResponse",
                "model": version.model_name,
                "modelVersionId": str(version.version),
            }
            name = f"{version.model_name}/operations/{new_id()}"
            return serialize_operation(transaction.operations.add(name, "UploadModelOperationMetadata", response))

    def get(self, location: Location, model: str) -> dict[str, Any]:
        """A model by `ID`, `ID@version` or `ID@alias`. Raises ApiError NOT_FOUND."""
        model_id, _, wanted = model.partition("@")
        with self.database.read_transaction() as transaction:
            versions = transaction.models.list_versions(location, model_id)
        found = [each for each in versions if (wanted or DEFAULT_ALIAS) in (str(each.version), *each.aliases)]
        if not found:
            raise _unknown(location, model)
        return serialize_model(found[0], versions)

    def page(self, location: Location, listing: Listing) -> dict[str, Any]:
        """A page of models, each by its default version, the newest first unless `orderBy` says otherwise.

        Raises ApiError.
        """
        with self.database.read_transaction() as transaction:
            by_id: dict[str, list[ModelVersion]] = {}
            for version in transaction.models.list_all_versions(location):
                by_id.setdefault(version.id, []).append(version)
        listed = [
            _Listed(version, tuple(versions))
            for versions in by_id.values()
            for version in versions
            if DEFAULT_ALIAS in version.aliases
        ]
        return _page(listed, listing)

    def versions(self, location: Location, model_id: str, listing: Listing) -> dict[str, Any]:
        """A page of a model's versions, the newest first unless `orderBy` says otherwise. Raises ApiError."""
        with self.database.read_transaction() as transaction:
            versions = tuple(transaction.models.list_versions(location, model_id))
        if not versions:
            raise _unknown(location, model_id)
        return _page([_Listed(version, versions) for version in versions], listing)

    def delete(self, location: Location, model_id: str) -> dict[str, Any]:
        """Forget a model with all its versions; its artifact stays. A done operation. Raises ApiError NOT_FOUND."""
        with self.database.write_transaction() as transaction:
            versions = transaction.models.list_versions(location, model_id)
            if not versions:
                raise _unknown(location, model_id)
            transaction.models.delete(location, model_id)
            name = f"{versions[0].model_name}/operations/{new_id()}"
            return serialize_operation(transaction.operations.add(name, "DeleteOperationMetadata", EMPTY))


@dataclass(frozen=True)
class _Listed:
    """One entry of a list: a version, among all of its model's."""

    version: ModelVersion
    siblings: tuple[ModelVersion, ...]

    def json(self) -> dict[str, Any]:
        return serialize_model(self.version, self.siblings)

    def field(self, field: str) -> str | None:
        """What filters and orders compare."""
        spec = self.version.spec
        match field:
            case "model":
                return self.version.id
            case "display_name":
                return str(spec["displayName"])
            case "base_model_name":
                source = spec.get("baseModelSource", {}).get("modelGardenSource", {}).get("publicModelName")
                return source.rpartition("/")[2] if source else None
            case "create_time" | "update_time":
                return str(self.json()["createTime" if field == "create_time" else "updateTime"])
        return spec.get("labels", {}).get(field.removeprefix("labels."))  # type: ignore[no-any-return]


def _page(listed: list[_Listed], listing: Listing) -> dict[str, Any]:
    condition = listing.condition(_FILTERABLE)
    mask = read_mask(listing.mask, types.Model)
    last = listing.after(int)
    found = [entry for entry in listed if filters.matches(condition, entry.field)]
    found.sort(key=lambda entry: entry.version.sequence, reverse=True)
    for field, descending in reversed(_order(listing.order)):
        found.sort(key=lambda entry: entry.field(field) or "", reverse=descending)
    if last is not None:
        places = [entry.version.sequence for entry in found]
        if last not in places:
            message = "page_token: the model that its page ended with is gone; list again from the start"
            raise ApiError("INVALID_ARGUMENT", message, [("page_token", "outdated")])
        found = found[places.index(last) + 1 :]
    entries, token = listing.page(found, lambda entry: entry.version.sequence)
    return answer("models", [masked(entry.json(), mask) for entry in entries], token)


def _order(text: str) -> list[tuple[str, bool]]:
    """Fields in snake_case, the most important first, each with whether it descends. Raises ApiError."""
    found = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, direction = part.partition(" ")
        if to_snake(name) not in _SORTABLE or direction.strip() not in ("", "asc", "desc"):
            message = f'order_by: "{part}" must be one of {", ".join(_SORTABLE)}, with or without desc'
            raise ApiError("INVALID_ARGUMENT", message, [("order_by", f'"{part}" is unknown')])
        found.append((to_snake(name), direction.strip() == "desc"))
    return found


def _find_violations(request: Mapping[str, Any]) -> Iterator[Violation]:
    """Discovery document, UploadModelRequest."""
    yield from model.find_model_violations(request["model"], ("model",))
    yield from model.find_model_id_violations(request)


def _unknown(location: Location, model: str) -> ApiError:
    return ApiError("NOT_FOUND", f"The Model {location.name}/models/{model} does not exist.")
