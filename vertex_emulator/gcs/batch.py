"""Batches: calls of the JSON API as parts of a multipart/mixed body (Cloud Storage, "Batch requests").

Each call is answered by the application itself, one after the other.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from email.message import Message as Headers
from http.client import responses
from itertools import pairwise
from urllib.parse import parse_qsl, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Scope

from vertex_emulator.errors import ApiError
from vertex_emulator.http.requests import read_body

MAX_CALLS = 100  # Cloud Storage, "Batch requests"
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_REQUEST_LINE = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (\S+)(?: HTTP/\d\.\d)?\s*")
_SCOPE_KEYS_OF_ROUTING = {"path_params", "endpoint", "route", "router", "app"}


async def answer(request: Request) -> Response:
    """Answer a batch."""
    body = await read_body(request)
    calls = parse(request.headers.get("content-type", ""), body)
    boundary = f"batch_{secrets.token_hex(16)}"
    # One answer at a time is in memory, however large the others are. gcsfs reads the boundary without quotes.
    return StreamingResponse(
        _replies(request, calls, boundary), headers={"content-type": f"multipart/mixed; boundary={boundary}"}
    )


async def _replies(request: Request, calls: list[Call], boundary: str) -> AsyncIterator[bytes]:
    for call in calls:
        if await request.is_disconnected():
            return
        head = [f"--{boundary}", "Content-Type: application/http"]
        if call.content_id:
            head.append(f"Content-ID: <response-{call.content_id.strip('<>')}>")
        yield "\r\n".join([*head, "", ""]).encode("latin-1") + await _run(request, call) + b"\r\n"
    yield f"--{boundary}--\r\n".encode()


async def _run(request: Request, call: Call) -> bytes:
    """Answer a call by the application, and return the HTTP response as text."""
    status, content = 500, bytearray()
    body_messages: list[Message] = [{"type": "http.request", "body": call.body, "more_body": False}]

    async def receive() -> Message:
        # After its body, the call has the connection of the batch, on which the client may leave.
        return body_messages.pop() if body_messages else await request.receive()

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)
        content.extend(message.get("body", b""))

    await request.app(call.scope(request.scope), receive, send)
    lines = [f"HTTP/1.1 {status} {responses.get(status, '')}", f"Content-Length: {len(content)}"]
    if content:
        lines.insert(1, "Content-Type: application/json; charset=UTF-8")
    return "\r\n".join([*lines, "", ""]).encode() + bytes(content)


@dataclass(frozen=True)
class Call:
    """A call of a batch; `path` is encoded, header names are in lower case, `content_id` is the part's own."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    content_id: str

    def scope(self, batch_scope: Scope) -> Scope:
        """Return the ASGI scope of the call, on the host and with the rights of its batch."""
        kept = {name: value for name, value in batch_scope.items() if name not in _SCOPE_KEYS_OF_ROUTING}
        host = [pair for pair in batch_scope["headers"] if pair[0] == b"host"]
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self.headers.items()]
        return {
            **kept,
            "method": self.method,
            "path": unquote(self.path),
            "raw_path": self.path.encode("latin-1"),
            "query_string": self.query.encode("latin-1"),
            "headers": host + [pair for pair in headers if pair[0] != b"host"],
            "state": dict(batch_scope.get("state", {})),
        }


def parse(content_type: str, body: bytes) -> list[Call]:
    """Parse the calls of a batch. Raises ApiError that names the part."""
    header = Headers()
    header["content-type"] = content_type
    boundary = header.get_boundary()
    if header.get_content_type() != "multipart/mixed" or not boundary:
        raise _malformed(f'Content-Type is "{content_type[:100]}", not multipart/mixed with a boundary')
    # Clients that use Python's email package end lines with LF.
    delimiter = re.compile(rb"(?:^|\r?\n)--" + re.escape(boundary.encode()) + rb"[ \t]*+(--)?+[ \t]*+(?:\r?\n|$)")
    marks = list(delimiter.finditer(body))
    if not marks or not marks[-1][1]:
        raise _malformed("it ends before its closing boundary")
    parts = [body[mark.end() : end.start()] for mark, end in pairwise(marks)]
    if not 1 <= len(parts) <= MAX_CALLS:
        raise _malformed(f"it has {len(parts)} calls; 1 to {MAX_CALLS} are allowed")
    return [_parse_call(part, number) for number, part in enumerate(parts, 1)]


def _parse_call(part: bytes, number: int) -> Call:
    part_headers, call = _split_head(part)
    head, body = _split_head(call.lstrip(b"\r\n"))
    request_line, _, header_lines = head.partition("\n")
    match = _REQUEST_LINE.fullmatch(request_line)
    if match is None:
        raise _malformed(f'part {number} begins with "{request_line[:100].strip()}", not with a method and a path')
    try:
        url = urlsplit(match[2])
    except ValueError as error:
        raise _malformed(f"part {number} has no valid URL: {error}") from error
    if not url.path.startswith("/storage/v1/"):
        raise _malformed(f'part {number} calls "{url.path[:100]}"; only /storage/v1/… is allowed in a batch')
    if ("alt", "media") in parse_qsl(url.query):  # also where it is percent-encoded
        raise _malformed(f"part {number} downloads content, which is not allowed in a batch")
    content_id = _parse_headers(part_headers).get("content-id", "")
    return Call(match[1], url.path, url.query, _parse_headers(header_lines), body, content_id)


def _split_head(text: bytes) -> tuple[str, bytes]:
    """Return what is before the first blank line, and what is after it."""
    blank = _BLANK_LINE.search(text)
    head, rest = (text, b"") if blank is None else (text[: blank.start()], text[blank.end() :])
    return head.decode("latin-1"), rest


def _parse_headers(lines: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines.splitlines() if line.strip())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _malformed(reason: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Malformed batch: {reason}.")
