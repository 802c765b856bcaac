"""Two Pulumi programs with as many resources: one of jobs, and one of dynamic resources that do nothing."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from benchmarks.measurements import Cost, run_and_measure_command
from tools.setup import CHECKOUT, VENV, exports

PARENT = "projects/local/locations/us-central1"
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

    def run_and_measure_pulumi(self, *arguments: str) -> Cost:
        """Run `pulumi` with these arguments and return what all its processes cost."""
        command = ["pulumi", *arguments, "--stack", "benchmark", "--non-interactive"]
        return run_and_measure_command(command, self.root, self._environment)

    def create_stack_and_return_self(self) -> Self:
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


def create_our_program(folder: Path, job_count: int) -> Program:
    """Write the program of this project with custom jobs."""
    project = folder / "ours"
    project.mkdir()
    for file in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(CHECKOUT / file, project)
    (project / ".venv").symlink_to(VENV)
    (project / "stacks").mkdir()
    config = {"vertex-training:target": "local", "vertex-training:include": ["jobs.yaml"]}
    (project / "stacks" / "Pulumi.benchmark.yaml").write_text(json.dumps({"config": config}))
    declared = {f"job-{index}": {"jobSpec": build_short_job_spec(index)} for index in range(job_count)}
    (project / "jobs.yaml").write_text(yaml.safe_dump({"customJobs": declared}))
    return Program(project).create_stack_and_return_self()


def create_noop_program(folder: Path, resource_count: int) -> Program:
    """Write a program whose resources have the short spec of a job and do nothing with it."""
    project = folder / "noop"
    (project / "noop").mkdir(parents=True)
    shutil.copy(CHECKOUT / "Pulumi.yaml", project)
    (project / ".venv").symlink_to(VENV)
    (project / "__main__.py").write_text(_NOOP_PROGRAM)
    (project / "noop" / "__init__.py").write_text(_NOOP_RESOURCE)
    names = [f"job-{index}" for index in range(resource_count)]
    inputs = {
        name: {"key": f"benchmark/{name}", "spec": build_short_job_spec(index)} for index, name in enumerate(names)
    }
    (project / "inputs.json").write_text(json.dumps(inputs))
    return Program(project).create_stack_and_return_self()


def build_short_job_spec(index: int) -> dict[str, Any]:
    """Return the shortest CustomJobSpec that a team would write."""
    container = {"imageUri": "localhost/benchmark/trainer:1", "args": [f"--seed={index}"]}
    machine = {"machineType": "n1-standard-4"}
    return {"workerPoolSpecs": [{"machineSpec": machine, "replicaCount": 1, "containerSpec": container}]}
