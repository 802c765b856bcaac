"""The body of a request: a JSON object that can be kept and shown again."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any

from emulator.errors import ApiError

MAX_BYTES = 4 << 20
MAX_DEPTH = 100  # as deep as Google's own JSON readers go


async def read(stream: AsyncIterator[bytes]) -> Mapping[str, Any]:
    """The JSON object that a request brings; an absent body is an empty one. Raises ApiError."""
    size, parts = 0, []
    async for part in stream:
        size += len(part)
        if size > MAX_BYTES:
            message = f"Request payload size exceeds the limit: {MAX_BYTES} bytes."
            raise ApiError("INVALID_ARGUMENT", message, http=413)
        parts.append(part)
    return parse(b"".join(parts))


def parse(raw: bytes) -> Mapping[str, Any]:
    """The JSON object in some bytes, empty for none. Raises ApiError.

    What Python would read and no other client could is refused: NaN and infinity, halves of surrogate pairs, and
    nesting without end.
    """
    if not raw.strip():
        return {}
    try:
        found = json.loads(raw, parse_constant=_number, parse_float=_number)
        if b"\\ud" in raw.lower():
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise _invalid(str(error)) from error
    if not isinstance(found, Mapping):
        raise _invalid("The root must be an object.")
    if _is_too_deep(found):
        raise _invalid(f"It nests more than {MAX_DEPTH} deep.")
    return found


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


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number that JSON has.")
    return value


def _invalid(text: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Invalid JSON payload received. {text}")
