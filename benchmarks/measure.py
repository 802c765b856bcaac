"""Measurements, of calls and of commands, and the rows that show them beside their limits."""

import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Call = Callable[[], object]


@dataclass(frozen=True)
class Cost:
    """What a command costs: seconds on the clock, and seconds of the processors that its processes used."""

    clock: float
    processor: float

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.clock + other.clock, self.processor + other.processor)


def seconds(call: Call) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def medians(first: Call, second: Call, runs: int, warm_ups: int = 0) -> tuple[float, float]:
    """Call both in turn, and return the median seconds of each; the first `warm_ups` runs do not count."""
    pairs = [(seconds(first), seconds(second)) for _ in range(warm_ups + runs)][warm_ups:]
    first_seconds, second_seconds = zip(*pairs, strict=True)
    return statistics.median(first_seconds), statistics.median(second_seconds)


def run(command: list[str], folder: Path, environment: Mapping[str, str]) -> Cost:
    """Run a command and return what it costs with its child processes."""
    before, begin = _child_seconds(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    clock = time.perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return Cost(clock, _child_seconds() - before)


def _child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


_DIGITS = {"s": 3, "ms": 1, "MB": 0, "": 2}


def time_rows(
    case: str, peer: str, run_peer: Call, run_ours: Call, runs: int, max_ratio: float | None = None, warm_ups: int = 0
) -> Iterator[str]:
    """Time both sides in turn, and yield a row for each median and one for their ratio."""
    peer_seconds, our_seconds = medians(run_peer, run_ours, runs, warm_ups)
    yield row(f"{case}, {peer}", peer_seconds, "s", note=f"median of {runs}, alternating")
    yield row(f"{case}, this project", our_seconds, "s")
    yield row(f"{case}, ratio", our_seconds / peer_seconds, "", max_ratio)


def cost_rows(
    case: str, count: int, ours: Sequence[Cost], noop: Sequence[Cost], bare: Sequence[Cost] = (), *, max_ratio: float
) -> Iterator[str]:
    """Yield a line for each side and one for the median ratio of runs that were made in turn.

    The sides are `count` jobs, as many resources that do nothing, and the bare calls that are added to those.
    """
    yield _median_row(f"{case}, {count:,} jobs", ours)
    yield _median_row(f"{case}, {count:,} no-op resources", noop)
    if bare:
        yield _median_row(f"{count:,} bare calls, with the client of Google", bare)
    others = [noop_cost + calls for noop_cost, calls in zip(noop, bare, strict=True)] if bare else noop
    pairs = list(zip(ours, others, strict=True))
    clock = statistics.median(our_cost.clock / other.clock for our_cost, other in pairs)
    processor = statistics.median(our_cost.processor / other.processor for our_cost, other in pairs)
    note = f"of processor time {processor:.2f}"
    yield row(f"{case}, {count:,} jobs, ratio", clock, "", max_ratio, note=note)


def row(
    name: str, value: float, unit: str, at_most: float | None = None, *, at_least: float | None = None, note: str = ""
) -> str:
    """Render a measured value (a ratio has the unit `""`), and whether it is within its limit."""
    limit = ""
    if at_most is not None:
        limit = f"at most {at_most:g}: {'met' if value <= at_most else 'MISSED'}"
    elif at_least is not None:
        limit = f"at least {at_least:g}: {'met' if value >= at_least else 'MISSED'}"
    return f"{name:45} {value:9.{_DIGITS[unit]}f} {unit:2}  {limit}{f' ({note})' if note else ''}".rstrip()


def _median_row(name: str, costs: Sequence[Cost]) -> str:
    processor = statistics.median(cost.processor for cost in costs)
    note = f"{processor:.2f} s of the processors; median of {len(costs)}, alternating"
    return row(name, statistics.median(cost.clock for cost in costs), "s", note=note)
