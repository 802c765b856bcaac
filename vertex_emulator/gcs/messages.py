"""Requests and replies of Cloud Storage: queries, resources as JSON, and the errors that any route can raise."""

import contextlib
import errno
import logging
import os
import re
from collections.abc import Iterable, Mapping
from functools import partial
from io import FileIO
from typing import Any
from urllib.parse import quote, unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.files import is_bucket
from vertex_emulator.gcs.objects import ObjectStore, StoredObject, checksums, invalid_bucket
from vertex_emulator.http.permissions import check_of
from vertex_emulator.http.responses import error_response
from vertex_emulator.times import format_time

_SYSTEM_PARAMETERS = {"alt", "fields", "key", "prettyPrint", "projection", "quotaUser", "userProject", "$prettyPrint"}
_BUCKET = re.compile(r"/(?:(?:resumable/)?upload/|download/)?storage/v1/b/([^/]*)")
_FILE_AND_FOLDER = "objects are files here, and no name can be both a file and a folder that is not empty"
_OS_ERRORS = {
    errno.ENOSPC: ("RESOURCE_EXHAUSTED", 507, "the disk is full; nothing was stored"),
    errno.EDQUOT: ("RESOURCE_EXHAUSTED", 507, "the disk quota is used up; nothing was stored"),
    errno.EISDIR: ("FAILED_PRECONDITION", 409, _FILE_AND_FOLDER),
    errno.ENOTDIR: ("FAILED_PRECONDITION", 409, _FILE_AND_FOLDER),
    errno.EEXIST: ("FAILED_PRECONDITION", 409, _FILE_AND_FOLDER),
    errno.ENOTEMPTY: ("FAILED_PRECONDITION", 409, _FILE_AND_FOLDER),
    errno.ENOENT: ("NOT_FOUND", 404, "it was deleted meanwhile"),
    errno.EACCES: ("PERMISSION_DENIED", 403, "the emulator's user may not use this file"),
    errno.EAGAIN: ("UNAVAILABLE", 503, "a program has a lease on this file (`man 2 fcntl`); try again"),
    errno.EPERM: ("PERMISSION_DENIED", 403, "the emulator's user may not use this file"),
}
_log = logging.getLogger("vertex_emulator.storage")


def checked_query(request: Request, allowed: Iterable[str] = ()) -> Mapping[str, str]:
    """Return the query. Raises ApiError for a parameter that the method does not have.

    One without a value says nothing: Go's client sends those that its caller has not set.
    """
    for name, value in request.query_params.items():
        if value not in {"", "false"} and name not in _SYSTEM_PARAMETERS and name not in allowed:
            message = f'This emulator\'s Cloud Storage does not know the query parameter "{name}" here.'
            raise ApiError("INVALID_ARGUMENT", message, [(name, "unknown query parameter")])
    return request.query_params


def encoded_path(request: Request) -> str:
    """The path as the client wrote it, in which slashes of names are encoded."""
    return bytes(request.scope["raw_path"]).decode("latin-1")


def base_url(request: Request) -> str:
    """The emulator's URL as the client wrote it."""
    return str(request.base_url).rstrip("/")


def refuse(request: Request) -> Response:
    """Raise the error for a method that the API has, or may have, and this emulator does not.

    A name of no bucket, such as gs://acme, makes a path of its own.
    """
    if (named := _BUCKET.match(encoded_path(request))) and not is_bucket(name := unquote(named[1])):
        raise invalid_bucket(name)
    call = f"{request.method} {request.url.path}"
    message = f"This emulator's Cloud Storage has no {call} (`vertex-training docs fidelity` lists what it has)."
    raise ApiError("UNIMPLEMENTED", message)


def xml_upload_error(request: Request) -> ApiError | None:
    """The error for a multipart upload of the XML API, which has paths of its own; None for other requests."""
    if request.query_params.keys() & {"uploads", "uploadId"}:
        message = "This emulator has no multipart uploads of Cloud Storage's XML API; upload resumably by the JSON API."
        return ApiError("UNIMPLEMENTED", message)
    return None


