"""Two programs with as many resources: ours with training jobs, and a plain one whose dynamic resources do nothing."""

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
from types import SimpleNamespace
from typing import Any

import yaml

from components.jobs.job import complete_spec
from vertex_api.kinds import CUSTOM_JOB
from vertex_api.validation.canonical import CanonicalSpec

PARENT = "projects/local/locations/us-central1"
_CHECKOUT = Path(__file__).parents[1]
_GROUND: Any = SimpleNamespace(
    staging="gs://vertex-training-benchmark", job_defaults={}, labels={}, encryption_key=None
)
"""What a stack `local` stands on, as far as a spec shows it."""
_ENVIRONMENT = {
    "PULUMI_CONFIG_PASSPHRASE": "",
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
}
_PLAIN = """\
import json
from noop import Noop

for name, inputs in json.load(open("inputs.json")).items():
    Noop(name, inputs)
"""
_NOOP = """\
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
    """Seconds that something took: on the clock, and of the processors that its processes used."""

    clock: float
    processor: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.clock + other.clock, self.processor + other.processor)


@dataclass(frozen=True)
class Program:
    """A project with a stack `benchmark` and a state of its own."""

    root: Path

    def run(self, *arguments: str) -> Cost:
        """What `pulumi` with these arguments costs, all its processes together."""
        return cost(["pulumi", *arguments, "--stack", "benchmark", "--non-interactive"], self.root, self._environment)

    def initialise(self) -> Program:
        """Makes the stack."""
        (self.root / "state").mkdir()
        command = ["pulumi", "stack", "init", "benchmark"]
        subprocess.run(command, cwd=self.root, env=self._environment, check=True, capture_output=True)
        return self

    @property
    def _environment(self) -> dict[str, str]:
        # Python keeps what it has compiled, as it does wherever nobody has told it otherwise.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, **_ENVIRONMENT, "PULUMI_BACKEND_URL": f"file://{self.root}/state"}


def cost(command: list[str], folder: Path, environment: Mapping[str, str]) -> Cost:
    """What a command costs, with all the processes that it waits for."""
    before, begin = _processor(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    clock = time.perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return Cost(clock, _processor() - before)


def medians(costs: Sequence[Cost]) -> str:
    """What something costs that was run several times, in words."""
    clock = statistics.median(cost.clock for cost in costs)
    processor = statistics.median(cost.processor for cost in costs)
    return f"{clock:7.2f} s   {processor:7.2f} s of the processors"


def ours(folder: Path, jobs: int) -> Program:
    """The program of this project with so many custom jobs."""
    project = folder / "ours"
    for room in ("components", "vertex_api", "vertex_emulator"):
        shutil.copytree(_CHECKOUT / room, project / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(_CHECKOUT / file, project)
    (project / ".venv").symlink_to(_CHECKOUT / ".venv")
    (project / "stacks").mkdir()
    config = {"vertex-training:target": "local", "vertex-training:include": ["jobs.yaml"]}
    (project / "stacks" / "Pulumi.benchmark.yaml").write_text(json.dumps({"config": config}))
    declared = {f"job-{index}": {"jobSpec": _job(index)} for index in range(jobs)}
    (project / "jobs.yaml").write_text(yaml.safe_dump({"customJobs": declared}))
    return Program(project).initialise()


def plain(folder: Path, jobs: int) -> Program:
    """A program with as many resources of the same inputs, whose provider does nothing."""
    project = folder / "plain"
    (project / "noop").mkdir(parents=True)
    shutil.copy(_CHECKOUT / "Pulumi.yaml", project)
    (project / ".venv").symlink_to(_CHECKOUT / ".venv")
    (project / "__main__.py").write_text(_PLAIN)
    (project / "noop" / "__init__.py").write_text(_NOOP)
    inputs = {
        f"job-{index}": {
            "owner": f"benchmark/benchmark/job-{index}",
            "parent": f"//local/{PARENT}",
            "spec": spec(index),
        }
        for index in range(jobs)
    }
    (project / "inputs.json").write_text(json.dumps(inputs))
    return Program(project).initialise()


def spec(index: int) -> Mapping[str, Any]:
    """What the program makes of a declared job."""
    declared = {"displayName": f"job-{index}", "jobSpec": _job(index)}
    return complete_spec(CanonicalSpec(CUSTOM_JOB, declared), 0, _GROUND, f"job-{index}").fields


def _job(index: int) -> dict[str, Any]:
    container = {"imageUri": "localhost/benchmark/trainer:1", "args": [f"--seed={index}"]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
    return {"workerPoolSpecs": [pool], "scheduling": {"timeout": "3600s"}}


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
