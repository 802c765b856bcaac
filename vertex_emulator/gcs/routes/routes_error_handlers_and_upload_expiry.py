"""All routes of Cloud Storage, responses to errors of the file system, and the end of uploads that have expired."""

import errno
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.bucket_file_operations_without_links import BucketFileTree
from vertex_emulator.gcs.bucket_store import BucketStore
from vertex_emulator.gcs.object_metadata_database import ObjectMetadataDatabase
from vertex_emulator.gcs.object_store import ObjectStore
from vertex_emulator.gcs.routes.batch_routes import build_batch_route
from vertex_emulator.gcs.routes.bucket_routes import BucketRoutes
from vertex_emulator.gcs.routes.copy_compose_and_move_routes import CopyRoutes
from vertex_emulator.gcs.routes.object_routes import ObjectRoutes
from vertex_emulator.gcs.routes.request_query_path_and_connection_checks import raise_unimplemented
from vertex_emulator.gcs.routes.upload_routes import UploadRoutes
from vertex_emulator.gcs.upload_sessions import Uploads
from vertex_emulator.http.json_and_error_responses import build_error_response

_FILE_AND_FOLDER = "objects are files here, and no name can be both a file and a folder that is not empty"
_ERRORS = {
    errno.ENOSPC: ("RESOURCE_EXHAUSTED", 507, "the disk is full; nothing was stored"),
    errno.EDQUOT: ("RESOURCE_EXHAUSTED", 507, "the disk quota is used up; nothing was stored"),
    errno.EISDIR: ("FAILED_PRECONDITION", 409, _FILE_AND_FOLDER),
    errno.ENOTDIR: ("FAILED_PRECONDITION", 409, _FILE_AND_FOLDER),
    errno.EEXIST: ("FAILED_PRECONDITION", 409, _FILE_AND_FOLDER),
    errno.ENOTEMPTY: ("FAILED_PRECONDITION", 409, _FILE_AND_FOLDER),
    errno.ENOENT: ("NOT_FOUND", 404, "it was deleted meanwhile"),
    errno.EACCES: ("PERMISSION_DENIED", 403, "the emulator's user may not use this file"),
    errno.EPERM: ("PERMISSION_DENIED", 403, "the emulator's user may not use this file"),
}
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_ALL_PATHS = ("/storage/v1/{path:path}", "/upload/storage/v1/{path:path}", "/batch/storage/v1")
_log = logging.getLogger("vertex_emulator.storage")


@dataclass(frozen=True)
class StorageRoutes:
    """All routes of Cloud Storage, on the folder of all buckets.

    Unfinished uploads are in `uploads_folder`, metadata of objects in `object_metadata_file`.
    """

    buckets_folder: Path
    uploads_folder: Path
    object_metadata_file: Path

    def delete_expired_uploads_and_build_routes(self) -> list[Route]:
        """Delete expired uploads and return all routes. Raises StartError if the metadata cannot be read."""
        buckets = BucketStore(BucketFileTree(self.buckets_folder), ObjectMetadataDatabase(self.object_metadata_file))
        objects = ObjectStore(buckets)
        uploads = Uploads(self.uploads_folder, objects)
        uploads.delete_expired()
        unimplemented = [Route(path, raise_unimplemented, methods=list(_METHODS)) for path in _ALL_PATHS]
        return [
            *BucketRoutes(buckets).build_routes(),
            *ObjectRoutes(objects).build_routes(),
            *CopyRoutes(objects, uploads).build_routes(),
            *UploadRoutes(uploads).build_routes(),
            build_batch_route(),
            *unimplemented,
        ]

    def get_error_handlers(self) -> Mapping[Any, Any]:
        """Return the handlers of errors that any of the routes can raise."""
        return {OSError: _log_os_error_and_respond, ClientDisconnect: _respond_to_disconnect}


def _log_os_error_and_respond(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    status, http, reason = _ERRORS.get(error.errno or 0, ("INTERNAL", 500, error.strerror or str(error)))
    _log.warning("%s %s: %s", request.method, request.url.path, error)
    return build_error_response(ApiError(status, f"{request.url.path}: {reason}.", http=http))


def _respond_to_disconnect(_request: Request, _error: Exception) -> Response:
    """Return a response that nobody reads; a resumable upload keeps what has arrived for its next request."""
    return Response(status_code=499)


def find_xml_multipart_upload_error(request: Request) -> ApiError | None:
    """Return the error for a multipart upload of the XML API, which has paths of its own; None for other requests."""
    if request.query_params.keys() & {"uploads", "uploadId"}:
        message = "This emulator has no multipart uploads of Cloud Storage's XML API; upload resumably by the JSON API."
        return ApiError("UNIMPLEMENTED", message)
    return None
