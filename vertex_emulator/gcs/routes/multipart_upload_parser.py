"""A streaming parser of the body of a multipart upload."""

import re
from collections.abc import Mapping
from email.message import Message
from typing import Any

from vertex_emulator.errors import ApiError
from vertex_emulator.http.json_request_body import parse_json_object

_MAX_HEAD_BYTES = 1 << 20
_CLOSING_BYTES = 8  # line breaks and dashes around the last boundary


class MultipartParser:
    """The parser of a `multipart/related` body: a JSON part, then a media part (Cloud Storage, "Multipart upload").

    The methods return media bytes as they arrive; `metadata` is the JSON part, None until it has arrived, and
    `media_type` the Content-Type of the media part. It buffers the head of the body or the length of a boundary, not
    more. Raises ApiError.
    """

    def __init__(self, content_type: str) -> None:
        header = Message()
        header["content-type"] = content_type
        # gcloud puts the boundary into single quotes, which the mail standards do not treat as quotes.
        boundary = (header.get_boundary() or "").strip("'")
        if header.get_content_type() != "multipart/related" or not boundary:
            raise _build_malformed_multipart_error(
                f'Content-Type is "{content_type}", not multipart/related with a boundary'
            )
        mark = rb"--" + re.escape(boundary.encode())
        # Some clients end lines with CR LF, those built on Python's email package with LF.
        part = mark + rb"[ \t]*\r?\n(?P<%s>(?:[^\r\n]+\r?\n)*)\r?\n"
        self._head = re.compile(rb"\s*" + part % b"first" + rb"(?P<json>.*?)\r?\n" + part % b"second", re.DOTALL)
        self._tail = re.compile(rb"\r?\n" + mark + rb"--\s*\Z")
        self._tail_bytes = len(boundary) + _CLOSING_BYTES
        self._buffer = b""
        self.metadata: Mapping[str, Any] | None = None
        self.media_type = ""

    def feed_and_take_media(self, data: bytes) -> bytes:
        """Add the next bytes of the body; return the media bytes that are known so far."""
        self._buffer += data
        if self.metadata is None:
            head = self._head.match(self._buffer)
            if head is None:
                if len(self._buffer) > _MAX_HEAD_BYTES:
                    raise _build_malformed_multipart_error("no second part within the first MiB")
                return b""
            if b"base64" in head["second"].lower():
                raise _build_malformed_multipart_error("the media part is base64; send it as it is")
            self.metadata = parse_json_object(head["json"])
            self.media_type = _get_content_type_or_empty(head["second"])
            self._buffer = self._buffer[head.end() :]
        media_bytes = max(0, len(self._buffer) - self._tail_bytes)
        media, self._buffer = self._buffer[:media_bytes], self._buffer[media_bytes:]
        return media

    def take_last_media(self) -> bytes:
        """Return the last media bytes, without the closing boundary."""
        # After an empty media part only the boundary is left: its line break was matched with the head.
        closing = self._tail.search(self._buffer) or self._tail.search(b"\n" + self._buffer)
        if self.metadata is None or closing is None:
            raise _build_malformed_multipart_error("it ends before its closing boundary")
        return self._buffer[: max(0, closing.start())]


def _get_content_type_or_empty(header_lines: bytes) -> str:
    for line in header_lines.decode("latin-1").splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-type":
            return value.strip()
    return ""


def _build_malformed_multipart_error(reason: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Malformed multipart body: {reason}.")
