"""The route of batches: each call in one is answered by the application itself, one after the other."""

import secrets
from collections.abc import AsyncIterator
from http.client import responses
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Scope

from vertex_emulator.gcs.routes.batch_body_parser import BatchedCall, parse_batch_request
from vertex_emulator.http.json_request_body import read_body_within_size_and_time_limits

_SCOPE_KEYS_OF_ROUTING = {"path_params", "endpoint", "route", "router", "app"}
_LINE_END = b"\r\n"


def build_batch_route() -> Route:
    """Return the route `/batch/storage/v1`."""
    return Route("/batch/storage/v1", _answer_batch, methods=["POST"])


async def _answer_batch(request: Request) -> Response:
    body = await read_body_within_size_and_time_limits(request)
    calls = parse_batch_request(request.headers.get("content-type", ""), body)
    boundary = f"batch_{secrets.token_hex(16)}"
    # One answer at a time is in memory, however large the others are. gcsfs reads the boundary without quotes.
    return StreamingResponse(
        _iterate_reply_parts(request, calls, boundary),
        headers={"content-type": f"multipart/mixed; boundary={boundary}"},
    )


async def _iterate_reply_parts(request: Request, calls: list[BatchedCall], boundary: str) -> AsyncIterator[bytes]:
    for call in calls:
        if await request.is_disconnected():
            return
        head = [f"--{boundary}", "Content-Type: application/http"]
        if call.content_id:
            head.append(f"Content-ID: <response-{call.content_id.strip('<>')}>")
        yield _LINE_END.join(
            [*(line.encode("latin-1") for line in head), b"", await _run_call_and_render_response(request, call), b""]
        )
    yield f"--{boundary}--\r\n".encode()


async def _run_call_and_render_response(request: Request, call: BatchedCall) -> bytes:
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

    await request.app(_build_call_scope(request.scope, call), receive, send)
    lines = [f"HTTP/1.1 {status} {responses.get(status, '')}", f"Content-Length: {len(content)}"]
    if content:
        lines.insert(1, "Content-Type: application/json; charset=UTF-8")
    return "\r\n".join([*lines, "", ""]).encode() + bytes(content)


def _build_call_scope(batch_scope: Scope, call: BatchedCall) -> Scope:
    kept = {name: value for name, value in batch_scope.items() if name not in _SCOPE_KEYS_OF_ROUTING}
    host = [pair for pair in batch_scope["headers"] if pair[0] == b"host"]
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in call.headers.items()]
    return {
        **kept,
        "method": call.method,
        "path": unquote(call.path),
        "raw_path": call.path.encode("latin-1"),
        "query_string": call.query.encode("latin-1"),
        "headers": host + [pair for pair in headers if pair[0] != b"host"],
        "state": dict(batch_scope.get("state", {})),
    }
