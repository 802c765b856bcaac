"""The API's methods that change a model: patch, aliases, deletion of a version."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api import types
from vertex_api.validation.job_validation import canonicalize_message_and_find_problems
from vertex_api.validation.rules import uploaded_model
from vertex_api.validation.shape_validation import FieldProblem
from vertex_emulator.api.field_masks import parse_update_mask
from vertex_emulator.api.model_lookup import find_version_or_none, require_all_versions_and_named_one
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.model_statements import DEFAULT_ALIAS
from vertex_emulator.database.records import ModelVersion
from vertex_emulator.errors import ApiError, build_invalid_argument_error
from vertex_emulator.locations_and_ids import Location
from vertex_emulator.resource_json import serialize_model_version, serialize_operation

# UpdateModelRequest's documentation: what belongs to the model, to a version, and to both.
_MODEL_FIELDS = ("displayName", "description", "labels")
_VERSION_FIELDS = ("versionDescription", "labels")


@dataclass(frozen=True)
class ModelUpdateAndVersionDeletionService:
    """The methods that change models in the database, or delete versions of them."""

    database: Database

    def patch(self, location: Location, model: str, body: Mapping[str, Any], update_mask: str) -> dict[str, Any]:
        """Change fields of a model, or of one version of it with `ID@version`, and return it. Raises ApiError."""
        sent, problems = canonicalize_message_and_find_problems(types.Model, body, lambda _: (), output_only="drop")
        # Fields that the mask leaves out may be missing.
        problems = [each for each in problems if each.path != ("displayName",)]
        if problems:
            raise build_invalid_argument_error(problems)
        fields = parse_update_mask(update_mask, types.Model)
        with self.database.write_transaction() as transaction:
            versions, version = require_all_versions_and_named_one(transaction, location, model.removesuffix("@-"))
            is_of_version = "@" in model.removesuffix("@-")
            _raise_unless_fields_are_updatable(fields, is_of_version)
            _raise_if_given_etag_is_outdated(body.get("etag"), versions)
            changes = {field: sent.get(field) for field in fields}
            for changed in [version] if is_of_version else versions:
                spec = {key: value for key, value in {**changed.spec, **changes}.items() if value is not None}
                if violations := list(uploaded_model.find_model_violations(spec)):
                    raise build_invalid_argument_error([FieldProblem(*violation) for violation in violations])
                transaction.models.set_spec(changed, spec)
            return _reload_and_serialize(transaction, version)

    def merge_version_aliases(self, location: Location, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add aliases to a version, and remove those with "-" before them; return the version. Raises ApiError."""
        request, problems = canonicalize_message_and_find_problems(
            types.MergeVersionAliasesRequest, body, uploaded_model.find_version_alias_change_violations
        )
        if problems:
            raise build_invalid_argument_error(problems)
        _raise_unless_name_has_version(model)
        removed = {alias[1:] for alias in request["versionAliases"] if alias.startswith("-")}
        added = [alias for alias in request["versionAliases"] if not alias.startswith("-")]
        if DEFAULT_ALIAS in removed:
            message = f'version_aliases: "{DEFAULT_ALIAS}" cannot be removed; add it to another version instead.'
            raise ApiError("FAILED_PRECONDITION", message, [("version_aliases", message)])
        with self.database.write_transaction() as transaction:
            _, version = require_all_versions_and_named_one(transaction, location, model)
            aliases = [alias for alias in dict.fromkeys([*version.aliases, *added]) if alias not in removed]
            transaction.models.set_aliases_and_remove_from_siblings(version, aliases)
            return _reload_and_serialize(transaction, version)

    def delete_version(self, location: Location, model: str) -> dict[str, Any]:
        """Delete a version that is neither the only nor the default one; return a done operation. Raises ApiError."""
        _raise_unless_name_has_version(model)
        with self.database.write_transaction() as transaction:
            versions, version = require_all_versions_and_named_one(transaction, location, model)
            name = f"{version.model_name}@{version.version}"
            if len(versions) == 1:
                raise ApiError("FAILED_PRECONDITION", f"{name} is the model's only version: delete the model.")
            if DEFAULT_ALIAS in version.aliases:
                message = f'{name} is the default version: give the alias "{DEFAULT_ALIAS}" to another one first.'
                raise ApiError("FAILED_PRECONDITION", message)
            transaction.models.delete_version(version)
            operation = transaction.operations.add_finished(
                location.name_with_project_number, "DeleteOperationMetadata"
            )
        return serialize_operation(operation)


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
    known = [serialize_model_version(version, versions)["etag"] for version in versions]
    if etag and etag not in known:
        raise ApiError("FAILED_PRECONDITION", "etag: the model has changed since it was read; read it again.")


def _raise_unless_name_has_version(model: str) -> None:
    if "@" not in model:
        message = f'name: "{model}" must name a version, as models/ID@VERSION'
        raise ApiError("INVALID_ARGUMENT", message, [("name", message)])


def _reload_and_serialize(transaction: Transaction, version: ModelVersion) -> dict[str, Any]:
    versions = transaction.models.list_versions(version.location, version.id)
    current = find_version_or_none(versions, str(version.version))
    assert current is not None
    return serialize_model_version(current, versions)
