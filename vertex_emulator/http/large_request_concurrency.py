"""Threads for the work of requests: those with large bodies take turns, so that the others and a stop do not wait."""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from starlette.requests import Request

LARGE_BYTES = 64 << 10
Result = TypeVar("Result")
_turns: RunVar[CapacityLimiter] = RunVar("turns of large bodies")


def record_whether_body_is_large(request: Request, size_bytes: int) -> None:
    """Record on a request whether the work on its body, of `size_bytes`, has to take turns."""
    request.state.has_large_body = size_bytes > LARGE_BYTES


async def run_in_thread_and_one_at_a_time_if_large(request: Request, work: Callable[[], Result]) -> Result:
    """Return what `work` on a request returns, which runs in a thread; works on large bodies run one at a time."""
    if not getattr(request.state, "has_large_body", False):
        return await to_thread.run_sync(work)
    # A thread that works cannot be stopped: of many at a time, a stop would wait for all.
    return await to_thread.run_sync(work, limiter=_get_or_create_limiter())


def _get_or_create_limiter() -> CapacityLimiter:
    try:
        return _turns.get()
    except LookupError:
        _turns.set(limiter := CapacityLimiter(1))
        return limiter
