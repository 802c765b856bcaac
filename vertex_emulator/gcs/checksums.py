"""The MD5 and CRC32C checksums of an object in Cloud Storage's form."""

import base64
import hashlib
import os
from collections.abc import Awaitable, Callable
from io import FileIO

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

_CHUNK_BYTES = 1 << 20
_TURN_BYTES = 4 << 20
_MAX_THREADS = 4
_limiter: RunVar[CapacityLimiter] = RunVar("threads that compute checksums")


async def compute_checksums(
    file: FileIO, raise_if_disconnected: Callable[[], Awaitable[None]] | None = None
) -> dict[str, str]:
    """Return `md5Hash` and `crc32c` of a file in base64 (Cloud Storage, Objects resource). Raises OSError.

    A large file is read in many turns, in few threads, so that it keeps none from other requests, ends with the
    request's task, and ends when `raise_if_disconnected` raises after a turn.
    """
    from google_crc32c import Checksum

    md5, crc32c = hashlib.md5(usedforsecurity=False), Checksum()

    def hash_next_bytes_and_get_end(position: int) -> int:
        end = position + _TURN_BYTES
        # The position of the file itself stays at its start, for its next reader.
        while position < end and (chunk := os.pread(file.fileno(), _CHUNK_BYTES, position)):
            md5.update(chunk)
            crc32c.update(chunk)
            position += len(chunk)
        return position

    position, end = 0, _TURN_BYTES
    while True:
        position = await to_thread.run_sync(
            hash_next_bytes_and_get_end, position, limiter=_get_or_create_thread_limiter()
        )
        if position < end:
            break
        end = position + _TURN_BYTES
        if raise_if_disconnected is not None:
            await raise_if_disconnected()
    return {"md5Hash": base64.b64encode(md5.digest()).decode(), "crc32c": base64.b64encode(crc32c.digest()).decode()}


def _get_or_create_thread_limiter() -> CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        _limiter.set(limiter := CapacityLimiter(_MAX_THREADS))
        return limiter
