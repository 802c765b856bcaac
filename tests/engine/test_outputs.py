"""The outputs of a stack of many jobs: a line for each, in a form that the stack may choose."""

import json
import shlex
from pathlib import Path

from vertex_training.stack import MAX_FULL

from tests.engine.project import Project
from tests.standins import training


def test_many_jobs_have_brief_outputs(tmp_path: Path) -> None:
    project = Project(tmp_path)
    container = {"imageUri": "localhost/trainer:1"}
    spec = {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}]}
    job = {"jobSpec": spec, "lifecycle": {"wait": True}}
    names = [f"job-{number:02}" for number in range(MAX_FULL + 1)]
    project.declarations = {"customJobs": {name: {**job, "displayName": f"{name}-succeeded"} for name in names}}
    project.declare()
    with training.serve(project.data):
        printed = project.up()
        outputs = project.outputs()
        project.assert_no_changes()
        project.stack["vertex-training:outputs"] = "full"
        project.declare()
        project.up()
        full = project.outputs()
    shown = printed.partition("\nOutputs:\n")[2].partition("\nResources:\n")[0].splitlines()
    assert len([line for line in shown if "job-" in line]) == 2 * len(names) and len(shown) <= 2 * len(names) + 12
    for name in names:
        assert outputs["jobs"][name] == f"SUCCEEDED {full['jobs'][name]['name']}"
        results = dict(word.split("=", 1) for word in shlex.split(outputs["results"][name]))
        said = {
            key: value if isinstance(value, str) else json.dumps(value) for key, value in full["results"][name].items()
        }
        assert results == said
