"""1,000 jobs: what `pulumi up` costs beside as many resources that do nothing and the bare calls of the API.

The emulator runs no more replicas at once than the machine has room for; a job that takes all of it keeps the 1,000 in
its queue. Docker is needed. Takes about five minutes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.counting_proxy import CountingProxy
from benchmarks.emulator import IMAGE, Emulator, running
from benchmarks.programs import PARENT, Cost, Program, cost, medians, ours, plain, spec

JOBS = 1_000
ROUNDS = 3
MOST_UP, MOST_UNCHANGED = 1.2, 1.15
_CHECKOUT = Path(__file__).parents[1]
_UP = ("up", "--yes", "--skip-preview")
_CASES = {
    "up": _UP,
    "up without a change": (*_UP, "--expect-no-changes"),
    "preview without a change": ("preview", "--expect-no-changes"),
}


def rows() -> Iterator[str]:
    """Runs them in turn: for each case a line for ours, for the others, and for the ratio; then the calls."""
    costs: dict[str, list[tuple[Cost, Cost, Cost]]] = {case: [] for case in _CASES}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            bare = _bare(Path(folder, "bare"))
            other = plain(Path(folder), JOBS)
            with _ours(Path(folder)) as (program, _emulator):
                for case, arguments in _CASES.items():
                    theirs = other.run(*arguments)
                    calls = bare if case == "up" else Cost(0, 0)
                    costs[case].append((program.run(*arguments), theirs, calls))
    for case, taken in costs.items():
        yield from _compared(case, taken, MOST_UP if case == "up" else MOST_UNCHANGED)
    for case, calls in _calls().items():
        shown = ", ".join(f"{count:,} {call}" for call, count in sorted(calls.items())) or "none"
        yield f"{case + ', calls of the API':45} {shown}"


def _compared(case: str, taken: list[tuple[Cost, Cost, Cost]], most: float) -> Iterator[str]:
    yield f"{f'{case}, {JOBS:,} jobs':45} {medians([mine for mine, _, _ in taken])}; median of {ROUNDS}, alternating"
    yield f"{f'{case}, {JOBS:,} no-op resources':45} {medians([theirs for _, theirs, _ in taken])}"
    if case == "up":
        yield f"{f'{JOBS:,} bare calls, with the client of Google':45} {medians([calls for *_, calls in taken])}"
    pairs = [(mine, theirs + calls) for mine, theirs, calls in taken]
    ratio = statistics.median(mine.clock / other.clock for mine, other in pairs)
    work = statistics.median(mine.processor / other.processor for mine, other in pairs)
    verdict = "met" if ratio <= most else "MISSED"
    yield f"{f'{case}, ratio':45} {ratio:7.2f}     at most {most}: {verdict} (of processor time {work:.2f})"


def _calls() -> dict[str, Counter[str]]:
    """How often each method of the API was called, in runs apart from those that are timed."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, _ours(Path(folder)) as (program, emulator):
        file = program.root / ".emulator" / "endpoint.json"
        endpoint = json.loads(file.read_text())
        for case, arguments in _CASES.items():
            proxy = CountingProxy(emulator.url)
            with proxy.serving() as url:
                file.write_text(json.dumps({**endpoint, "url": url}))
                program.run(*arguments)
            # A look whether it runs is no call of the API.
            found[case] = Counter({call: n for call, n in proxy.calls.items() if call != "GET healthz"})
        file.write_text(json.dumps(endpoint))
    return found


@contextmanager
def _ours(folder: Path) -> Iterator[tuple[Program, Emulator]]:
    program = ours(folder, JOBS)
    with _full_emulator(program.root / ".emulator") as emulator:
        yield program, emulator


def _bare(folder: Path) -> Cost:
    """The calls alone, each with the labels that ours have too."""
    folder.mkdir()
    labels = {f"pulumi_{name}": "x" * 20 for name in ("project", "stack", "name", "token", "mark")}
    bodies = folder / "jobs"
    bodies.write_text("".join(json.dumps({**spec(index), "labels": labels}) + "\n" for index in range(JOBS)))
    with _full_emulator(folder / "data") as emulator:
        return cost([sys.executable, "-m", "benchmarks.bare_calls", emulator.url, str(bodies)], _CHECKOUT, os.environ)


@contextmanager
def _full_emulator(data: Path) -> Iterator[Emulator]:
    """An emulator in which other jobs have to wait."""
    data.mkdir()
    try:
        with running(data) as emulator:
            room = emulator.call("GET", "vertex_emulator/status")["replicas"]["capacity"]
            container = {"imageUri": IMAGE, "command": ["sleep", "3600"]}
            pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
            pools = [{**pool, "replicaCount": 1}, {**pool, "replicaCount": room - 1}]
            job = {"displayName": "takes all the room", "jobSpec": {"workerPoolSpecs": pools}}
            emulator.call("POST", f"v1/{PARENT.replace('local', 'others', 1)}/customJobs", job)
            yield emulator
    finally:
        command = [sys.executable, "-m", "vertex_emulator", "reset", "--yes", "--data", str(data)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
