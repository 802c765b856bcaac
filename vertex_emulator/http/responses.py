"""Responses: errors in the service's form, and the content of open files."""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from io import FileIO

from starlette.datastructures import Headers
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from vertex_api.errors import shown_problems
from vertex_api.messages import show_path
from vertex_api.validation.shape import FieldProblem
from vertex_emulator.errors import ApiError

JSON_TYPE = "application/json; charset=UTF-8"
"""As recorded of the service (docs/fidelity.md)."""
_log = logging.getLogger(__name__)


def error_response(error: ApiError, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as a response with its google.rpc.Status."""
    return JSONResponse(error.to_json(), status_code=error.http, headers=headers, media_type=JSON_TYPE)


def not_found(resource_type: str, name: str) -> ApiError:
    """Return the service's error for a resource that does not exist, such as a CustomJob."""
    return ApiError("NOT_FOUND", f'The {resource_type} "{name}" does not exist.')


def malformed_name(resource_type: str) -> ApiError:
    """Return the service's error for a name that no resource of this type can have. It has no details, as recorded."""
    error = invalid_argument([FieldProblem(("name",), f"Invalid {resource_type} resource name.")])
    return ApiError(error.status, str(error))


def invalid_argument(problems: Sequence[FieldProblem], headline: str = "") -> ApiError:
    """Return the service's error for the problems of a request: `List of found errors:\\t1.Field: a.b; Message: c`.

    `headline` is a text that comes before them.
    """
    shown, more = shown_problems(problems)
    pairs = [(_field_path(problem), problem.message) for problem in shown]
    texts = [f"{i}.Field: {field}; Message: {message}" for i, (field, message) in enumerate(pairs, 1)]
    message = "\t".join(["List of found errors:", *texts, *([more] if more else []), ""])
    return ApiError("INVALID_ARGUMENT", f"{headline}. {message}" if headline else message, pairs)


def _field_path(problem: FieldProblem) -> str:
    """Render the path of a field in the form of the service's errors; an unknown field as it was spelt."""
    if not problem.is_unknown_field:
        return to_snake_case(problem.place)
    *parents, name = problem.path
    return ".".join(filter(None, [to_snake_case(show_path(tuple(parents))), show_path((name,))]))


def to_snake_case(field_path: str) -> str:
    """Convert `jobSpec.workerPoolSpecs[0].x` to the form of the service's errors, `job_spec.worker_pool_specs[0].x`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match.group(1).lower(), field_path)


class OpenFileResponse(FileResponse):
    """The content of an open file, whole or by one Range; it closes the file at its end, also if the client has left.

    A container may write to the file meanwhile. What it adds is not sent; if it cuts the file, the connection is closed
    before the promised length, by which clients know that the content is incomplete.
    """

    max_ranges = 1  # Cloud Storage answers several ranges with the whole object, too

    def __init__(self, file: FileIO, media_type: str, headers: Mapping[str, str], filename: str | None = None) -> None:
        # A path of the file could lead to another one by now, its descriptor cannot.
        super().__init__(
            f"/dev/fd/{file.fileno()}",
            stat_result=os.fstat(file.fileno()),
            media_type=media_type,
            headers=headers,
            filename=filename,
        )
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            try:
                await super().__call__(scope, receive, send if scope["method"] == "HEAD" else _PromisedLength(send))
            except _LengthIsSent:
                pass
            except _ContentHasEnded as error:
                _log.warning("%s: a file became shorter while it was sent; %s bytes are missing", scope["path"], error)


class _LengthIsSent(Exception):
    """All of Content-Length is sent, and the file goes on."""


class _ContentHasEnded(Exception):
    """The content has ended so many bytes before Content-Length."""


class _PromisedLength:
    """Sends the messages of a response until its Content-Length is reached.

    Raises:
        _LengthIsSent: there is more content.
        _ContentHasEnded: there is less.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._missing = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._missing = int(Headers(raw=message["headers"])["content-length"])
            await self._send(message)
            return
        body, has_more = message["body"][: self._missing], message.get("more_body", False)
        self._missing -= len(body)
        if self._missing and not has_more:
            raise _ContentHasEnded(self._missing)
        await self._send({**message, "body": body, "more_body": self._missing > 0})
        if has_more and not self._missing:
            raise _LengthIsSent
