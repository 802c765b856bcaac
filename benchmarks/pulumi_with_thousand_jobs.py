"""`pulumi` with 1,000 jobs: what `up` costs, beside as many resources that do nothing and the bare calls of the API.

A job that takes all the room of the emulator keeps the 1,000 in its queue. Needs Docker, and about five minutes.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.emulator_process import run_temporary_emulator_without_free_capacity
from benchmarks.job_and_noop_resource_programs import build_short_job_spec, create_noop_program, create_our_program
from benchmarks.measurements import Cost, run_and_measure_command
from benchmarks.result_rows import yield_cost_rows
from tools.setup import CHECKOUT

JOBS = 1_000
ROUNDS = 3
MAX_RATIOS = {"up": 1.5, "up without a change": 1.15, "preview without a change": 1.15}
"""The engine writes the whole state at each step of an `up`, and a job has more in it than the short spec."""
PULUMI_CASES = {
    "up": ("up", "--yes", "--skip-preview"),
    "up without a change": ("up", "--yes", "--skip-preview", "--expect-no-changes"),
    "preview without a change": ("preview", "--expect-no-changes"),
}


def yield_benchmark_rows() -> Iterator[str]:
    """Run them in turn: yield for each case a line for ours, for the others, and for the ratio."""
    costs: dict[str, list[tuple[Cost, ...]]] = {case: [] for case in PULUMI_CASES}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            bare = _measure_bare_calls(Path(folder, "bare"))
            ours, noop = create_our_program(Path(folder), JOBS), create_noop_program(Path(folder), JOBS)
            with run_temporary_emulator_without_free_capacity(ours.root / ".emulator"):
                for case, arguments in PULUMI_CASES.items():
                    noop_cost = noop.run_and_measure_pulumi(*arguments)
                    costs[case].append(
                        (ours.run_and_measure_pulumi(*arguments), noop_cost, *([bare] if case == "up" else []))
                    )
    for case, rounds in costs.items():
        yield from yield_cost_rows(case, JOBS, *zip(*rounds, strict=True), max_ratio=MAX_RATIOS[case])


def _measure_bare_calls(folder: Path) -> Cost:
    """Measure the calls alone, each with the labels that our jobs have."""
    folder.mkdir()
    labels = {f"pulumi_{name}": "x" * 20 for name in ("project", "stack", "name", "token", "mark")}
    jobs = [{"displayName": f"job-{i}", "jobSpec": build_short_job_spec(i), "labels": labels} for i in range(JOBS)]
    bodies = folder / "jobs"
    bodies.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    with run_temporary_emulator_without_free_capacity(folder / "data") as emulator:
        command = [sys.executable, "-m", "benchmarks.submit_with_bare_calls", emulator.url, str(bodies)]
        return run_and_measure_command(command, CHECKOUT, os.environ)
