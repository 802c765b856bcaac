"""Pulumi's resource options on jobs, as the real engine takes them."""

from tests.engine.project import Project
from tests.vertex_emulator.running import IMAGE

PROGRAM = """\
import os

import pulumi
from pulumi import Alias, ResourceOptions, ResourceTransformResult
from vertex_training import CustomJob

STEP = int(os.environ.get("STEP", "1"))


def job(name, *args, lifecycle=None, **options):
    container = {"imageUri": "IMAGE", "command": ["true"], "args": [*args]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
    spec = {"displayName": name, "jobSpec": {"workerPoolSpecs": [pool]}}
    return CustomJob(name, spec, ResourceOptions(**options), lifecycle=lifecycle)


def keep(resource):
    return ResourceTransformResult({**resource.props, "lifecycle": {"onDelete": "keep"}}, resource.opts)


if STEP == 1:
    job("retained", retain_on_delete=True)
    job("moved")
else:
    above = pulumi.ComponentResource("team:index:Above", "above")
    job("moved", parent=above, aliases=[Alias(parent=pulumi.ROOT_STACK_RESOURCE)])
job("guarded", protect=True)
job("ignoring", f"--step={STEP}", ignore_changes=["spec"])
job("replaced", lifecycle={"onDelete": "cancel" if STEP == 1 else "delete"}, replace_on_changes=["lifecycle"])
job("transformed", transforms=[keep])
""".replace("IMAGE", IMAGE)


def test_options_of_jobs_do_what_pulumi_says(project: Project) -> None:
    (project.root / "__main__.py").write_text(PROGRAM)
    del project.stack["vertex-training:include"]
    project.declare()
    project.up()
    before = project.resources()
    assert before["transformed"]["inputs"]["lifecycle"] == {"onDelete": "keep"}
    project.environment["STEP"] = "2"
    project.up()
    after = project.resources()
    assert "retained" not in after
    assert before["retained"]["id"] in {job["name"] for job in project.list_jobs()}
    same = {name for name in before.keys() & after.keys() if before[name].get("id") == after[name].get("id")}
    assert {"moved", "guarded", "ignoring", "transformed"} <= same
    assert "replaced" not in same
    assert "team:index:Above$" in after["moved"]["urn"]
    project.assert_no_changes()
    assert "protected" in project.pulumi("destroy", "--yes", "--skip-preview", "--stack=local", fails=True)
