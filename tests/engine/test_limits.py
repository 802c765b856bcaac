"""Limits: attempts to get a job past them, through the real engine. None is submitted."""

import json

from vertex_training.plan.shared import VARIABLE

from tests.engine.project import Project

SPEC = {
    "displayName": "big",
    "jobSpec": {
        "workerPoolSpecs": [
            {
                "machineSpec": {
                    "machineType": "a2-highgpu-1g",
                    "acceleratorType": "NVIDIA_TESLA_A100",
                    "acceleratorCount": 1,
                },
                "containerSpec": {"imageUri": "python"},
            }
        ]
    },
}
MAKE = "stack = TrainingStack('training')"
PROGRAM = f"""
import os
import pulumi
import vertex_training
from vertex_training import CustomJob, TrainingStack

BIG = {SPEC}
SMALL = {json.loads(json.dumps(SPEC).replace("a2-highgpu-1g", "n1-standard-4"))}
SMALL["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] = {{"machineType": "n1-standard-4"}}

def enlarge(args):
    if args.type_.endswith(":CustomJob"):
        args.props["spec"] = BIG
    return pulumi.ResourceTransformResult(args.props, args.opts)
"""
FREE = "free = TrainingStack('free', {'prefix': 'free-', 'include': [], 'guardrails': %s})"
ON_FREE = "CustomJob('big', BIG, foundation=free.foundation)"
ATTEMPTS = {
    "an argument that is empty": (f"{MAKE}\n{FREE % {}}\n{ON_FREE}", "guardrails: is empty, so it limits nothing"),
    "a second stack's foundation": (
        f"{MAKE}\n{FREE % {'maxReplicas': 3}}\n{ON_FREE}",
        'guardrails.machineTypes (limits.yaml): "a2-highgpu-1g" is not allowed here',
    ),
    "a transform": (
        f"{MAKE}\nCustomJob('big', SMALL, pulumi.ResourceOptions(transforms=[enlarge]))",
        'guardrails.machineTypes (limits.yaml): "a2-highgpu-1g" is not allowed here',
    ),
    "the environment of the program": (
        f"os.environ.pop('{VARIABLE}')\nos.environ['PULUMI_CONFIG'] = '{{\"vertex-training:target\": \"local\"}}'\n"
        f"{MAKE}\nCustomJob('big', BIG)",
        'guardrails.machineTypes (limits.yaml): "a2-highgpu-1g" is not allowed here',
    ),
}  # fmt: skip


def test_no_attempt_gets_past_the_limits(project: Project) -> None:
    (project.root / "limits").mkdir()
    (project.root / "limits" / "limits.yaml").write_text("machineTypes: [n1-*]\n")
    project.environment[VARIABLE] = "limits/limits.yaml"
    # The config of the project and of the stack allows all.
    about = (project.root / "Pulumi.yaml").read_text()
    allowing = "{value: {machineTypes: ['*'], acceleratorTypes: ['*']}}"
    (project.root / "Pulumi.yaml").write_text(f"{about}\nconfig: {{vertex-training:guardrails: {allowing}}}\n")
    project.stack = {"vertex-training:target": "local"}
    project.declare()
    for attempt in ("an argument that is empty", "a second stack's foundation", "a transform"):
        lines, said = ATTEMPTS[attempt]
        (project.root / "__main__.py").write_text(f"{PROGRAM}\n{lines}\n")
        preview = project.pulumi("preview", "--stack", project.name, fails=True)
        assert said in " ".join(preview.split()), (attempt, preview)
    # Without a preview, the provider refuses what the program does not see.
    for attempt in ("a transform", "the environment of the program"):
        lines, said = ATTEMPTS[attempt]
        (project.root / "__main__.py").write_text(f"{PROGRAM}\n{lines}\n")
        assert said in " ".join(project.up(fails=True).split())
    assert project.list_jobs("customJobs") == []
    assert project.resources()["job-names"]["inputs"]["settings"]["guardrails"]
