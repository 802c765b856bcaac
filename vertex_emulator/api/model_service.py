"""The API's methods on models."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_snake

from vertex_api import types
from vertex_api.validation.job_validation import canonicalize_message_and_find_problems
from vertex_api.validation.rules import Violation, uploaded_model
from vertex_api.validation.shape_validation import FieldProblem
from vertex_emulator.api.field_masks import apply_read_mask, parse_read_mask
from vertex_emulator.api.list_request import ListRequest, build_list_reply
from vertex_emulator.api.model_lookup import (
    build_model_not_found_or_malformed_name_error,
    require_all_versions_and_named_one,
)
from vertex_emulator.api.model_version_storage_and_operation_reply import store_version_and_operation_and_build_reply
from vertex_emulator.database import Database
from vertex_emulator.database.model_statements import DEFAULT_ALIAS
from vertex_emulator.database.records import ModelVersion
from vertex_emulator.errors import (
    ApiError,
    InvalidBucketUri,
    build_invalid_argument_error,
)
from vertex_emulator.filters.expression_tree import matches
from vertex_emulator.gcs.object_name_listing import has_objects
from vertex_emulator.gcs.symlink_safe_bucket_files import BucketFileTree
from vertex_emulator.locations_and_ids import Location
from vertex_emulator.resource_json import serialize_model_version, serialize_operation

_FILTERABLE_FIELDS = ("model", "display_name", "base_model_name")
_SORTABLE_FIELDS = ("display_name", "create_time", "update_time")


@dataclass(frozen=True)
class ModelService:
    """The methods on models. A model is the list of its versions; its name without a version means the default one.

    `buckets_folder` is the folder of all buckets.
    """

    database: Database
    buckets_folder: Path

    def upload(self, location: Location, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store a model or a version of one; return a done operation. Raises ApiError with every problem."""
        request, problems = canonicalize_message_and_find_problems(
            types.UploadModelRequest, body, _find_upload_violations, output_only="drop"
        )
        if problems:
            raise build_invalid_argument_error(problems)
        if uri := request["model"].get("artifactUri"):
            self._raise_unless_artifact_folder_has_files(uri)
        with self.database.write_transaction() as transaction:
            return store_version_and_operation_and_build_reply(
                transaction, "UploadModel", location, request, request["model"]
            )

    def _raise_unless_artifact_folder_has_files(self, uri: str) -> None:
        try:
            is_empty = not has_objects(BucketFileTree(self.buckets_folder), uri)
        except InvalidBucketUri as error:
            raise build_invalid_argument_error([FieldProblem(("model", "artifactUri"), str(error))]) from error
        if is_empty:
            advice = "Please check that the directory exists and contains the files of the model."
            raise ApiError("NOT_FOUND", f'There are no files in directory "{uri}". {advice}')

    def get(self, location: Location, model: str) -> dict[str, Any]:
        """Return a model by `ID`, `ID@version` or `ID@alias`. Raises ApiError NOT_FOUND."""
        with self.database.read_transaction() as transaction:
            versions, version = require_all_versions_and_named_one(transaction, location, model)
        body = serialize_model_version(version, versions)
        # The SDK's ModelRegistry.update_version patches the model of this name, which must mean the version then.
        return {**body, "name": f"{version.model_name}@{version.version}"} if "@" in model else body

    def list_models(self, location: Location, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of models, each as its default version, the newest first without `orderBy`. Raises ApiError."""
        with self.database.read_transaction() as transaction:
            by_id: dict[str, list[ModelVersion]] = {}
            for version in transaction.models.list_versions(location):
                by_id.setdefault(version.id, []).append(version)
        rows = [
            _ModelRow(version, tuple(versions))
            for versions in by_id.values()
            for version in versions
            if DEFAULT_ALIAS in version.aliases
        ]
        return _filter_sort_and_build_reply(rows, list_request)

    def list_versions(self, location: Location, model: str, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of a model's versions, the newest first without `orderBy`. Raises ApiError."""
        with self.database.read_transaction() as transaction:
            versions = tuple(transaction.models.list_versions(location, model))
        if not versions:
            raise build_model_not_found_or_malformed_name_error(location, model)
        return _filter_sort_and_build_reply([_ModelRow(version, versions) for version in versions], list_request)

    def delete(self, location: Location, model: str) -> dict[str, Any]:
        """Delete a model with all versions, not its artifact; return a done operation. Raises ApiError NOT_FOUND."""
        with self.database.write_transaction() as transaction:
            versions = transaction.models.list_versions(location, model)
            if not versions:
                raise build_model_not_found_or_malformed_name_error(location, model)
            transaction.models.delete_model(location, model)
            operation = transaction.operations.add_finished(
                location.name_with_project_number, "DeleteOperationMetadata"
            )
        return serialize_operation(operation)


@dataclass(frozen=True)
class _ModelRow:
    """A version of a model in a list; `siblings` are all versions of the model."""

    version: ModelVersion
    siblings: tuple[ModelVersion, ...]

    def serialize(self) -> dict[str, Any]:
        return serialize_model_version(self.version, self.siblings)

    def get_field_text_or_none(self, field: str) -> str | None:
        """Return the text that a filter or an order compares."""
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
                return str(self.serialize()["createTime" if field == "create_time" else "updateTime"])
        return spec.get("labels", {}).get(field.removeprefix("labels."))  # type: ignore[no-any-return]


def _filter_sort_and_build_reply(rows: list[_ModelRow], list_request: ListRequest) -> dict[str, Any]:
    condition = list_request.parse_and_validate_filter(_FILTERABLE_FIELDS)
    mask = parse_read_mask(list_request.mask, types.Model)
    last = list_request.decode_page_token_or_none(int)
    rows = [row for row in rows if matches(condition, row.get_field_text_or_none)]
    rows.sort(key=lambda row: row.version.sequence, reverse=True)
    for field, is_descending in reversed(_parse_order_by_fields(list_request.order)):
        rows.sort(key=lambda row: row.get_field_text_or_none(field) or "", reverse=is_descending)
    if last is not None:
        sequences = [row.version.sequence for row in rows]
        if last not in sequences:
            message = "page_token: the last model of the previous page was deleted; list again from the start"
            raise ApiError("INVALID_ARGUMENT", message, [("page_token", "outdated")])
        rows = rows[sequences.index(last) + 1 :]
    page, token = list_request.take_page_and_next_token(rows, lambda row: row.version.sequence)
    return build_list_reply("models", [apply_read_mask(row.serialize(), mask) for row in page], token)


def _parse_order_by_fields(order_by: str) -> list[tuple[str, bool]]:
    """Return the fields of `orderBy` in snake_case, each with whether it descends. Raises ApiError."""
    order = []
    for part in filter(None, map(str.strip, order_by.split(","))):
        name, _, direction = part.partition(" ")
        if to_snake(name) not in _SORTABLE_FIELDS or direction.strip() not in ("", "asc", "desc"):
            message = f'order_by: "{part}" must be one of {", ".join(_SORTABLE_FIELDS)}, with or without desc'
            raise ApiError("INVALID_ARGUMENT", message, [("order_by", f'"{part}" is unknown')])
        order.append((to_snake(name), direction.strip() == "desc"))
    return order


def _find_upload_violations(request: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield what a canonical UploadModelRequest violates (discovery document, UploadModelRequest)."""
    yield from uploaded_model.find_model_violations(request["model"], ("model",))
    yield from uploaded_model.find_model_id_violations(request)
