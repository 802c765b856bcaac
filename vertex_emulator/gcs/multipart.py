"""The body of a multipart upload, taken apart while it arrives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.message import Message
from typing import Any

from vertex_emulator.errors import ApiError
from vertex_emulator.http.body import parse_json_object

_MAX_HEAD = 1 << 20
_PADDING = 8  # line breaks and dashes around the last boundary


class RelatedBody:
    """A `multipart/related` body: one part of JSON, then one of media (Cloud Storage, "Multipart upload").

    `feed` gives the media bytes that are certain, `end` the rest; `metadata` is there from the first media byte on.
    No more than the head and the length of a boundary is held at a time. Raises ApiError.
    """

    def __init__(self, content_type: str) -> None:
        header = Message()
        header["content-type"] = content_type
        # gcloud puts the boundary into single quotes, which are no quotes to the mail standards.
        boundary = (header.get_boundary() or "").strip("'")
        if header.get_content_type() != "multipart/related" or not boundary:
            raise _broken(f'Content-Type is "{content_type}", not multipart/related with a boundary')
        mark = rb"--" + re.escape(boundary.encode())
        # Some clients end lines with CR LF, those built on Python's email package with LF.
        part = mark + rb"[ \t]*\r?\n(?P<%s>(?:[^\r\n]+\r?\n)*)\r?\n"
        self._head = re.compile(rb"\s*" + part % b"first" + rb"(?P<json>.*?)\r?\n" + part % b"second", re.DOTALL)
        self._tail = re.compile(rb"\r?\n" + mark + rb"--\s*\Z")
        self._kept = len(boundary) + _PADDING
        self._buffer = b""
        self.metadata: Mapping[str, Any] | None = None

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the body; the media bytes among those known so far."""
        self._buffer += data
        if self.metadata is None:
            head = self._head.match(self._buffer)
            if head is None:
                if len(self._buffer) > _MAX_HEAD:
                    raise _broken("no second part within the first MiB")
                return b""
            if b"base64" in head["second"].lower():
                raise _broken("the media part is base64; send it as it is")
            self.metadata = parse_json_object(head["json"])
            self._buffer = self._buffer[head.end() :]
        cut = max(0, len(self._buffer) - self._kept)
        media, self._buffer = self._buffer[:cut], self._buffer[cut:]
        return media

    def end(self) -> bytes:
        """The last media bytes, without the closing boundary."""
        # An empty media part leaves nothing but the boundary, whose line break belonged to the head.
        closing = self._tail.search(self._buffer) or self._tail.search(b"\n" + self._buffer)
        if self.metadata is None or closing is None:
            raise _broken("it ends before its closing boundary")
        return self._buffer[: max(0, closing.start())]


def _broken(reason: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Malformed multipart body: {reason}.")
