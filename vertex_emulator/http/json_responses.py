"""HTTP responses from JSON objects and errors."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from vertex_emulator.errors import ApiError
from vertex_emulator.http.large_request_concurrency import run_in_thread_and_one_at_a_time_if_large


async def respond_with_json_from_thread(request: Request, build_reply: Callable[[], Mapping[str, Any]]) -> Response:
    """Return the JSON object that `build_reply` returns, which runs in a thread of its own, as a response."""
    # A page of studies with many trials is large, and this encoder is four times as fast as Python's own.
    return await run_in_thread_and_one_at_a_time_if_large(
        request, lambda: Response(to_json(build_reply()), media_type="application/json")
    )


def build_error_response(error: ApiError, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as a response with its google.rpc.Status."""
    return JSONResponse(error.to_json(), status_code=error.http, headers=headers)
