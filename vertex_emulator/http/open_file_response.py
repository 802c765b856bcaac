"""A response with the content of an open file."""

import logging
import os
from collections.abc import Mapping
from io import FileIO

from starlette.datastructures import Headers
from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

_log = logging.getLogger(__name__)


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
                await super().__call__(
                    scope, receive, send if scope["method"] == "HEAD" else _SendOfPromisedLength(send)
                )
            except _PromisedLengthIsSent:
                pass
            except _ContentHasEndedBefore as error:
                _log.warning("%s: a file became shorter while it was sent; %s bytes are missing", scope["path"], error)


class _PromisedLengthIsSent(Exception):
    """All of Content-Length is sent, and the file goes on."""


class _ContentHasEndedBefore(Exception):
    """The content has ended so many bytes before Content-Length."""


class _SendOfPromisedLength:
    """Sends the messages of a response until its Content-Length is reached.

    Raises:
        _PromisedLengthIsSent: there is more content.
        _ContentHasEndedBefore: there is less.
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
            raise _ContentHasEndedBefore(self._missing)
        await self._send({**message, "body": body, "more_body": self._missing > 0})
        if has_more and not self._missing:
            raise _PromisedLengthIsSent
