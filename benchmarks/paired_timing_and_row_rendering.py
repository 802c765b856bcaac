"""Time two sides in turn, and render a row per measurement with its limit."""

import statistics
import time
from collections.abc import Callable, Iterator

Call = Callable[[], object]
_DIGITS = {"s": 3, "ms": 1, "MB": 0, "": 2}


def measure_call_seconds(call: Call) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def measure_medians_alternately(first: Call, second: Call, runs: int, warm_ups: int = 0) -> tuple[float, float]:
    """Call both in turn, and return the median seconds of each; the first `warm_ups` runs do not count."""
    pairs = [(measure_call_seconds(first), measure_call_seconds(second)) for _ in range(warm_ups + runs)][warm_ups:]
    first_seconds, second_seconds = zip(*pairs, strict=True)
    return statistics.median(first_seconds), statistics.median(second_seconds)


def yield_time_rows(
    case: str, peer: str, run_peer: Call, run_ours: Call, runs: int, max_ratio: float | None = None, warm_ups: int = 0
) -> Iterator[str]:
    """Time both sides in turn, and yield a row for each median and one for their ratio."""
    peer_seconds, our_seconds = measure_medians_alternately(run_peer, run_ours, runs, warm_ups)
    yield render_row(f"{case}, {peer}", peer_seconds, "s", note=f"median of {runs}, alternating")
    yield render_row(f"{case}, this project", our_seconds, "s")
    yield render_row(f"{case}, ratio", our_seconds / peer_seconds, "", max_ratio)


def render_row(
    name: str, value: float, unit: str, at_most: float | None = None, *, at_least: float | None = None, note: str = ""
) -> str:
    """Render a measured value (a ratio has the unit `""`), and whether it is within its limit."""
    limit = ""
    if at_most is not None:
        limit = f"at most {at_most:g}: {'met' if value <= at_most else 'MISSED'}"
    elif at_least is not None:
        limit = f"at least {at_least:g}: {'met' if value >= at_least else 'MISSED'}"
    return f"{name:45} {value:9.{_DIGITS[unit]}f} {unit:2}  {limit}{f' ({note})' if note else ''}".rstrip()
