"""What `pulumi` costs with many jobs: previews, updates and calls, beside resources that do nothing and bare calls.

A job that takes all the room of the emulator keeps the others in its queue. Needs Docker, and about six minutes.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import yaml

from benchmarks.emulator import full
from benchmarks.measure import Cost, cost_rows, row, run
from tests.forwarding_proxy import ForwardingProxy
from tools.setup import CHECKOUT, VENV, exports

MAX_PREVIEW_RATIOS = {8: 1.3, 1_000: 0.95}
PREVIEW_ROUNDS = {8: 15, 1_000: 5}
JOBS = 1_000
ROUNDS = 3
MAX_RATIOS = {"up": 1.3, "up without a change": 1.15, "preview without a change": 1.15}
"""The engine writes the whole state before and after each step of an `up`, so its cost follows the size of a resource
in it, and grows with the square of their number.

1,000 jobs are 2.5 MB there and 1,000 of the others 2.3 MB: those have a short spec and no outputs of their own, but the
call stack that Pulumi records (`engine.without_stack_trace`). With the inputs, outputs, options and parent of jobs, and
without call stacks, those take what jobs take (pulumi 3.259, November 2026).
"""
PULUMI_CASES = {
    "up": ("up", "--yes", "--skip-preview"),
    "up without a change": ("up", "--yes", "--skip-preview", "--expect-no-changes"),
    "preview without a change": ("preview", "--expect-no-changes"),
}
COUNTED_JOBS = 200
MAX_CALLS: dict[str, dict[str, int]] = {"up": {"create customJobs": COUNTED_JOBS, "list customJobs": 1}}
"""The calls of each case, none if it is not here. A call that is not here is one too many."""
_COLLECTIONS = ("customJobs", "hyperparameterTuningJobs", "trainingPipelines", "operations")


def preview_rows() -> Iterator[str]:
    """Measure a preview of 8 and of 1,000 jobs, and of as many resources that do nothing, in turn.

    The inputs of those are the short spec that a job declares; jobs have defaults, a parent and their own folder too.
    """
    for jobs, max_ratio in MAX_PREVIEW_RATIOS.items():
        with tempfile.TemporaryDirectory() as folder:
            ours, noop = our_program(Path(folder), jobs), noop_program(Path(folder), jobs)
            costs = [(ours.pulumi("preview"), noop.pulumi("preview")) for _ in range(PREVIEW_ROUNDS[jobs] + 1)]
        # The first round warms the file cache.
        yield from cost_rows("preview", jobs, *zip(*costs[1:], strict=True), max_ratio=max_ratio)


def up_rows() -> Iterator[str]:
    """Run them in turn: yield for each case a line for ours, for the others, and for the ratio."""
    costs: dict[str, list[tuple[Cost, ...]]] = {case: [] for case in PULUMI_CASES}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            bare = _bare_calls(Path(folder, "bare"))
            ours, noop = our_program(Path(folder), JOBS), noop_program(Path(folder), JOBS)
            with full(ours.root / ".emulator"):
                for case, arguments in PULUMI_CASES.items():
                    noop_cost = noop.pulumi(*arguments)
                    costs[case].append((ours.pulumi(*arguments), noop_cost, *([bare] if case == "up" else [])))
    for case, rounds in costs.items():
        yield from cost_rows(case, JOBS, *zip(*rounds, strict=True), max_ratio=MAX_RATIOS[case])


def _bare_calls(folder: Path) -> Cost:
    """Measure the calls alone, each with the labels that our jobs have."""
    folder.mkdir()
    labels = {f"pulumi_{name}": "x" * 20 for name in ("project", "stack", "name", "token", "mark")}
    jobs = [{"displayName": f"job-{i}", "jobSpec": job_spec(i), "labels": labels} for i in range(JOBS)]
    bodies = folder / "jobs"
    bodies.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    with full(folder / "data") as emulator:
        command = [sys.executable, "-m", "benchmarks.bare", emulator.url, str(bodies)]
        return run(command, CHECKOUT, os.environ)


class CountingProxy(ForwardingProxy):
    """Forwards to `upstream`; `calls` counts them by verb and collection."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.calls: Counter[str] = Counter()

    def record_call(self, method: str, path: str) -> None:
        """Count a call under the name that Google's pages have for it, such as `list customJobs`."""
        parts = urlsplit(path).path.split("/")
        collection = next((part for part in parts if part.partition(":")[0] in _COLLECTIONS), None)
        custom_verb = parts[-1].partition(":")[2]
        verb = {"GET": "list" if parts[-1] == collection else "get", "POST": "create", "DELETE": "delete"}[method]
        self.calls[f"{custom_verb or verb} {collection}" if collection else f"{method} {parts[-1]}"] += 1


