"""Measurements of calls and of commands: seconds on the clock, and of the processors; two calls in turn."""

import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
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


def run_and_measure_command(command: list[str], folder: Path, environment: Mapping[str, str]) -> Cost:
    """Run a command and return what it costs with its child processes."""
    before, begin = _get_child_processor_seconds(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    clock = time.perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return Cost(clock, _get_child_processor_seconds() - before)


def _get_child_processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
