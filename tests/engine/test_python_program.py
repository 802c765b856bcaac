"""A program of one's own with jobs in Python: the one on the page on Python, through the real engine."""

import re

from tests.engine.project import CHECKOUT, PARENT, Project


def test_the_documented_program_trains_and_uploads_a_model(project: Project) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (CHECKOUT / "docs" / "python.md").read_text(), re.DOTALL)
    (project.root / "__main__.py").write_text(program)
    del project.stack["vertex-training:include"]
    project.declare()
    project.up()
    (model,) = project.request("GET", f"{PARENT}/models")["models"]
    assert project.outputs()["model"] == model["name"]
    state = project.resources()
    kinds = {name: each["type"].rpartition(":")[2] for name, each in state.items() if "vertex:" in each["type"]}
    assert (
        kinds.items()
        >= {
            "train-0.1": "CustomJob",
            "train-0.2": "CustomJob",
            "search": "HyperparameterTuningJob",
            "release": "TrainingPipeline",
        }.items()
    )
    search = state["searched"]["outputs"]["results"]["search"]
    assert len(search["trials"]) == 4
    (held,) = project.list_jobs("trainingPipelines")
    (pool,) = held["trainingTaskInputs"]["workerPoolSpecs"]
    best = search["bestTrial"]["parameters"]["lr"]
    assert pool["containerSpec"]["args"] == ["--epochs=2", f"--lr={best}"]
    project.assert_no_changes()


FAULTY = """\
from components import CustomJob, Settings, create_foundation

pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "a", "args": ["${vars.a}"]}}
spec = {"displayName": "a", "jobSpec": {"workerPoolSpecs": [pool]}, "labels": {"pulumi_name": "a"}}
CustomJob("train", spec, foundation=create_foundation(Settings.load()), lifecycle={"wait": True, "onDelet": "keep"})
"""


def test_a_preview_shows_all_problems_of_a_program(project: Project) -> None:
    (project.root / "__main__.py").write_text(FAULTY)
    del project.stack["vertex-training:include"]
    project.declare()
    output = project.pulumi("preview", "--stack", "local", fails=True)
    assert "4 problems in what is declared:" in output
    for field in ("lifecycle.wait", "lifecycle.onDelet", "labels.pulumi_name", "jobSpec.workerPoolSpecs[0]"):
        assert f'CustomJob "train": {field}' in output
