"""The JSON body of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from emulator.errors import ApiError

MAX_BODY_BYTES = 4 << 20


async def json_object(request: Request) -> Mapping[str, Any]:
    """The request's JSON object; an absent body is an empty one. Raises ApiError."""
    size, parts = 0, []
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise ApiError(
                "INVALID_ARGUMENT", f"Request payload size exceeds the limit: {MAX_BODY_BYTES} bytes.", http=413
            )
        parts.append(part)
    raw = b"".join(parts)
    if not raw.strip():
        return {}
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ApiError("INVALID_ARGUMENT", f"Invalid JSON payload received. {error}") from error
    if not isinstance(body, Mapping):
        raise ApiError("INVALID_ARGUMENT", "Invalid JSON payload received. The root must be an object.")
    return body
