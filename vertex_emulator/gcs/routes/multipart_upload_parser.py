"""A streaming parser of the body of a multipart upload."""

import re
from collections.abc import Mapping
from email.message import Message
from enum import IntEnum
from typing import Any

from vertex_emulator.errors import ApiError
from vertex_emulator.http.json_request_body import parse_json_object

_MAX_HEAD_BYTES = 1 << 20
_CLOSING_BYTES = 8  # line breaks and dashes around the last boundary


class _Place(IntEnum):
    """Where the next line of a body belongs."""

    PREAMBLE, JSON_HEADERS, JSON, MEDIA_HEADERS = range(4)


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
        self._mark = f"--{boundary}".encode()
        self._tail = re.compile(rb"\r?\n" + re.escape(self._mark) + rb"--\s*\Z")
        self._tail_bytes = len(boundary) + _CLOSING_BYTES
        self._buffer = bytearray()
        self._read_bytes = self._searched_bytes = 0
        self._place = _Place.PREAMBLE
        self._lines = dict[_Place, list[bytes]]((place, []) for place in _Place)
        self.metadata: Mapping[str, Any] | None = None
        self.media_type = ""

    def feed_and_take_media(self, data: bytes) -> bytes:
        """Add the next bytes of the body; return the media bytes that are known so far."""
        self._buffer += data
        if self.metadata is None:
            self._read_head()
            if self.metadata is None:
                if len(self._buffer) > _MAX_HEAD_BYTES:
                    raise _build_malformed_multipart_error("no second part within the first MiB")
                return b""
        media_bytes = max(0, len(self._buffer) - self._tail_bytes)
        media = bytes(self._buffer[:media_bytes])
        del self._buffer[:media_bytes]
        return media

    def _read_head(self) -> None:
        """Read the lines that have arrived, each once, in whatever pieces, up to the beginning of the media."""
        # Some clients end lines with CR LF, those built on Python's email package with LF.
        while (end := self._buffer.find(b"\n", self._searched_bytes) + 1) > 0:
            line = bytes(self._buffer[self._read_bytes : end])
            self._read_bytes = self._searched_bytes = end
            is_blank, is_mark = not line.strip(b"\r\n"), line.rstrip() == self._mark
            if self._place == _Place.PREAMBLE:
                if line.strip() not in (b"", self._mark):
                    raise _build_malformed_multipart_error("it does not begin with its boundary")
                is_next = line.strip() == self._mark
            else:
                is_next = is_mark if self._place == _Place.JSON else is_blank
            if not is_next:
                self._lines[self._place].append(line)
            elif self._place == _Place.MEDIA_HEADERS:
                break
            else:
                self._place = _Place(self._place + 1)
        else:
            self._searched_bytes = len(self._buffer)
            return
        header_lines = b"".join(self._lines[_Place.MEDIA_HEADERS])
        if b"base64" in header_lines.lower():
            raise _build_malformed_multipart_error("the media part is base64; send it as it is")
        self.metadata = parse_json_object(b"".join(self._lines[_Place.JSON]))
        self.media_type = _get_content_type_or_empty(header_lines)
        del self._buffer[: self._read_bytes]

    def take_last_media(self) -> bytes:
        """Return the last media bytes, without the closing boundary."""
        # After an empty media part only the boundary is left: its line break was matched with the head.
        rest = bytes(self._buffer)
        closing = self._tail.search(rest)
        if self.metadata is None or (closing is None and not self._tail.match(b"\n" + rest)):
            raise _build_malformed_multipart_error("it ends before its closing boundary")
        return rest[: closing.start()] if closing else b""


def _get_content_type_or_empty(header_lines: bytes) -> str:
    for line in header_lines.decode("latin-1").splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-type":
            return value.strip()
    return ""


def _build_malformed_multipart_error(reason: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Malformed multipart body: {reason}.")
