"""Rows of results: a value with its limit, and the medians of two sides with their ratio."""

import statistics
from collections.abc import Iterator, Sequence

from benchmarks.measurements import Call, Cost, measure_medians_alternately

_DIGITS = {"s": 3, "ms": 1, "MB": 0, "": 2}


def yield_time_rows(
    case: str, peer: str, run_peer: Call, run_ours: Call, runs: int, max_ratio: float | None = None, warm_ups: int = 0
) -> Iterator[str]:
    """Time both sides in turn, and yield a row for each median and one for their ratio."""
    peer_seconds, our_seconds = measure_medians_alternately(run_peer, run_ours, runs, warm_ups)
    yield render_row(f"{case}, {peer}", peer_seconds, "s", note=f"median of {runs}, alternating")
    yield render_row(f"{case}, this project", our_seconds, "s")
    yield render_row(f"{case}, ratio", our_seconds / peer_seconds, "", max_ratio)


def yield_cost_rows(
    case: str, count: int, ours: Sequence[Cost], noop: Sequence[Cost], bare: Sequence[Cost] = (), *, max_ratio: float
) -> Iterator[str]:
    """Yield a line for each side and one for the median ratio of runs that were made in turn.

    The sides are `count` jobs, as many resources that do nothing, and the bare calls that are added to those.
    """
    yield _render_median_cost_row(f"{case}, {count:,} jobs", ours)
    yield _render_median_cost_row(f"{case}, {count:,} no-op resources", noop)
    if bare:
        yield _render_median_cost_row(f"{count:,} bare calls, with the client of Google", bare)
    others = [noop_cost + calls for noop_cost, calls in zip(noop, bare, strict=True)] if bare else noop
    pairs = list(zip(ours, others, strict=True))
    clock = statistics.median(our_cost.clock / other.clock for our_cost, other in pairs)
    processor = statistics.median(our_cost.processor / other.processor for our_cost, other in pairs)
    note = f"of processor time {processor:.2f}"
    yield render_row(f"{case}, {count:,} jobs, ratio", clock, "", max_ratio, note=note)


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


def _render_median_cost_row(name: str, costs: Sequence[Cost]) -> str:
    processor = statistics.median(cost.processor for cost in costs)
    note = f"{processor:.2f} s of the processors; median of {len(costs)}, alternating"
    return render_row(name, statistics.median(cost.clock for cost in costs), "s", note=note)
