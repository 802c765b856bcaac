"""The body of a batch: calls of the JSON API as parts of a multipart/mixed body (Cloud Storage, "Batch requests")."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from itertools import pairwise
from urllib.parse import parse_qsl, urlsplit

from vertex_emulator.errors import ApiError

MAX_CALLS = 100  # Cloud Storage, "Batch requests"
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_REQUEST_LINE = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (\S+)(?: HTTP/\d\.\d)?\s*")


@dataclass(frozen=True)
class BatchedCall:
    """A call of a batch; `path` is encoded, header names are in lower case, `content_id` is the part's own."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    content_id: str


def parse_batch_request(content_type: str, body: bytes) -> list[BatchedCall]:
    """Parse the calls of a batch. Raises ApiError that names the part."""
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_boundary()
    if header.get_content_type() != "multipart/mixed" or not boundary:
        raise _build_malformed_batch_error(
            f'Content-Type is "{content_type[:100]}", not multipart/mixed with a boundary'
        )
    # Clients that use Python's email package end lines with LF.
    delimiter = re.compile(rb"(?:^|\r?\n)--" + re.escape(boundary.encode()) + rb"[ \t]*+(--)?+[ \t]*+(?:\r?\n|$)")
    marks = list(delimiter.finditer(body))
    if not marks or not marks[-1][1]:
        raise _build_malformed_batch_error("it ends before its closing boundary")
    parts = [body[mark.end() : end.start()] for mark, end in pairwise(marks)]
    if not 1 <= len(parts) <= MAX_CALLS:
        raise _build_malformed_batch_error(f"it has {len(parts)} calls; 1 to {MAX_CALLS} are allowed")
    return [_parse_call(part, number) for number, part in enumerate(parts, 1)]


def _parse_call(part: bytes, number: int) -> BatchedCall:
    part_headers, call = _split_at_blank_line(part)
    head, body = _split_at_blank_line(call.lstrip(b"\r\n"))
    request_line, _, header_lines = head.partition("\n")
    match = _REQUEST_LINE.fullmatch(request_line)
    if match is None:
        raise _build_malformed_batch_error(
            f'part {number} begins with "{request_line[:100].strip()}", not with a method and a path'
        )
    try:
        url = urlsplit(match[2])
    except ValueError as error:
        raise _build_malformed_batch_error(f"part {number} has no valid URL: {error}") from error
    if not url.path.startswith("/storage/v1/"):
        raise _build_malformed_batch_error(
            f'part {number} calls "{url.path[:100]}"; only /storage/v1/… is allowed in a batch'
        )
    if ("alt", "media") in parse_qsl(url.query):  # also where it is percent-encoded
        raise _build_malformed_batch_error(f"part {number} downloads content, which is not allowed in a batch")
    content_id = _parse_headers(part_headers).get("content-id", "")
    return BatchedCall(match[1], url.path, url.query, _parse_headers(header_lines), body, content_id)


def _split_at_blank_line(text: bytes) -> tuple[str, bytes]:
    """Return what is before the first blank line, and what is after it."""
    blank = _BLANK_LINE.search(text)
    head, rest = (text, b"") if blank is None else (text[: blank.start()], text[blank.end() :])
    return head.decode("latin-1"), rest


def _parse_headers(lines: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines.splitlines() if line.strip())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _build_malformed_batch_error(reason: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Malformed batch: {reason}.")
