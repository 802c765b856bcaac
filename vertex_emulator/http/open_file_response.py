"""A response with the content of an open file."""

import os
from collections.abc import Mapping
from io import FileIO

from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send


class OpenFileResponse(FileResponse):
    """The content of an open file, whole or by Range; it closes the file at its end, also if the client has left."""

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
            await super().__call__(scope, receive, send)
