"""The body of a request: one JSON object, of limited size and depth, that arrives in limited time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anyio import fail_after
from starlette.requests import Request

from vertex_emulator.errors import ApiError

MAX_BYTES = 4 << 20
MAX_DEPTH = 100  # as deep as Google's own JSON readers go
SECONDS = 30


async def read(request: Request) -> Mapping[str, Any]:
    """The request's JSON object; an absent body is an empty one. Raises ApiError."""
    try:
        with fail_after(SECONDS):
            raw = await _limited(request)
    except TimeoutError as error:
        message = f"The request's body did not arrive within {SECONDS} seconds."
        raise ApiError("INVALID_ARGUMENT", message, http=408) from error
    return parse(raw)


def parse(raw: bytes) -> Mapping[str, Any]:
    """The JSON object in some bytes, empty for none. Raises ApiError."""
    if not raw.strip():
        return {}
    try:
        found = json.loads(raw)
        # NaN and halves of characters pass Python's reader, and no reply could hold them.
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise _invalid(str(error)) from error
    if not isinstance(found, Mapping):
        raise _invalid("The root must be an object.")
    if _is_too_deep(found):
        raise _invalid(f"It nests more than {MAX_DEPTH} deep.")
    return found


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


def _is_too_deep(found: Any) -> bool:
    level = [found]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, Mapping) else value)
            if isinstance(child, Mapping | list)
        ]
        if not level:
            return False
    return True


def _invalid(text: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Invalid JSON payload received. {text}")