def bucket_json(request: Request, bucket: str, folder: os.stat_result) -> dict[str, Any]:
    """Return a Buckets resource."""
    return {
        "kind": "storage#bucket",
        "id": bucket,
        "name": bucket,
        "selfLink": f"{base_url(request)}/storage/v1/b/{bucket}",
        "metageneration": "1",
        "storageClass": "STANDARD",
        "timeCreated": format_time(folder.st_ctime_ns),
        "updated": format_time(folder.st_mtime_ns),
        "etag": f"{folder.st_mtime_ns:x}",
    }


def object_json(request: Request, stored: StoredObject, known_checksums: Mapping[str, str] = {}) -> dict[str, Any]:
    """Return an Objects resource with these checksums."""
    place = f"storage/v1/b/{stored.bucket}/o/{quote(stored.name, safe='')}"
    moment, updated = format_time(stored.generation), stored.metadata.updated
    return {
        "kind": "storage#object",
        "id": f"{stored.bucket}/{stored.name}/{stored.generation}",
        "name": stored.name,
        "bucket": stored.bucket,
        "selfLink": f"{base_url(request)}/{place}",
        "mediaLink": f"{base_url(request)}/download/{place}?generation={stored.generation}&alt=media",
        "generation": str(stored.generation),
        "metageneration": str(stored.metadata.metageneration),
        **stored.metadata.fields,
        "contentType": stored.content_type,
        "storageClass": "STANDARD",
        "size": str(stored.size),
        "timeCreated": moment,
        "updated": moment if updated is None else format_time(updated),
        "etag": f"{stored.generation:x}-{stored.metadata.metageneration}",
        **known_checksums,
    }


def list_reply(kind: str, **fields: Any) -> Response:
    """Return a list with the fields that are not empty."""
    return JSONResponse({"kind": kind, **{name: value for name, value in fields.items() if value}})


async def object_reply(request: Request, stored: StoredObject, file: FileIO | None) -> Response:
    """Return an object with the checksums of its file, which is closed; without them for a folder, which has none.

    Raises ClientDisconnect and OSError.
    """
    with file or contextlib.nullcontext():
        found = await file_checksums(request, file) if file else {}
    return JSONResponse(object_json(request, stored, found))


async def file_checksums(request: Request, file: FileIO) -> dict[str, str]:
    """Return the checksums of a file while the client waits for them. Raises ClientDisconnect and OSError."""
    return await checksums(file, partial(check_connection, request))


async def check_connection(request: Request) -> None:
    """Raise ClientDisconnect if the client, whose whole body has arrived, has left."""
    if await request.is_disconnected():
        raise ClientDisconnect


def need_to_store(request: Request, objects: ObjectStore, bucket: str, name: str) -> None:
    """Say that a request needs to create an object, and to delete the one that it replaces.

    Raises ApiError if it is a job's, and that may not.
    """
    if check := check_of(request):  # the object is looked up for jobs alone
        check("storage.objects.create", f"gs://{bucket}/{name}")
        if objects.find(bucket, name) is not None:
            check("storage.objects.delete", f"gs://{bucket}/{name}")


def _answer_os_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    status, http, reason = _OS_ERRORS.get(error.errno or 0, ("INTERNAL", 500, error.strerror or str(error)))
    _log.warning("%s %s: %s", request.method, request.url.path, error)
    return error_response(ApiError(status, f"{request.url.path}: {reason}.", http=http))


def _answer_nobody(_request: Request, _error: Exception) -> Response:
    """Return a response that nobody reads; a resumable upload keeps what has arrived for its next request."""
    return Response(status_code=499)


ERROR_HANDLERS: Mapping[Any, Any] = {OSError: _answer_os_error, ClientDisconnect: _answer_nobody}
