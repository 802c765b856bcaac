"""The body of a request: one JSON object, of limited size, that arrives in limited time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anyio import fail_after
from starlette.requests import Request

from emulator.errors import ApiError

MAX_BYTES = 4 << 20
SECONDS = 30


async def read(request: Request) -> Mapping[str, Any]:
    """The request's JSON object; an absent body is an empty one. Raises ApiError."""
    try:
        with fail_after(SECONDS):
            raw = await _limited(request)
    except TimeoutError as error:
        message = f"The request's body did not arrive within {SECONDS} seconds."
        raise ApiError("INVALID_ARGUMENT", message, http=408) from error
    if not raw.strip():
        return {}
    try:
        body = json.loads(raw)
        # NaN and halves of characters pass Python's reader, and no reply could hold them.
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise ApiError("INVALID_ARGUMENT", f"Invalid JSON payload received. {error}") from error
    if not isinstance(body, Mapping):
        raise ApiError("INVALID_ARGUMENT", "Invalid JSON payload received. The root must be an object.")
    return body


async def _limited(request: Request) -> bytes:
    """The bytes, of which no more are read than may be, whatever the headers announce."""
    size, parts = 0, []
    async for part in request.stream():
        size += len(part)
        if size > MAX_BYTES:
            message = f"Request payload size exceeds the limit: {MAX_BYTES} bytes."
            raise ApiError("INVALID_ARGUMENT", message, http=413)
        parts.append(part)
    return b"".join(parts)
