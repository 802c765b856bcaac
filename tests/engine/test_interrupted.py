"""`pulumi` is killed and the declarations are edited before the next run: no orphan is left."""

from collections.abc import Iterator

import pytest

from tests.engine.killing import kill_pulumi_at
from tests.engine.project import Project
from tests.vertex_emulator.running import IMAGE


@pytest.fixture
def interrupted(project: Project) -> Iterator[Project]:
    """A project whose `up` was killed after the job `train` was posted."""
    project.declarations["images"] = {}
    project.container.update(imageUri=IMAGE, command=["true"], args=[])
    project.declarations["vars"] = {}
    project.job["lifecycle"] = {}
    project.declare()
    kill_pulumi_at(project, "POST", "/customJobs", "up")
    assert len(project.list_jobs()) == 1
    assert "train" not in project.resources()
    yield project


def test_an_edited_job_replaces_its_orphan(interrupted: Project) -> None:
    (before,) = interrupted.list_jobs()
    interrupted.container["env"] = [{"name": "EDITED", "value": "yes"}]
    interrupted.declare()
    output = interrupted.up()
    (after,) = interrupted.list_jobs()
    assert after["name"] != before["name"]
    assert f"train: removing {before['name']}, which a killed run has left" in output
    interrupted.assert_no_changes()


def test_an_orphan_no_longer_declared_is_removed(interrupted: Project) -> None:
    jobs = interrupted.declarations["customJobs"]
    jobs["renamed"] = jobs.pop("train")
    interrupted.declare()
    interrupted.up()
    assert [job["displayName"] for job in interrupted.list_jobs()] == ["renamed"]
    interrupted.assert_no_changes()

    # A removal that nothing has interrupted leaves it to Pulumi to remove what its state records.
    jobs["again"] = jobs.pop("renamed")
    interrupted.declare()
    assert "which a run that was killed" not in interrupted.up()
    assert [job["displayName"] for job in interrupted.list_jobs()] == ["again"]
    interrupted.assert_no_changes()

    # Nor is there any drift after it, with or without another up: a name that is gone is not gone anew.
    drift = ("refresh", "--stack", "local", "--preview-only", "--expect-no-changes")
    interrupted.pulumi(*drift)
    interrupted.up()
    interrupted.pulumi(*drift)


def test_destroy_removes_orphans(interrupted: Project) -> None:
    interrupted.destroy()
    interrupted.start_emulator()
    assert interrupted.list_jobs() == []


def test_up_with_refresh_restores_after_a_killed_destroy(interrupted: Project) -> None:
    interrupted.up()
    kill_pulumi_at(interrupted, "DELETE", "/customJobs", "destroy")
    assert interrupted.list_jobs() == []
    interrupted.up("--refresh")
    assert len(interrupted.list_jobs()) == 1
    interrupted.assert_no_changes()
