"""What records of earlier runs cost: a preview of 1,000 jobs with ten runs each, beside one of jobs without."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from statistics import median

from vertex_training.review.diagnostics import cost_lines
from vertex_training.settings.settings import RUNS, Settings

from benchmarks.measure import Cost, row, seconds
from benchmarks.pulumi import Program, job_spec, our_program
from vertex_api.estimates.runs import MAX_RUNS, Run

JOBS = 1_000
ROUNDS = 9
TODAY = date(2026, 11, 1)
MAX_RATIO = 1.05


def rows() -> Iterator[str]:
    """Preview two stacks of the same jobs in turn, and price the records of one of them."""
    records = {f"job-{index}": "\n".join(map(str, _runs(index))) for index in range(JOBS)}
    with tempfile.TemporaryDirectory() as folder:
        pair = []
        for name in ("without", "with"):
            Path(folder, name).mkdir()
            pair.append(our_program(Path(folder, name), JOBS))
        _keep(pair[0], {})
        _keep(pair[1], {RUNS: records})
        costs = [[each.pulumi("preview") for each in pair] for _ in range(ROUNDS + 1)]
        plain, recorded = zip(*costs[1:], strict=True)  # the first round warms the file cache
    yield row(f"preview, {JOBS:,} jobs without runs", _clock(plain), "s", note=f"median of {ROUNDS}, alternating")
    size = len(json.dumps(records)) / 1e6
    yield row(f"preview, {JOBS:,} jobs, {MAX_RUNS} runs each", _clock(recorded), "s", note=f"{size:.2f} MB of records")
    pairs = [*zip(recorded, plain, strict=True)]
    processor = median(ours.processor / other.processor for ours, other in pairs)
    clock = median(ours.clock / other.clock for ours, other in pairs)
    # Of a difference of hundredths, the clock of a machine with other work says nothing.
    yield row("preview with runs, ratio of processor time", processor, "", MAX_RATIO, note=f"on the clock {clock:.2f}")
    yield from _price_rows(records, _clock(plain))


def _runs(index: int) -> Iterator[Run]:
    for day in range(1, MAX_RUNS + 1):
        duration = 7200 + 60 * day + index
        metrics = f"accuracy 0.{index:04}, loss 0.0{day}"
        yield Run(f"2026-10-{day:02}T09:00:00Z", duration, "1 n1-standard-4", duration, 0, 0.2453, metrics)


def _keep(program: Program, outputs: Mapping[str, Mapping[str, str]]) -> None:
    """Give the stack these outputs, as if its last update had exported them."""
    file = program.root / "exported.json"
    program.pulumi("stack", "export", "--file", str(file))
    state = json.loads(file.read_text())
    stack = {
        "urn": "urn:pulumi:benchmark::vertex-training::pulumi:pulumi:Stack::vertex-training-benchmark",
        "custom": False,
        "type": "pulumi:pulumi:Stack",
        "outputs": outputs,
    }
    state["deployment"]["resources"] = [stack]
    file.write_text(json.dumps(state))
    program.pulumi("stack", "import", "--file", str(file))


def _clock(costs: tuple[Cost, ...]) -> float:
    return median(cost.clock for cost in costs)


def _price_rows(records: Mapping[str, str], preview_seconds: float) -> Iterator[str]:
    """Measure what target `gcp` does with the records beside the same preview: it prices and shows them."""
    jobs = {name: {"jobSpec": job_spec(index)} for index, name in enumerate(records)}
    target = {"target": "gcp", "project": "acme-dev", "projectNumber": "123456789012", "region": "us-central1"}
    config = {f"vertex-training:{key}": value for key, value in target.items()}
    config["vertex-training:customJobs"] = json.dumps(jobs)
    with tempfile.TemporaryDirectory() as folder:
        took = []
        for found in ({}, records):
            plan = Settings.load_from_config(
                "team", "dev", Path(folder), config, records=lambda found=found: found
            ).plan
            took.append(seconds(lambda plan=plan: cost_lines(plan, date(2026, 11, 1))))
    without, priced = took
    yield row("table of cost without runs", without * 1000, "ms")
    yield row(f"table of cost, {MAX_RUNS} runs each", priced * 1000, "ms")
    share = 1 + (priced - without) / preview_seconds
    yield row("with its share of a preview, ratio", share, "", MAX_RATIO)
