"""`pulumi up --target`: a part of a stack is brought up, and the whole of it later, with no job run twice."""

import copy

from vertex_training.plan.job_rules import MARK_LABEL

from tests.engine.project import Project
from tests.vertex_emulator.running import IMAGE

TRAIN = ("--target", "**CustomJob::train")
BELOW = ("training", "local", "emulator", "job-names")
GROUND = tuple(option for name in BELOW for option in ("--target", f"**::{name}"))


def test_a_targeted_up_runs_only_that_job(project: Project) -> None:
    project.declarations["images"] = {}
    project.container.update(imageUri=IMAGE, command=["true"], args=["1"])
    project.declarations["customJobs"]["other"] = copy.deepcopy(project.job)
    project.declare()
    refusal = project.up(*TRAIN, "--target", "**::training", fails=True)
    assert "CustomJob::train' depends on" in refusal and "::job-names'" in refusal
    assert "train" not in project.resources()

    project.up(*TRAIN, *GROUND)
    (first,) = project.list_jobs()
    assert (project.resources()["train"]["id"], MARK_LABEL in first["labels"]) == (first["name"], True)

    # The ledger is recorded by now, and has no part.
    project.container["args"] = ["2"]
    project.declare()
    project.up(*TRAIN)
    (second,) = project.list_jobs()
    assert (second["name"] != first["name"], MARK_LABEL in second["labels"]) == (True, False)

    project.up()
    names = {job["displayName"]: job["name"] for job in project.list_jobs()}
    assert (len(project.list_jobs()), names.keys(), names["train"]) == (2, {"train", "other"}, second["name"])
    assert project.outputs()["results"].keys() == {"train", "other"}
    project.assert_no_changes()
