"""The errors that any route of Cloud Storage can raise: of the file system, and of clients that have left."""

import errno
import logging
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from vertex_emulator.errors import ApiError
from vertex_emulator.http.json_responses import build_error_response

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
    errno.EAGAIN: ("UNAVAILABLE", 503, "a program has a lease on this file (`man 2 fcntl`); try again"),
    errno.EPERM: ("PERMISSION_DENIED", 403, "the emulator's user may not use this file"),
}
_log = logging.getLogger("vertex_emulator.storage")


def get_error_handlers() -> Mapping[Any, Any]:
    """Return the handlers of errors that any of the routes can raise."""
    return {OSError: _log_os_error_and_respond, ClientDisconnect: _respond_to_disconnect}


async def raise_if_disconnected(request: Request) -> None:
    """Raise ClientDisconnect if the client, whose whole body has arrived, has left."""
    if await request.is_disconnected():
        raise ClientDisconnect


def _log_os_error_and_respond(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    status, http, reason = _ERRORS.get(error.errno or 0, ("INTERNAL", 500, error.strerror or str(error)))
    _log.warning("%s %s: %s", request.method, request.url.path, error)
    return build_error_response(ApiError(status, f"{request.url.path}: {reason}.", http=http))


def _respond_to_disconnect(_request: Request, _error: Exception) -> Response:
    """Return a response that nobody reads; a resumable upload keeps what has arrived for its next request."""
    return Response(status_code=499)
