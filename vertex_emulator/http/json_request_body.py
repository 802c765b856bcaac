"""The body of a request: one JSON object of limited size, depth and number of values, in limited time."""

import json
from collections.abc import Mapping
from typing import Any

from anyio import fail_after
from starlette.requests import Request

from vertex_emulator.errors import ApiError
from vertex_emulator.http.large_request_concurrency import (
    LARGE_BYTES,
    record_whether_body_is_large,
    run_in_thread_and_one_at_a_time_if_large,
)

JSON_TYPE = "application/json"
MAX_BYTES = 4 << 20
MAX_DEPTH = 100  # as deep as Google's own JSON readers go
MAX_VALUES = 100_000  # all work on a request grows with them
MAX_SECONDS = 30


async def read_json_object(request: Request) -> Mapping[str, Any]:
    """Return the request's JSON object; without a body, an empty one. Raises ApiError.

    A body must be declared as JSON: a page of another origin cannot send that without the emulator's consent (Fetch
    standard, "CORS-safelisted request-header").
    """
    raw = await read_body_within_size_and_time_limits(request)
    content_type = request.headers.get("content-type", "")
    if raw and content_type.partition(";")[0].strip().lower() != JSON_TYPE:
        message = f'Content-Type is "{content_type}"; it must be {JSON_TYPE} (curl: -H "Content-Type: {JSON_TYPE}").'
        raise ApiError("INVALID_ARGUMENT", message, http=415)
    record_whether_body_is_large(request, len(raw))
    if len(raw) <= LARGE_BYTES:
        return parse_json_object(raw)
    return await run_in_thread_and_one_at_a_time_if_large(request, lambda: parse_json_object(raw))


def parse_json_object(raw_body: bytes) -> Mapping[str, Any]:
    """Return the JSON object in a body; an empty one for a blank body. Raises ApiError."""
    if not raw_body.strip():
        return {}
    try:
        value = json.loads(raw_body)
        # Python's parser accepts NaN and lone surrogates, which no reply could contain.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise _build_invalid_payload_error(str(error)) from error
    if not isinstance(value, Mapping):
        raise _build_invalid_payload_error("The root must be an object.")
    _raise_if_too_many_values_or_too_deep(value)
    return value


async def read_body_within_size_and_time_limits(request: Request) -> bytes:
    """Return the body, of limited size in limited time. Raises ApiError."""
    try:
        with fail_after(MAX_SECONDS):
            return await _read_bytes_or_raise_if_too_large(request)
    except TimeoutError as error:
        message = f"The request's body did not arrive within {MAX_SECONDS} seconds."
        raise ApiError("INVALID_ARGUMENT", message, http=408) from error


async def _read_bytes_or_raise_if_too_large(request: Request) -> bytes:
    """Return the body; reading stops at the limit, whatever the headers announce."""
    size, parts = 0, []
    async for part in request.stream():
        size += len(part)
        if size > MAX_BYTES:
            message = f"Request payload size exceeds the limit: {MAX_BYTES} bytes."
            raise ApiError("INVALID_ARGUMENT", message, http=413)
        parts.append(part)
    return b"".join(parts)


def _raise_if_too_many_values_or_too_deep(value: Any) -> None:
    level, count = [value], 1
    for _ in range(MAX_DEPTH):
        count += sum(map(len, level))
        if count > MAX_VALUES:
            raise _build_invalid_payload_error(f"It holds more than {MAX_VALUES} values.")
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise _build_invalid_payload_error(f"It nests more than {MAX_DEPTH} deep.")


def _build_invalid_payload_error(text: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Invalid JSON payload received. {text}")
