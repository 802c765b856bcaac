"""A preview of 8 and of 1,000 jobs, beside a program with as many dynamic resources that do nothing.

The inputs of those are the short spec that a job declares; jobs have defaults, a parent and their own folder too.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.job_and_noop_resource_programs import create_noop_program, create_our_program
from benchmarks.result_rows import yield_cost_rows

MAX_RATIOS = {8: 1.3, 1_000: 0.95}
ROUNDS = {8: 15, 1_000: 5}


def yield_benchmark_rows() -> Iterator[str]:
    """Run both in turn, and yield a line for each and one for the ratio."""
    for jobs, max_ratio in MAX_RATIOS.items():
        with tempfile.TemporaryDirectory() as folder:
            ours, noop = create_our_program(Path(folder), jobs), create_noop_program(Path(folder), jobs)
            costs = [
                (ours.run_and_measure_pulumi("preview"), noop.run_and_measure_pulumi("preview"))
                for _ in range(ROUNDS[jobs] + 1)
            ]
        # The first round warms the file cache.
        yield from yield_cost_rows("preview", jobs, *zip(*costs[1:], strict=True), max_ratio=max_ratio)
