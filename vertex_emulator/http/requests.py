"""What requests carry: query parameters, and bodies of limited size, depth, number of values and time."""

import json
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from anyio import CapacityLimiter, fail_after, to_thread
from anyio.lowlevel import RunVar
from pydantic.alias_generators import to_camel
from starlette.datastructures import QueryParams
from starlette.requests import Request

from vertex_emulator.errors import ApiError

MAX_BYTES = 4 << 20
MAX_DEPTH = 100  # as deep as Google's own JSON readers go
MAX_VALUES = 100_000  # all work on a request grows with them
MAX_SECONDS = 30
MAX_HELD_BYTES = 256 << 20
"""Of all bodies that are being received or wait for their turn; beyond, clients are to send theirs again."""
_LARGE_BYTES = 64 << 10
_UNPACKED_BYTES = 1 << 20
_JSON = "application/json"
_SYSTEM_PARAMETERS = frozenset(
    {"$alt", "alt", "$.xgafv", "access_token", "callback", "fields", "key", "oauth_token", "prettyPrint"}
    | {"quotaUser", "uploadType", "upload_protocol", "$prettyPrint", "$apiVersion"}
)
"""The parameters that every Google API accepts."""
_REPEATED = "timeSeries"
"""The one parameter of any method here that is a list."""
Result = TypeVar("Result")


def read_query(query: QueryParams, allowed: Collection[str] = ()) -> dict[str, str]:
    """Return a method's query parameters by camelCase name, without those that every Google API accepts.

    `allowed` are the names that the method has, in camelCase. Raises ApiError for any other. Of those that are repeated
    the last counts; the values of a list are joined by commas.
    """
    parameters = {}
    for name, value in query.items():
        if name in _SYSTEM_PARAMETERS:
            continue
        camel = to_camel(name) if "_" in name else name
        if camel not in allowed:
            # The wording of Google's front end.
            message = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
            raise ApiError("INVALID_ARGUMENT", message, [(name, "unknown query parameter")])
        parameters[camel] = ",".join(query.getlist(name)) if camel == _REPEATED else value
    return parameters


def wants_enum_numbers(query: Mapping[str, str]) -> bool:
    """Return whether a reply is to have numbers in place of the names of enums, as Google's REST clients ask for."""
    options = query.get("$alt", query.get("alt", "")).lower().split(";")
    return "enum-encoding=int" in options[1:]


async def read_json(request: Request) -> Mapping[str, Any]:
    """Return the request's JSON object; without a body, an empty one. Raises ApiError.

    A body must be declared as JSON: a page of another origin cannot send that without the emulator's consent (Fetch
    standard, "CORS-safelisted request-header").
    """
    async with _received(request) as raw:
        content_type = request.headers.get("content-type", "")
        if raw and content_type.partition(";")[0].strip().lower() != _JSON:
            message = f'Content-Type is "{content_type}"; it must be {_JSON} (curl: -H "Content-Type: {_JSON}").'
            raise ApiError("INVALID_ARGUMENT", message, http=415)
        request.state.has_large_body = len(raw) > _LARGE_BYTES
        if not request.state.has_large_body:
            return parse_json(raw)
        return await run_in_thread(request, lambda: parse_json(raw))


async def read_body(request: Request) -> bytes:
    """Return the body, of limited size in limited time. Raises ApiError."""
    async with _received(request) as raw:
        return raw


async def unpacked(request: Request) -> AsyncIterator[bytes]:
    """Yield the body as it arrives, as it was before its client compressed it for the way. Raises ApiError.

    Google's client for Java does so unless it is told not to (google-api-java-client, "MediaHttpUploader",
    setDisableGZipContent).
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        async for part in request.stream():
            yield part
        return
    if encoding != "gzip":
        message = f'Content-Encoding is "{encoding[:100]}"; it must be gzip, or missing.'
        raise ApiError("INVALID_ARGUMENT", message, http=415)
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    async for part in request.stream():
        while part:
            try:
                data = unpacker.decompress(part, _UNPACKED_BYTES)
            except zlib.error as error:
                raise ApiError("INVALID_ARGUMENT", f"The body is no gzip: {error}.") from error
            if unpacker.unused_data:
                raise ApiError("INVALID_ARGUMENT", "The body goes on after the end of its gzip.")
            part = unpacker.unconsumed_tail
            yield data
    yield unpacker.flush()
    if not unpacker.eof:
        raise ApiError("INVALID_ARGUMENT", "The body ends before its gzip does.")


_held: RunVar[int] = RunVar("bytes of bodies", 0)


@asynccontextmanager
async def _received(request: Request) -> AsyncIterator[bytes]:
    """Give the body, which counts among those that are held until the block is left. Raises ApiError."""
    size, parts = 0, list[bytes]()
    try:
        with fail_after(MAX_SECONDS):
            async for part in unpacked(request):  # up to the limit, whatever the headers announce
                size += len(part)
                _held.set(_held.get() + len(part))
                if size > MAX_BYTES:
                    message = f"Request payload size exceeds the limit: {MAX_BYTES} bytes."
                    raise ApiError("INVALID_ARGUMENT", message, http=413)
                if _held.get() > MAX_HELD_BYTES:
                    message = f"Requests hold more than {MAX_HELD_BYTES} bytes together. Send this one again."
                    raise ApiError("RESOURCE_EXHAUSTED", message)
                parts.append(part)
        yield b"".join(parts)
    except TimeoutError as error:
        message = f"The request's body did not arrive within {MAX_SECONDS} seconds."
        raise ApiError("INVALID_ARGUMENT", message, http=408) from error
    finally:
        _held.set(_held.get() - size)


def parse_json(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object in a body; an empty one for a blank body. Raises ApiError."""
    if not body.strip():
        return {}
    try:
        value = json.loads(body)
        # Python's parser accepts NaN and lone surrogates, which no reply could contain.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise _invalid_payload(str(error)) from error
    if not isinstance(value, Mapping):
        raise _invalid_payload("The root must be an object.")
    _check_extent(value)
    return value


def _check_extent(value: Any) -> None:
    level, count = [value], 1
    for _ in range(MAX_DEPTH):
        count += sum(map(len, level))
        if count > MAX_VALUES:
            raise _invalid_payload(f"It holds more than {MAX_VALUES} values.")
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise _invalid_payload(f"It nests more than {MAX_DEPTH} deep.")


def _invalid_payload(text: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Invalid JSON payload received. {text}")


_turns: RunVar[CapacityLimiter] = RunVar("turns of large bodies")


async def run_in_thread(request: Request, work: Callable[[], Result]) -> Result:
    """Return what `work` on a request returns, which runs in a thread; works on large bodies run one at a time.

    So others, and a stop, do not wait for them: a thread that works cannot be stopped, and a stop would wait for all.
    """
    if not getattr(request.state, "has_large_body", False):
        return await to_thread.run_sync(work)
    try:
        limiter = _turns.get()
    except LookupError:
        _turns.set(limiter := CapacityLimiter(1))
    return await to_thread.run_sync(work, limiter=limiter)
