"""Two programs with as many resources: ours with training jobs, and one whose dynamic resources do nothing."""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PARENT = "projects/local/locations/us-central1"
_CHECKOUT = Path(__file__).parents[1]
_ENVIRONMENT = {
    "PULUMI_CONFIG_PASSPHRASE": "",
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
}
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
class Cost:
    """What a command costs: seconds on the clock, and seconds of the processors that its processes used."""

    clock: float
    processor: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.clock + other.clock, self.processor + other.processor)


@dataclass(frozen=True)
class Program:
    """A project with a stack `benchmark` and a state of its own."""

    root: Path

    def run(self, *arguments: str) -> Cost:
        """Run `pulumi` with these arguments and return what all its processes cost."""
        return measure(
            ["pulumi", *arguments, "--stack", "benchmark", "--non-interactive"], self.root, self._environment
        )

    def initialize(self) -> Program:
        """Make the stack, and return the program."""
        (self.root / "state").mkdir()
        command = ["pulumi", "stack", "init", "benchmark"]
        subprocess.run(command, cwd=self.root, env=self._environment, check=True, capture_output=True)
        return self

    @property
    def _environment(self) -> dict[str, str]:
        # Python keeps what it has compiled, as it does by default.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, **_ENVIRONMENT, "PULUMI_BACKEND_URL": f"file://{self.root}/state"}


def measure(command: list[str], folder: Path, environment: Mapping[str, str]) -> Cost:
    """Run a command and return what it costs, with all the processes that it waits for."""
    before, begin = _processor_seconds(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    clock = time.perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return Cost(clock, _processor_seconds() - before)


def format_medians(costs: Sequence[Cost]) -> str:
    """Return the medians of several runs as text."""
    clock = statistics.median(cost.clock for cost in costs)
    processor = statistics.median(cost.processor for cost in costs)
    return f"{clock:7.2f} s   {processor:7.2f} s of the processors"


def format_ratio(name: str, ours: Sequence[Cost], others: Sequence[Cost], max_ratio: float) -> str:
    """Return a line with the median ratio of runs that were made in turn, and whether it is at most `max_ratio`."""
    pairs = list(zip(ours, others, strict=True))
    clock = statistics.median(mine.clock / other.clock for mine, other in pairs)
    processor = statistics.median(mine.processor / other.processor for mine, other in pairs)
    verdict = "met" if clock <= max_ratio else "MISSED"
    return f"{name:45} {clock:7.2f}     at most {max_ratio}: {verdict} (of processor time {processor:.2f})"


def write_our_program(folder: Path, jobs: int) -> Program:
    """Write the program of this project with custom jobs."""
    project = folder / "ours"
    for room in ("components", "vertex_api", "vertex_emulator"):
        shutil.copytree(_CHECKOUT / room, project / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(_CHECKOUT / file, project)
    (project / ".venv").symlink_to(_CHECKOUT / ".venv")
    (project / "stacks").mkdir()
    config = {"vertex-training:target": "local", "vertex-training:include": ["jobs.yaml"]}
    (project / "stacks" / "Pulumi.benchmark.yaml").write_text(json.dumps({"config": config}))
    declared = {f"job-{index}": {"jobSpec": short_job_spec(index)} for index in range(jobs)}
    (project / "jobs.yaml").write_text(yaml.safe_dump({"customJobs": declared}))
    return Program(project).initialize()


def write_noop_program(folder: Path, resources: int) -> Program:
    """Write a program whose resources have the short spec of a job and do nothing with it."""
    project = folder / "noop"
    (project / "noop").mkdir(parents=True)
    shutil.copy(_CHECKOUT / "Pulumi.yaml", project)
    (project / ".venv").symlink_to(_CHECKOUT / ".venv")
    (project / "__main__.py").write_text(_NOOP_PROGRAM)
    (project / "noop" / "__init__.py").write_text(_NOOP_RESOURCE)
    inputs = {
        f"job-{index}": {"key": f"benchmark/job-{index}", "spec": short_job_spec(index)} for index in range(resources)
    }
    (project / "inputs.json").write_text(json.dumps(inputs))
    return Program(project).initialize()


def short_job_spec(index: int) -> dict[str, Any]:
    """Return the shortest CustomJobSpec that a team would write."""
    container = {"imageUri": "localhost/benchmark/trainer:1", "args": [f"--seed={index}"]}
    machine = {"machineType": "n1-standard-4"}
    return {"workerPoolSpecs": [{"machineSpec": machine, "replicaCount": 1, "containerSpec": container}]}


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
