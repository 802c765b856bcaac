"""Autopackaged images and Python packages through the real engine, on both targets."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.cloud import CloudProject
from tests.engine.project import Project
from tests.standins.cloud_storage import cloud_storage
from tests.vertex_emulator.running import IMAGE, RunningEmulator

PACKAGE = {"path": "trainer", "script": "train.py", "baseImage": IMAGE}


@pytest.fixture
def vertex(tmp_path: Path) -> Iterator[RunningEmulator]:
    """What takes the jobs of the target gcp."""
    emulator = RunningEmulator(tmp_path / "vertex")
    yield emulator
    emulator.close()


def test_a_script_becomes_one_image_for_all_pools(project: Project) -> None:
    project.declarations["images"]["trainer"] = {"package": PACKAGE}
    (pool,) = project.job["jobSpec"]["workerPoolSpecs"]
    project.job["jobSpec"]["workerPoolSpecs"] = [pool, {**pool, "replicaCount": 2}]
    project.declare()
    shown = project.pulumi("preview", "--stack", "local", "--diff")
    assert len(set(re.findall(r'imageUri: "(\S+)"', shown))) == 1
    assert "package/train.py" in shown

    project.up()
    assert project.outputs()["results"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
    project.assert_no_changes()

    (project.root / "trainer" / "__pycache__").mkdir()
    (project.root / "trainer/__pycache__/train.pyc").touch()
    project.assert_no_changes()
    project.edit_code()
    steps = project.steps()
    assert {(step["type"], step["op"]) for step in steps} >= {("TrainingImage", "update"), ("CustomJob", "replace")}
    (image,) = [step for step in steps if step["type"] == "TrainingImage"]
    assert image["changed"] == ['files["package/train.py"]', "uri"]


def test_a_package_is_uploaded_before_its_job_runs(project: Project) -> None:
    project.declarations["packages"] = {"script": {"script": "trainer/train.py"}}
    project.container["command"] = ["test", "-f"]
    project.container["args"] = ["${packages.script}"]
    project.declare()
    shown = project.pulumi("preview", "--stack", "local", "--diff")
    (uri,) = set(re.findall(r"gs://vertex-training-local/packages/script-[0-9a-f]{16}\.tar\.gz", shown))

    project.container["args"] = ["/gcs/" + uri.removeprefix("gs://")]
    project.container["env"] = [{"name": "PACKAGE", "value": "${packages.script}"}]
    project.declare()
    project.up()
    assert project.outputs()["results"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
    project.assert_no_changes()
    project.edit_code()
    steps = project.steps()
    assert ("PythonPackage", "update") in {(step["type"], step["op"]) for step in steps}
    assert ("CustomJob", "replace") in {(step["type"], step["op"]) for step in steps}


def test_a_package_is_uploaded_after_its_bucket_exists(tmp_path: Path, vertex: RunningEmulator) -> None:
    project = CloudProject(tmp_path, vertex)
    project.declarations["images"] = {"trainer": {"uri": IMAGE}}
    project.declarations["packages"] = {"script": {"script": "trainer/train.py"}}
    project.container["command"] = ["true"]
    project.container["args"] = ["${packages.script}"]
    project.declare()
    assert not [step for step in project.steps() if "unknown" in str(step)]
    with cloud_storage() as storage:
        project.environment["STORAGE_EMULATOR_HOST"] = storage.url
        output = project.up()
        project.assert_no_changes()
    ((bucket, name),) = storage.objects
    assert bucket == "acme-dev-vertex-training-dev"
    assert re.fullmatch(r"vertex-training/dev/packages/script-[0-9a-f]{16}\.tar\.gz", name)
    assert f"script: uploaded {name.rpartition('/')[2]}" in output
    recorded = project.resources()
    assert any(urn.endswith("::ledger") for urn in recorded["script"]["dependencies"])
    assert any(urn.endswith("::bucket") for urn in recorded["ledger"]["dependencies"])
