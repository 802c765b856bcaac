"""A preview of 1,000 jobs, beside a plain program with as many dynamic resources that do nothing."""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.programs import Cost, Program, medians, ours, plain

JOBS = 1_000
ROUNDS = 5
MOST = 1.15


def rows() -> Iterator[str]:
    """Runs the two in turn, and yields a line for each and one for the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        programs = [ours(Path(folder), JOBS), plain(Path(folder), JOBS)]
        costs: dict[Program, list[Cost]] = {program: [] for program in programs}
        for _ in range(ROUNDS + 1):
            for program, taken in costs.items():
                taken.append(program.run("preview"))
        # The first round warms the file cache.
        mine, theirs = (taken[1:] for taken in costs.values())
        yield f"preview, {JOBS} jobs            {medians(mine)}"
        yield f"preview, {JOBS} no-op resources {medians(theirs)}, with the same inputs"
        ratio = statistics.median(a.clock / b.clock for a, b in zip(mine, theirs, strict=True))
        work = statistics.median(a.processor / b.processor for a, b in zip(mine, theirs, strict=True))
        verdict = "met" if ratio <= MOST else "MISSED"
        yield f"ratio                        {ratio:6.2f}   at most {MOST}: {verdict} (of processor time {work:.2f})"
