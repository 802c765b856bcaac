"""The API's methods on models and their versions; the export has a module of its own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vertex_api import types
from vertex_api.validation.check import validate_message
from vertex_api.validation.formats import Violation
from vertex_api.validation.model import check_alias_changes, check_model, check_model_id
from vertex_api.validation.shape import FieldProblem
from vertex_emulator.api.field_masks import parse_update_mask
from vertex_emulator.api.list_request import ListRequest
from vertex_emulator.api.model_listing import build_model_list_reply, build_version_list_reply
from vertex_emulator.api.model_lookup import (
    build_model_not_found_or_malformed_name_error,
    find_version_or_none,
    require_all_versions_and_named_one,
)
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.models import DEFAULT_ALIAS
from vertex_emulator.database.records import ModelVersion
from vertex_emulator.errors import ApiError, InvalidBucketUri, ModelUploadRejected
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.http.invalid_request_errors import build_invalid_argument_error
from vertex_emulator.names import Location, parse_model
from vertex_emulator.resources import model_json, operation_json

# UpdateModelRequest's documentation: what belongs to the model, to a version, and to both.
_MODEL_FIELDS = ("displayName", "description", "labels")
_VERSION_FIELDS = ("versionDescription", "labels")


@dataclass(frozen=True)
class ModelService:
    """The methods on models. A model is the list of its versions; its name without a version means the default one.

    `buckets_folder` is the folder of all buckets.
    """

    database: Database
    buckets_folder: Path

    def upload(self, location: Location, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store a model or a version of one; return a done operation. Raises ApiError with every problem."""
        request, problems = validate_message(
            types.UploadModelRequest, body, _find_upload_violations, output_only="drop"
        )
        if problems:
            raise build_invalid_argument_error(problems)
        if uri := request["model"].get("artifactUri"):
            self._raise_unless_artifact_folder_has_files(uri)
        with self.database.write() as transaction:
            return _store_version_and_operation_and_build_reply(
                transaction, "UploadModel", location, request, request["model"]
            )

    def _raise_unless_artifact_folder_has_files(self, uri: str) -> None:
        try:
            is_empty = not BucketTree(self.buckets_folder).has_objects(uri)
        except InvalidBucketUri as error:
            raise build_invalid_argument_error([FieldProblem(("model", "artifactUri"), str(error))]) from error
        if is_empty:
            advice = "Please check that the directory exists and contains the files of the model."
            raise ApiError("NOT_FOUND", f'There are no files in directory "{uri}". {advice}')

    def copy(self, location: Location, body: Mapping[str, Any]) -> dict[str, Any]:
        """Copy a version of a model of the project to a location; return a done operation. Raises ApiError."""
        request, problems = validate_message(types.CopyModelRequest, body, check_model_id)
        if problems:
            raise build_invalid_argument_error(problems)
        parsed = parse_model(request["sourceModel"])
        if parsed is None or parsed[0].project_number != location.project_number:
            message = f'source_model: "{request["sourceModel"]}" is no model of this project'
            raise ApiError("INVALID_ARGUMENT", message, [("source_model", message)])
        with self.database.write() as transaction:
            _, source = require_all_versions_and_named_one(transaction, *parsed)
            spec = {**source.spec, "originalModelInfo": {"model": f"{source.model_name}@{source.version}"}}
            if "encryptionSpec" in request:
                spec["encryptionSpec"] = request["encryptionSpec"]
            return _store_version_and_operation_and_build_reply(transaction, "CopyModel", location, request, spec)

    def get(self, location: Location, model: str) -> dict[str, Any]:
        """Return a model by `ID`, `ID@version` or `ID@alias`. Raises ApiError NOT_FOUND."""
        with self.database.read() as transaction:
            versions, version = require_all_versions_and_named_one(transaction, location, model)
        body = model_json(version, versions)
        # The SDK's ModelRegistry.update_version patches the model of this name, which must mean the version then.
        return {**body, "name": f"{version.model_name}@{version.version}"} if "@" in model else body

    def list_models(self, location: Location, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of models, each as its default version, the newest first without `orderBy`. Raises ApiError."""
        with self.database.read() as transaction:
            versions = transaction.models.versions(location)
        return build_model_list_reply(versions, list_request)

    def list_versions(self, location: Location, model: str, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of a model's versions, the newest first without `orderBy`. Raises ApiError."""
        with self.database.read() as transaction:
            versions = transaction.models.versions(location, model)
        if not versions:
            raise build_model_not_found_or_malformed_name_error(location, model)
        return build_version_list_reply(versions, list_request)

    def delete(self, location: Location, model: str) -> dict[str, Any]:
        """Delete a model with all versions, not its artifact; return a done operation. Raises ApiError NOT_FOUND."""
        with self.database.write() as transaction:
            versions = transaction.models.versions(location, model)
            if not versions:
                raise build_model_not_found_or_malformed_name_error(location, model)
            transaction.models.delete(location, model)
            operation = transaction.operations.add(location.name, "DeleteOperationMetadata")
        return operation_json(operation)

    def patch(self, location: Location, model: str, body: Mapping[str, Any], update_mask: str) -> dict[str, Any]:
        """Change fields of a model, or of one version of it with `ID@version`, and return it. Raises ApiError."""
        sent, problems = validate_message(types.Model, body, lambda _: (), output_only="drop")
        # Fields that the mask leaves out may be missing.
        problems = [each for each in problems if each.path != ("displayName",)]
        if problems:
            raise build_invalid_argument_error(problems)
        fields = parse_update_mask(update_mask, types.Model)
        with self.database.write() as transaction:
            versions, version = require_all_versions_and_named_one(transaction, location, model.removesuffix("@-"))
            is_of_version = "@" in model.removesuffix("@-")
            _raise_unless_fields_are_updatable(fields, is_of_version)
            _raise_if_given_etag_is_outdated(body.get("etag"), versions)
            changes = {field: sent.get(field) for field in fields}
            for changed in [version] if is_of_version else versions:
                spec = {key: value for key, value in {**changed.spec, **changes}.items() if value is not None}
                if violations := list(check_model(spec)):
                    raise build_invalid_argument_error([FieldProblem(*violation) for violation in violations])
                transaction.models.set_spec(changed, spec)
            return _reload_and_serialize(transaction, version)

    def merge_version_aliases(self, location: Location, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add aliases to a version, and remove those with "-" before them; return the version. Raises ApiError."""
        request, problems = validate_message(types.MergeVersionAliasesRequest, body, check_alias_changes)
        if problems:
            raise build_invalid_argument_error(problems)
        _raise_unless_name_has_version(model)
        removed = {alias[1:] for alias in request["versionAliases"] if alias.startswith("-")}
        added = [alias for alias in request["versionAliases"] if not alias.startswith("-")]
        if DEFAULT_ALIAS in removed:
            message = f'version_aliases: "{DEFAULT_ALIAS}" cannot be removed; add it to another version instead.'
            raise ApiError("FAILED_PRECONDITION", message, [("version_aliases", message)])
        with self.database.write() as transaction:
            _, version = require_all_versions_and_named_one(transaction, location, model)
            aliases = [alias for alias in dict.fromkeys([*version.aliases, *added]) if alias not in removed]
            transaction.models.set_aliases(version, aliases)
            return _reload_and_serialize(transaction, version)

    def delete_version(self, location: Location, model: str) -> dict[str, Any]:
        """Delete a version that is neither the only nor the default one; return a done operation. Raises ApiError."""
        _raise_unless_name_has_version(model)
        with self.database.write() as transaction:
            versions, version = require_all_versions_and_named_one(transaction, location, model)
            name = f"{version.model_name}@{version.version}"
            if len(versions) == 1:
                raise ApiError("FAILED_PRECONDITION", f"{name} is the model's only version: delete the model.")
            if DEFAULT_ALIAS in version.aliases:
                message = f'{name} is the default version: give the alias "{DEFAULT_ALIAS}" to another one first.'
                raise ApiError("FAILED_PRECONDITION", message)
            transaction.models.delete_version(version)
            operation = transaction.operations.add(location.name, "DeleteOperationMetadata")
        return operation_json(operation)


def _find_upload_violations(request: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield what a canonical UploadModelRequest violates (discovery document, UploadModelRequest)."""
    yield from check_model(request["model"], ("model",))
    yield from check_model_id(request)


def _store_version_and_operation_and_build_reply(
    transaction: Transaction,
    method: Literal["UploadModel", "CopyModel"],
    location: Location,
    request: Mapping[str, Any],
    spec: Mapping[str, Any],
) -> dict[str, Any]:
    """Store a version as the request of a method says; return the method's done operation. Raises ApiError."""
    try:
        version = transaction.models.upload(location, request, spec, None)
    except ModelUploadRejected as error:
        raise ApiError(error.status, str(error)) from error
    response = {
        "@type": f"type.googleapis.com/google.cloud.aiplatform.v1.{method}Response",
        "model": version.model_name,
        "modelVersionId": str(version.version),
    }
    return operation_json(transaction.operations.add(version.model_name, f"{method}OperationMetadata", response))


def _raise_unless_fields_are_updatable(fields: list[str], is_of_version: bool) -> None:
    allowed = _VERSION_FIELDS if is_of_version else _MODEL_FIELDS
    for field in fields:
        if field in allowed:
            continue
        if field in (*_MODEL_FIELDS, *_VERSION_FIELDS):
            kind, name = ("a model", "models/ID") if is_of_version else ("a version", "models/ID@VERSION")
            message = f"update_mask: {field} is a field of {kind}; update {name}"
            raise ApiError("FAILED_PRECONDITION", message, [("update_mask", message)])
        known = ", ".join(dict.fromkeys((*_MODEL_FIELDS, *_VERSION_FIELDS)))
        message = f"update_mask: {field} cannot be changed; only {known} can"
        raise ApiError("INVALID_ARGUMENT", message, [("update_mask", message)])


def _raise_if_given_etag_is_outdated(etag: object, versions: list[ModelVersion]) -> None:
    known = [model_json(version, versions)["etag"] for version in versions]
    if etag and etag not in known:
        raise ApiError("FAILED_PRECONDITION", "etag: the model has changed since it was read; read it again.")


def _raise_unless_name_has_version(model: str) -> None:
    if "@" not in model:
        message = f'name: "{model}" must name a version, as models/ID@VERSION'
        raise ApiError("INVALID_ARGUMENT", message, [("name", message)])


def _reload_and_serialize(transaction: Transaction, version: ModelVersion) -> dict[str, Any]:
    versions = transaction.models.versions(version.location, version.id)
    current = find_version_or_none(versions, str(version.version))
    assert current is not None
    return model_json(current, versions)
