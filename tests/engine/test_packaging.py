"""Autopackaged images and Python packages through the real engine, on both targets."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.engine.cloud import CloudProject
from tests.engine.project import Project, create_project
from tests.standins.cloud_storage import cloud_storage
from tests.vertex_emulator.running import IMAGE, RunningEmulator

IS_UPLOADED = "import pathlib, sys; sys.exit(not pathlib.Path(sys.argv[1].replace('gs://', '/gcs/')).is_file())"
PACKAGE = {"path": "trainer", "script": "train.py", "baseImage": IMAGE}


@pytest.fixture
def vertex(tmp_path: Path) -> Iterator[RunningEmulator]:
    """What takes the jobs of the target gcp."""
    emulator = RunningEmulator(tmp_path / "vertex")
    yield emulator
    emulator.close()


class Packaged(NamedTuple):
    """A project, what its first `up` showed, and what a preview showed after an edit of the trainer's file."""

    project: Project
    shown: str
    edited: dict[tuple[str, str], list[str]]


@pytest.fixture(scope="class")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packaged]:
    """A script is packaged twice, as an image and as a source distribution, and both are used by one job."""
    with create_project(tmp_path_factory.mktemp("packaged")) as project:
        project.declarations["images"]["trainer"] = {"package": PACKAGE}
        project.declarations["packages"] = {"script": {"script": "trainer/train.py"}}
        (pool,) = project.job["jobSpec"]["workerPoolSpecs"]
        uploaded = {"command": ["python", "-c", IS_UPLOADED], "args": ["${packages.script}"]}
        second = {**pool, "replicaCount": 2, "containerSpec": {**pool["containerSpec"], **uploaded}}
        project.job["jobSpec"]["workerPoolSpecs"] = [pool, second]
        project.declare()
        shown = project.up("--diff")
        (project.root / "trainer" / "__pycache__").mkdir()
        (project.root / "trainer/__pycache__/train.pyc").touch()
        project.assert_no_changes()
        project.edit_code()
        edited = {(step["type"], step["op"]): step.get("changed", []) for step in project.steps()}
        yield Packaged(project, shown, edited)


class TestPackagedScript:
    """A script, packaged as an image and as a source distribution."""

    def test_a_script_becomes_one_image_for_all_pools(self, packaged: Packaged) -> None:
        assert len(set(re.findall(r'imageUri: "(\S+)"', packaged.shown))) == 1
        assert "package/train.py" in packaged.shown

    def test_a_package_is_uploaded_before_its_job_runs(self, packaged: Packaged) -> None:
        uris = re.findall(r"gs://vertex-training-local/packages/script-[0-9a-f]{16}\.tar\.gz", packaged.shown)
        assert len(set(uris)) == 1
        assert packaged.project.outputs()["results"]["train"]["state"] == "JOB_STATE_SUCCEEDED"

    def test_an_edited_script_replaces_both_and_the_job(self, packaged: Packaged) -> None:
        assert packaged.edited["TrainingImage", "update"] == ['files["package/train.py"]', "uri"]
        assert packaged.edited.keys() >= {("PythonPackage", "update"), ("CustomJob", "replace")}


def test_a_package_is_uploaded_after_its_bucket_exists(tmp_path: Path, vertex: RunningEmulator) -> None:
    project = CloudProject(tmp_path, vertex)
    project.declarations["images"] = {"trainer": {"uri": IMAGE}}
    project.declarations["packages"] = {"script": {"script": "trainer/train.py"}}
    project.container["command"] = ["true"]
    project.container["args"] = ["${packages.script}"]
    project.declare()
    with cloud_storage() as storage:
        project.environment["STORAGE_EMULATOR_HOST"] = storage.url
        output = project.up()
        project.assert_no_changes()
    ((bucket, name),) = storage.objects
    assert bucket == "acme-dev-vertex-training-dev"
    assert re.fullmatch(r"vertex-training/dev/packages/script-[0-9a-f]{16}\.tar\.gz", name)
    assert f"script: uploaded {name.rpartition('/')[2]}" in output
    recorded = project.resources()
    assert any(urn.endswith("::job-names") for urn in recorded["script"]["dependencies"])
    assert any(urn.endswith("::bucket") for urn in recorded["job-names"]["dependencies"])
