"""A preview of 1,000 jobs, beside a plain program with as many dynamic resources that do nothing."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from components.job import completed
from vertex.kinds import CUSTOM_JOB

JOBS = 1_000
ROUNDS = 5
MOST = 1.15
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


def rows() -> Iterator[str]:
    """Runs the two in turn, and yields a line for each and one for the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        ours, plain = _ours(Path(folder)), _plain(Path(folder))
        times: dict[Path, list[float]] = {ours: [], plain: []}
        for _ in range(ROUNDS + 1):
            for project, taken in times.items():
                taken.append(_preview(project))
        # The first round warms the file cache.
        medians = {project: statistics.median(taken[1:]) for project, taken in times.items()}
        yield f"preview, {JOBS} jobs            {medians[ours]:6.2f} s"
        yield f"preview, {JOBS} no-op resources {medians[plain]:6.2f} s, with the same inputs"
        ratios = [mine / theirs for mine, theirs in zip(times[ours][1:], times[plain][1:], strict=True)]
        ratio = statistics.median(ratios)
        yield f"ratio                        {ratio:6.2f}   at most {MOST}: {'met' if ratio <= MOST else 'MISSED'}"


def _job(index: int) -> dict[str, Any]:
    container = {"imageUri": "localhost/benchmark/trainer:1", "args": [f"--seed={index}"]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
    return {"workerPoolSpecs": [pool], "scheduling": {"timeout": "3600s"}}


def _spec(index: int) -> Mapping[str, Any]:
    """What the program makes of a declared job."""
    declared = {"displayName": f"job-{index}", "jobSpec": _job(index)}
    return completed(CUSTOM_JOB, declared, 0, _GROUND, f"job-{index}")


def _ours(folder: Path) -> Path:
    project = folder / "ours"
    for room in ("components", "vertex"):
        shutil.copytree(_CHECKOUT / room, project / room)
    for file in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(_CHECKOUT / file, project)
    (project / ".venv").symlink_to(_CHECKOUT / ".venv")
    (project / "stacks").mkdir()
    config = {"vertex-training:target": "local", "vertex-training:include": ["jobs.yaml"]}
    (project / "stacks" / "Pulumi.benchmark.yaml").write_text(json.dumps({"config": config}))
    jobs = {f"job-{index}": {"jobSpec": _job(index)} for index in range(JOBS)}
    (project / "jobs.yaml").write_text(yaml.safe_dump({"customJobs": jobs}))
    return project


def _plain(folder: Path) -> Path:
    project = folder / "plain"
    (project / "noop").mkdir(parents=True)
    shutil.copy(_CHECKOUT / "Pulumi.yaml", project)
    (project / ".venv").symlink_to(_CHECKOUT / ".venv")
    (project / "__main__.py").write_text(_PLAIN)
    (project / "noop" / "__init__.py").write_text(_NOOP)
    inputs = {
        f"job-{index}": {
            "owner": f"benchmark/benchmark/job-{index}",
            "parent": "//local/projects/local/locations/us-central1",
            "spec": _spec(index),
        }
        for index in range(JOBS)
    }
    (project / "inputs.json").write_text(json.dumps(inputs))
    return project


def _preview(project: Path) -> float:
    state = project / "state"
    environment = {**os.environ, **_ENVIRONMENT, "PULUMI_BACKEND_URL": f"file://{state}"}
    if not state.exists():
        state.mkdir()
        command = ["pulumi", "stack", "init", "benchmark"]
        subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
    started = time.perf_counter()
    command = ["pulumi", "preview", "--stack", "benchmark", "--non-interactive"]
    subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started
