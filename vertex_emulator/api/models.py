"""The API's methods on models, their versions and their files, and on the operations that methods return."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vertex_api import types
from vertex_api.validation.check import validate_message
from vertex_api.validation.formats import STORAGE_URI, Violation
from vertex_api.validation.model import check_alias_changes, check_model, check_model_id
from vertex_api.validation.shape import FieldProblem
from vertex_emulator.api import lists
from vertex_emulator.api.lists import ListRequest, Mask
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.models import DEFAULT_ALIAS
from vertex_emulator.database.records import ModelVersion, Operation
from vertex_emulator.errors import ApiError, InvalidBucketUri, ModelUploadRejected
from vertex_emulator.gcs.files import BucketTree, FolderCopier
from vertex_emulator.http.responses import invalid_argument, malformed_name, not_found
from vertex_emulator.names import Location, parse_model
from vertex_emulator.representation import EXPORT_FORMAT, model_json, operation_json
from vertex_emulator.times import format_time, now_ns

_ID_AND_ALIAS = re.compile(r"[a-z0-9_][a-z0-9_-]{0,62}(@[a-zA-Z0-9-]{1,128})?")
# UpdateModelRequest's documentation: what belongs to the model, to a version, and to both.
_MODEL_UPDATES = ("displayName", "description", "labels")
_VERSION_UPDATES = ("versionDescription", "labels")


@dataclass(frozen=True)
class ModelService:
    """The methods on models. A model is the list of its versions; its name without a version means the default one."""

    database: Database
    data: DataFolder

    def upload(self, location: Location, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store a model or a version of one; return a done operation. Raises ApiError with every problem."""
        request, problems = validate_message(types.UploadModelRequest, body, _upload_violations, output_only="drop")
        if problems:
            raise invalid_argument(problems)
        if uri := request["model"].get("artifactUri"):
            self._check_artifact(uri)
        with self.database.write() as transaction:
            return _store(transaction, "UploadModel", location, request, request["model"])

    def _check_artifact(self, uri: str) -> None:
        try:
            is_empty = not BucketTree(self.data.buckets).has_objects(uri)
        except InvalidBucketUri as error:
            raise invalid_argument([FieldProblem(("model", "artifactUri"), str(error))]) from error
        if is_empty:
            advice = "Please check that the directory exists and contains the files of the model."
            raise ApiError("NOT_FOUND", f'There are no files in directory "{uri}". {advice}')

    def copy(self, location: Location, body: Mapping[str, Any]) -> dict[str, Any]:
        """Copy a version of a model of the project to a location; return a done operation. Raises ApiError."""
        request, problems = validate_message(types.CopyModelRequest, body, check_model_id)
        if problems:
            raise invalid_argument(problems)
        parsed = parse_model(request["sourceModel"])
        if parsed is None or parsed[0].project_number != location.project_number:
            message = f'source_model: "{request["sourceModel"]}" is no model of this project'
            raise ApiError("INVALID_ARGUMENT", message, [("source_model", message)])
        with self.database.write() as transaction:
            _, source = _require(transaction, *parsed)
            spec = {**source.spec, "originalModelInfo": {"model": f"{source.model_name}@{source.version}"}}
            if "encryptionSpec" in request:
                spec["encryptionSpec"] = request["encryptionSpec"]
            return _store(transaction, "CopyModel", location, request, spec)

    def get(self, location: Location, model: str) -> dict[str, Any]:
        """Return a model by `ID`, `ID@version` or `ID@alias`. Raises ApiError NOT_FOUND."""
        with self.database.read() as transaction:
            versions, version = _require(transaction, location, model)
        body = model_json(version, versions)
        # The SDK's ModelRegistry.update_version patches the model of this name, which must mean the version then.
        return {**body, "name": f"{version.model_name}@{version.version}"} if "@" in model else body

    def list(self, location: Location, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of models, each as its default version, the newest first without `orderBy`. Raises ApiError."""
        by_id: dict[str, list[ModelVersion]] = {}
        with self.database.read() as transaction:
            for version in transaction.models.versions(location):
                by_id.setdefault(version.id, []).append(version)
        rows = [
            _Row(version, versions)
            for versions in by_id.values()
            for version in versions
            if DEFAULT_ALIAS in version.aliases
        ]
        return _page(rows, list_request)

    def list_versions(self, location: Location, model: str, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of a model's versions, the oldest first without `orderBy`. Raises ApiError."""
        with self.database.read() as transaction:
            versions = _require_versions(transaction, location, model)
        rows = [_Row(version, versions) for version in versions]
        return _page(rows, list_request, newest_first=False)

    def delete(self, location: Location, model: str) -> dict[str, Any]:
        """Delete a model with all versions, not its artifact; return a done operation. Raises ApiError NOT_FOUND."""
        with self.database.write() as transaction:
            _require_versions(transaction, location, model)
            transaction.models.delete(location, model)
            operation = transaction.operations.add(location.name, "DeleteOperationMetadata")
        return operation_json(operation)

    def patch(self, location: Location, model: str, body: Mapping[str, Any], update_mask: str) -> dict[str, Any]:
        """Change fields of a model, or of one version of it with `ID@version`, and return it. Raises ApiError."""
        sent, problems = validate_message(types.Model, body, lambda _: (), output_only="drop")
        # Fields that the mask leaves out may be missing.
        problems = [each for each in problems if each.path != ("displayName",)]
        if problems:
            raise invalid_argument(problems)
        fields = lists.update_fields(update_mask, types.Model)
        with self.database.write() as transaction:
            versions, version = _require(transaction, location, model.removesuffix("@-"))
            is_of_version = "@" in model.removesuffix("@-")
            _check_updatable(fields, is_of_version)
            known = [model_json(each, versions)["etag"] for each in versions]
            if body.get("etag") and body["etag"] not in known:
                raise ApiError("FAILED_PRECONDITION", "etag: the model has changed since it was read; read it again.")
            changes = {field: sent.get(field) for field in fields}
            for changed in [version] if is_of_version else versions:
                spec = {key: value for key, value in {**changed.spec, **changes}.items() if value is not None}
                if violations := list(check_model(spec)):
                    raise invalid_argument([FieldProblem(*violation) for violation in violations])
                transaction.models.set_spec(changed, spec)
            return _reload(transaction, version)

    def merge_version_aliases(self, location: Location, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add aliases to a version, and remove those with "-" before them; return the version. Raises ApiError."""
        request, problems = validate_message(types.MergeVersionAliasesRequest, body, check_alias_changes)
        if problems:
            raise invalid_argument(problems)
        _check_names_version(model)
        removed = {alias[1:] for alias in request["versionAliases"] if alias.startswith("-")}
        added = [alias for alias in request["versionAliases"] if not alias.startswith("-")]
        if DEFAULT_ALIAS in removed:
            message = f'version_aliases: "{DEFAULT_ALIAS}" cannot be removed; add it to another version instead.'
            raise ApiError("FAILED_PRECONDITION", message, [("version_aliases", message)])
        with self.database.write() as transaction:
            _, version = _require(transaction, location, model)
            aliases = [alias for alias in dict.fromkeys([*version.aliases, *added]) if alias not in removed]
            transaction.models.set_aliases(version, aliases)
            return _reload(transaction, version)

    def delete_version(self, location: Location, model: str) -> dict[str, Any]:
        """Delete a version that is neither the only nor the default one; return a done operation. Raises ApiError."""
        _check_names_version(model)
        with self.database.write() as transaction:
            versions, version = _require(transaction, location, model)
            name = f"{version.model_name}@{version.version}"
            if len(versions) == 1:
                raise ApiError("FAILED_PRECONDITION", f"{name} is the model's only version: delete the model.")
            if DEFAULT_ALIAS in version.aliases:
                message = f'{name} is the default version: give the alias "{DEFAULT_ALIAS}" to another one first.'
                raise ApiError("FAILED_PRECONDITION", message)
            transaction.models.delete_version(version)
            operation = transaction.operations.add(location.name, "DeleteOperationMetadata")
        return operation_json(operation)

    def export(self, location: Location, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Copy the files of a model into a new folder of a bucket; return a done operation. Raises ApiError."""
        request, problems = validate_message(types.ExportModelRequest, body, _export_violations)
        if problems:
            raise invalid_argument(problems)
        with self.database.read() as transaction:
            _, version = _require(transaction, location, model)
        if "artifactUri" not in version.spec:
            raise ApiError("FAILED_PRECONDITION", f"{version.model_name} has no artifactUri, so nothing to export.")
        uri = _export_uri(request["outputConfig"]["artifactDestination"]["outputUriPrefix"], version)
        copier = FolderCopier(BucketTree(self.data.buckets), self.data.uploads)
        try:
            count = copier.copy(version.spec["artifactUri"], uri)
        except InvalidBucketUri as error:
            raise ApiError("INVALID_ARGUMENT", f"{error}.") from error
        if not count:
            raise ApiError("FAILED_PRECONDITION", f"There are no files in {version.spec['artifactUri']} to export.")
        with self.database.write() as transaction:
            operation = transaction.operations.add(
                version.model_name,
                "ExportModelOperationMetadata",
                {"@type": "type.googleapis.com/google.cloud.aiplatform.v1.ExportModelResponse"},
                {"outputInfo": {"artifactOutputUri": uri}},
            )
        return operation_json(operation)


def _require(transaction: Transaction, location: Location, model: str) -> tuple[list[ModelVersion], ModelVersion]:
    """Return all versions of a model, and that of `ID`, `ID@version` or `ID@alias`. Raises ApiError NOT_FOUND."""
    model_id, _, alias = model.partition("@")
    versions = transaction.models.versions(location, model_id)
    version = _find(versions, alias or DEFAULT_ALIAS)
    if version is None:
        raise _missing(location, model)
    return versions, version


def _require_versions(transaction: Transaction, location: Location, model: str) -> list[ModelVersion]:
    versions = transaction.models.versions(location, model)
    if not versions:
        raise _missing(location, model)
    return versions


def _missing(location: Location, model: str) -> ApiError:
    """Return the error for a model that does not exist, or whose name no model can have."""
    if not _ID_AND_ALIAS.fullmatch(model):
        return malformed_name("Model")
    return not_found("Model", f"{location.name}/models/{model}")


def _find(versions: Iterable[ModelVersion], alias: str) -> ModelVersion | None:
    """Return the version with a number or an alias."""
    return next((each for each in versions if alias in (str(each.version), *each.aliases)), None)


def _reload(transaction: Transaction, version: ModelVersion) -> dict[str, Any]:
    versions = transaction.models.versions(version.location, version.id)
    current = _find(versions, str(version.version))
    assert current is not None
    return model_json(current, versions)


def _store(
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


def _upload_violations(request: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield what a canonical UploadModelRequest violates (discovery document, UploadModelRequest)."""
    yield from check_model(request["model"], ("model",))
    yield from check_model_id(request)


def _check_updatable(fields: Sequence[str], is_of_version: bool) -> None:
    allowed = _VERSION_UPDATES if is_of_version else _MODEL_UPDATES
    for field in fields:
        if field in allowed:
            continue
        if field in (*_MODEL_UPDATES, *_VERSION_UPDATES):
            kind, name = ("a model", "models/ID") if is_of_version else ("a version", "models/ID@VERSION")
            message = f"update_mask: {field} is a field of {kind}; update {name}"
            raise ApiError("FAILED_PRECONDITION", message, [("update_mask", message)])
        known = ", ".join(dict.fromkeys((*_MODEL_UPDATES, *_VERSION_UPDATES)))
        message = f"update_mask: {field} cannot be changed; only {known} can"
        raise ApiError("INVALID_ARGUMENT", message, [("update_mask", message)])


def _check_names_version(model: str) -> None:
    if "@" not in model:
        message = f'name: "{model}" must name a version, as models/ID@VERSION'
        raise ApiError("INVALID_ARGUMENT", message, [("name", message)])


@dataclass(frozen=True)
class _Row:
    """A version of a model in a list, with all versions of the model."""

    version: ModelVersion
    versions: Sequence[ModelVersion]

    def json(self) -> dict[str, Any]:
        return model_json(self.version, self.versions)

    @property
    def base_model(self) -> str | None:
        source = self.version.spec.get("baseModelSource", {}).get("modelGardenSource", {}).get("publicModelName")
        return source.rpartition("/")[2] if source else None


_ROW_FIELDS = lists.Fields[_Row](
    {
        "model": lambda row: row.version.id,
        "display_name": lambda row: str(row.version.spec["displayName"]),
        "base_model_name": lambda row: row.base_model,
    },
    labels=lambda row: row.version.spec.get("labels", {}),
    sortable={
        "display_name": lambda row: str(row.version.spec["displayName"]),
        "create_time": lambda row: str(row.json()["createTime"]),
        "update_time": lambda row: str(row.json()["updateTime"]),
    },
)


def _page(rows: list[_Row], list_request: ListRequest, newest_first: bool = True) -> dict[str, Any]:
    condition = list_request.condition(_ROW_FIELDS)
    mask = Mask.parse(list_request.mask, types.Model)
    rows = [row for row in rows if _ROW_FIELDS.match(condition, row)]
    page, token = list_request.sorted_page(rows, _ROW_FIELDS, lambda row: row.version.sequence, "model", newest_first)
    return lists.reply("models", [mask.apply(row.json()) for row in page], token)


def _export_violations(request: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield what a canonical ExportModelRequest violates for a model that has files and no image to export."""
    config = request["outputConfig"]
    if config.get("exportFormatId", EXPORT_FORMAT) != EXPORT_FORMAT:
        yield ("outputConfig", "exportFormatId"), f'"{config["exportFormatId"]}" must be "{EXPORT_FORMAT}"'
    if "imageDestination" in config:
        yield ("outputConfig", "imageDestination"), "the model has no image to export: set artifactDestination"
    elif "artifactDestination" not in config:
        yield ("outputConfig", "artifactDestination"), "is required"
    else:
        path = ("outputConfig", "artifactDestination", "outputUriPrefix")
        yield from STORAGE_URI.check(config["artifactDestination"]["outputUriPrefix"], path)


def _export_uri(prefix: str, version: ModelVersion) -> str:
    """Return the new folder of an export (discovery document, ExportModelRequestOutputConfig)."""
    display_name = re.sub(r"[^A-Za-z0-9_.-]+", "_", version.spec["displayName"])
    moment = format_time(now_ns())
    return f"{prefix.rstrip('/')}/model-export-{display_name[:100]}-{moment[:-4]}Z"


_OPERATION_FIELDS = lists.Fields[Operation]({"name": lambda operation: operation.name, "done": lambda _: "true"})


@dataclass(frozen=True)
class OperationService:
    """The methods on operations, each of which is done when its client first sees it."""

    database: Database

    def get(self, name: str) -> dict[str, Any]:
        """Return an operation by its full name. Raises ApiError NOT_FOUND."""
        with self.database.read() as transaction:
            operation = transaction.operations.get(name)
        if operation is None:
            raise _no_operation(name)
        return operation_json(operation)

    def list(self, parent: str, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of the operations of a location or a resource, the newest first. Raises ApiError."""
        condition = list_request.condition(_OPERATION_FIELDS)
        before = list_request.position(str)
        with self.database.read() as transaction:
            matching = (
                operation
                for operation in transaction.operations.under(parent)
                if (before is None or _place(operation) < before) and _OPERATION_FIELDS.match(condition, operation)
            )
            page, token = list_request.page(matching, _place)
        return lists.reply("operations", [operation_json(operation) for operation in page], token)

    def cancel(self, name: str) -> dict[str, Any]:
        """Do nothing, as the operation is done. Raises ApiError NOT_FOUND."""
        self.get(name)
        return {}

    def delete(self, name: str) -> dict[str, Any]:
        """Delete an operation. Raises ApiError NOT_FOUND."""
        with self.database.write() as transaction:
            if not transaction.operations.delete(name):
                raise _no_operation(name)
        return {}


def _place(operation: Operation) -> str:
    return f"{operation.created:020} {operation.name}"


def _no_operation(name: str) -> ApiError:
    return ApiError("NOT_FOUND", f"The Operation {name} does not exist.")