def call_rows() -> Iterator[str]:
    """Run the cases in turn, and yield for each a line with its calls and their limit."""
    with tempfile.TemporaryDirectory() as folder:
        program = our_program(Path(folder), COUNTED_JOBS)
        data = program.root / ".emulator"
        with full(data) as emulator:
            endpoint = (data / "endpoint.json").read_text()
            for case, arguments in PULUMI_CASES.items():
                proxy = CountingProxy(emulator.url)
                with proxy.serving() as url:
                    (data / "endpoint.json").write_text(json.dumps({**json.loads(endpoint), "url": url}))
                    program.pulumi(*arguments)
                # The check whether the emulator runs is not part of the API.
                calls = {call: count for call, count in proxy.calls.items() if call != "GET healthz"}
                yield _excess_row(case, calls)
            (data / "endpoint.json").write_text(endpoint)


def _excess_row(case: str, calls: dict[str, int]) -> str:
    excess = sum(max(0, count - MAX_CALLS.get(case, {}).get(call, 0)) for call, count in calls.items())
    text = ", ".join(f"{count:,} {call}" for call, count in sorted(calls.items())) or "none"
    return row(f"{case}, {COUNTED_JOBS} jobs, calls more than before", excess, "", 0, note=text)


_NOOP_PROGRAM = """\
import json
from noop import Noop

for name, inputs in json.load(open("inputs.json")).items():
    Noop(name, inputs)
"""
_NOOP_RESOURCE = """\
from pulumi import dynamic


class NoopProvider(dynamic.ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props):
        return dynamic.CreateResult("noop", {**props})


class Noop(dynamic.Resource, module="benchmark", name="Noop"):
    def __init__(self, name, inputs):
        super().__init__(NoopProvider(), name, inputs)
"""


@dataclass(frozen=True)
class Program:
    """A project with a stack `benchmark` and a state of its own."""

    root: Path

    def pulumi(self, *arguments: str) -> Cost:
        """Run `pulumi` with these arguments and return what all its processes cost."""
        command = ["pulumi", *arguments, "--stack", "benchmark", "--non-interactive"]
        return run(command, self.root, self._environment)

    def init(self) -> Self:
        """Create the stack, and return the program."""
        (self.root / "state").mkdir()
        command = ["pulumi", "stack", "init", "benchmark"]
        subprocess.run(command, cwd=self.root, env=self._environment, check=True, capture_output=True)
        return self

    @property
    def _environment(self) -> dict[str, str]:
        # Python keeps what it has compiled, as it does by default.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        backend = {"PULUMI_BACKEND_URL": f"file://{self.root}/state", "PULUMI_CONFIG_PASSPHRASE": ""}
        return {**inherited, **exports.DEFAULTS, **backend}


def our_program(folder: Path, job_count: int) -> Program:
    """Write the program of this project with custom jobs."""
    project = folder / "ours"
    project.mkdir()
    for file in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(CHECKOUT / file, project)
    (project / ".venv").symlink_to(VENV)
    (project / "stacks").mkdir()
    config = {"vertex-training:target": "local", "vertex-training:include": ["jobs.yaml"]}
    (project / "stacks" / "Pulumi.benchmark.yaml").write_text(json.dumps({"config": config}))
    declared = {f"job-{index}": {"jobSpec": job_spec(index)} for index in range(job_count)}
    (project / "jobs.yaml").write_text(yaml.safe_dump({"customJobs": declared}))
    return Program(project).init()


def noop_program(folder: Path, resource_count: int) -> Program:
    """Write a program whose resources have the short spec of a job and do nothing with it."""
    project = folder / "noop"
    (project / "noop").mkdir(parents=True)
    shutil.copy(CHECKOUT / "Pulumi.yaml", project)
    (project / ".venv").symlink_to(VENV)
    (project / "__main__.py").write_text(_NOOP_PROGRAM)
    (project / "noop" / "__init__.py").write_text(_NOOP_RESOURCE)
    names = [f"job-{index}" for index in range(resource_count)]
    inputs = {name: {"key": f"benchmark/{name}", "spec": job_spec(index)} for index, name in enumerate(names)}
    (project / "inputs.json").write_text(json.dumps(inputs))
    return Program(project).init()


def job_spec(index: int) -> dict[str, Any]:
    """Return the shortest CustomJobSpec that a team would write."""
    container = {"imageUri": "localhost/benchmark/trainer:1", "args": [f"--seed={index}"]}
    machine = {"machineType": "n1-standard-4"}
    return {"workerPoolSpecs": [{"machineSpec": machine, "replicaCount": 1, "containerSpec": container}]}
