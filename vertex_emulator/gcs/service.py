"""Cloud Storage as one part of the HTTP side: its routes, and what a failing disk is answered as."""

from __future__ import annotations

import errno
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.objects import Objects
from vertex_emulator.gcs.routes import StorageRoutes
from vertex_emulator.gcs.upload_routes import UploadRoutes
from vertex_emulator.gcs.uploads import Uploads

_BOTH = "objects are files here, and no name can be both a file and a folder with something in it"
_ANSWERS = {
    errno.ENOSPC: ("RESOURCE_EXHAUSTED", 507, "the disk is full; nothing was stored"),
    errno.EDQUOT: ("RESOURCE_EXHAUSTED", 507, "the disk quota is used up; nothing was stored"),
    errno.EISDIR: ("FAILED_PRECONDITION", 409, _BOTH),
    errno.ENOTDIR: ("FAILED_PRECONDITION", 409, _BOTH),
    errno.EEXIST: ("FAILED_PRECONDITION", 409, _BOTH),
    errno.ENOTEMPTY: ("FAILED_PRECONDITION", 409, _BOTH),
    errno.ENOENT: ("NOT_FOUND", 404, "it has gone meanwhile"),
    errno.EACCES: ("PERMISSION_DENIED", 403, "the emulator's user may not use this file"),
    errno.EPERM: ("PERMISSION_DENIED", 403, "the emulator's user may not use this file"),
}
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_ALL_PATHS = ("/storage/v1/{path:path}", "/upload/storage/v1/{path:path}", "/batch/storage/v1")
_log = logging.getLogger("vertex_emulator.storage")


@dataclass(frozen=True)
class Storage:
    """Cloud Storage on the folder `buckets`; uploads on their way lie in `uploads`."""

    buckets: Path
    uploads: Path

    def routes(self) -> list[Route]:
        """All routes; uploads that no one goes on with are forgotten first."""
        objects = Objects(self.buckets)
        uploads = Uploads(self.uploads, objects)
        uploads.expire()
        everything = [Route(path, _unimplemented, methods=list(_METHODS)) for path in _ALL_PATHS]
        return [*StorageRoutes(objects).routes(), *UploadRoutes(objects, uploads).routes(), *everything]

    def handlers(self) -> Mapping[Any, Any]:
        """Answers to errors that any of the routes can meet."""
        return {OSError: _file_error, ClientDisconnect: _disconnected}


def _file_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    status, http, reason = _ANSWERS.get(error.errno or 0, ("INTERNAL", 500, error.strerror or str(error)))
    _log.warning("%s %s: %s", request.method, request.url.path, error)
    refusal = ApiError(status, f"{request.url.path}: {reason}.", http=http)
    return JSONResponse(refusal.body(), status_code=refusal.http)


def _unimplemented(request: Request) -> Response:
    call = f"{request.method} {request.url.path}"
    raise ApiError(
        "UNIMPLEMENTED", f"This emulator's Cloud Storage has no {call} (docs/fidelity.md lists what it has)."
    )


def _disconnected(_request: Request, _error: Exception) -> Response:
    """No one reads this; what a resumable upload has sent so far is kept for its next request."""
    return Response(status_code=499)
