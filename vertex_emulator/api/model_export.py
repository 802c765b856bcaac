"""The API's method that copies the files of a model to a bucket."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api import types
from vertex_api.validation.check import validate_message
from vertex_api.validation.formats import STORAGE_URI, Violation
from vertex_emulator.api.model_lookup import require_all_versions_and_named_one
from vertex_emulator.database import Database
from vertex_emulator.database.records import ModelVersion
from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs.files import FolderCopier
from vertex_emulator.http.invalid_request_errors import build_invalid_argument_error
from vertex_emulator.names import Location
from vertex_emulator.resources import EXPORT_FORMAT, operation_json
from vertex_emulator.times import format_time, now_ns


@dataclass(frozen=True)
class ModelExportService:
    """The method that exports models in the database; `bucket_folder_copier` copies their files."""

    database: Database
    bucket_folder_copier: FolderCopier

    def export(self, location: Location, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Copy the files of a model into a new folder of a bucket; return a done operation. Raises ApiError."""
        request, problems = validate_message(types.ExportModelRequest, body, _find_export_violations)
        if problems:
            raise build_invalid_argument_error(problems)
        with self.database.read() as transaction:
            _, version = require_all_versions_and_named_one(transaction, location, model)
        if "artifactUri" not in version.spec:
            raise ApiError("FAILED_PRECONDITION", f"{version.model_name} has no artifactUri, so nothing to export.")
        uri = _build_export_uri(request["outputConfig"]["artifactDestination"]["outputUriPrefix"], version)
        try:
            count = self.bucket_folder_copier.copy(version.spec["artifactUri"], uri)
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


def _find_export_violations(request: Mapping[str, Any]) -> Iterator[Violation]:
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


def _build_export_uri(prefix: str, version: ModelVersion) -> str:
    """Return the new folder of an export (discovery document, ExportModelRequestOutputConfig)."""
    display_name = re.sub(r"[^A-Za-z0-9_.-]+", "_", version.spec["displayName"])
    moment = format_time(now_ns())
    return f"{prefix.rstrip('/')}/model-export-{display_name[:100]}-{moment[:-4]}Z"
