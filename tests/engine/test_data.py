"""Locked data through the real engine: a bucket of the emulator, its lock, and the jobs that refer to it."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.engine.project import Project, create_project
from tests.vertex_emulator.running import IMAGE

QUICK = {
    "jobSpec": {
        "workerPoolSpecs": [
            {
                "machineSpec": {"machineType": "n1-standard-4"},
                "containerSpec": {"imageUri": IMAGE, "command": ["true"]},
            }
        ]
    }
}


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project with a job that refers to data in the emulator's bucket, and one that does not."""
    with create_project(tmp_path_factory.mktemp("data")) as project:
        spec = QUICK["jobSpec"]["workerPoolSpecs"][0]
        reader = {**spec, "containerSpec": {**spec["containerSpec"], "args": ["${data.train}"]}}
        project.declarations = {
            "data": {"train": {"uri": "gs://acme/train/*.csv"}},
            "customJobs": {"reader": {"jobSpec": {"workerPoolSpecs": [reader]}}, "other": QUICK},
        }
        project.declare()
        write(project, "part-0.csv", "1,2")
        write(project, "part-1.csv", "3,4")
        yield project


def write(project: Project, name: str, content: str) -> None:
    """Write an object into the bucket's folder."""
    file = project.data / "gcs" / "acme" / "train" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


def run(project: Project, verb: str, code: int = 0) -> str:
    """Run `vertex-training data`, and return what it prints."""
    command = [sys.executable, "-m", "vertex_training.cli", "data", verb, "--stack", "local"]
    done = subprocess.run(
        command, cwd=project.root, env=project.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_changed_lock_runs_its_jobs_again(project: Project) -> None:
    assert "data.train: is not locked" in project.pulumi("preview", "--stack=local")
    assert run(project, "lock") == "train: locked: 2 objects, 6 bytes\n"
    pid = project.endpoint()["pid"]
    assert "is not locked" not in project.up()
    assert project.endpoint()["pid"] == pid
    write(project, "part-1.csv", "5,6")
    write(project, "part-2.csv", "7,8")
    write(project, "notes.txt", "is not named by the pattern")
    project.assert_no_changes()
    assert "differs from data.lock: part-1.csv changed, part-2.csv added" in run(project, "status", code=1)
    assert run(project, "lock") == "train: 1 object added, 1 changed, 9 bytes\n"
    write(project, "part-0.csv", "9,9")
    refused = project.up(fails=True)
    assert "reader: not submitted: data.train: gs://acme/train/*.csv is not what data.lock says" in refused
    assert "(part-0.csv changed)" in refused
    write(project, "part-0.csv", "1,2")  # a new generation of the same content
    assert [f"{step['op']} {step['name']}" for step in project.update().steps] == ["replace reader"]
    project.assert_no_changes()
    assert len(project.list_jobs()) == 2
    assert "is as locked" in run(project, "status")
