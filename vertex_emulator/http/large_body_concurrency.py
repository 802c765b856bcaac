"""Threads for the work of requests: those with large bodies take turns, so that the others and a stop do not wait."""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from starlette.requests import Request

LARGE_BYTES = 64 << 10
Result = TypeVar("Result")
_turns: RunVar[CapacityLimiter] = RunVar("turns of large bodies")


def mark_large_body(request: Request, size: int) -> None:
    """Note on a request whether the work on its body, of `size` bytes, has to take turns."""
    request.state.has_large_body = size > LARGE_BYTES


async def run_in_thread(request: Request, work: Callable[[], Result]) -> Result:
    """Return what `work` on a request returns, which runs in a thread of its own."""
    if not getattr(request.state, "has_large_body", False):
        return await to_thread.run_sync(work)
    # A thread that works cannot be stopped: of many at a time, a stop would wait for all.
    return await to_thread.run_sync(work, limiter=_get_turns())


def _get_turns() -> CapacityLimiter:
    try:
        return _turns.get()
    except LookupError:
        _turns.set(limiter := CapacityLimiter(1))
        return limiter
