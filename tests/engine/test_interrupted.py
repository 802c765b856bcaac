"""`pulumi` is killed and the declarations are edited before the next run: no orphan is left."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.engine.killing import kill_pulumi_at
from tests.engine.project import Project, create_project
from tests.vertex_emulator.running import IMAGE

KILLED = ("same", "edited", "renamed")
DRIFT = ("refresh", "--stack", "local", "--preview-only", "--expect-no-changes")


class Resumed(NamedTuple):
    """The jobs that a killed `up` has submitted and those after the next `up`, by name, and what that one printed."""

    orphans: dict[str, str]
    jobs: dict[str, str]
    printed: str


@pytest.fixture(scope="class")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project with three jobs that end at once."""
    with create_project(tmp_path_factory.mktemp("interrupted")) as project:
        container = {"imageUri": IMAGE, "command": ["true"]}
        pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
        project.declarations = {"customJobs": {name: {"jobSpec": {"workerPoolSpecs": [pool]}} for name in KILLED}}
        project.declare()
        yield project


@pytest.fixture(scope="class")
def unsubmitted(stack: Project) -> int:
    """How many jobs an `up` has submitted that was killed before it submitted any."""
    kill_pulumi_at(stack, "GET", "pulumi_stack", "up")
    return len(stack.list_jobs())


@pytest.fixture(scope="class")
def resumed(stack: Project, unsubmitted: int) -> Resumed:
    """An `up` was killed after it had posted the jobs, two of which were edited before the next one."""
    kill_pulumi_at(stack, "POST", "/customJobs", "up", calls=len(KILLED))
    orphans = _jobs(stack)
    assert orphans.keys() == set(KILLED)
    assert not orphans.keys() & stack.resources().keys()
    jobs = stack.declarations["customJobs"]
    jobs["edited"] = {**jobs["edited"], "labels": {"edited": "yes"}}
    jobs["another"] = jobs.pop("renamed")
    stack.declare()
    printed = stack.up()
    return Resumed(orphans, _jobs(stack), printed)


class TestKilledRuns:
    """Tests of one stack, in order: each goes on from what the one before it has left."""

    def test_an_up_killed_before_submission_leaves_no_orphan(self, unsubmitted: int) -> None:
        assert unsubmitted == 0

    def test_up_adopts_the_job_of_a_killed_up(self, resumed: Resumed) -> None:
        assert resumed.jobs["same"] == resumed.orphans["same"]
        assert f"removing {resumed.orphans['same']}" not in resumed.printed

    def test_an_edited_job_replaces_its_orphan(self, resumed: Resumed) -> None:
        orphan = resumed.orphans["edited"]
        assert resumed.jobs["edited"] != orphan
        assert f"edited: removing {orphan}, which a killed run has left" in resumed.printed

    def test_an_orphan_no_longer_declared_is_removed(self, resumed: Resumed) -> None:
        assert resumed.jobs.keys() == {"same", "edited", "another"}
        assert resumed.orphans["renamed"] not in resumed.jobs.values()

    def test_pulumi_removes_what_its_state_records(self, stack: Project, resumed: Resumed) -> None:
        jobs = stack.declarations["customJobs"]
        jobs["again"] = jobs.pop("another")
        stack.declare()
        assert "which a killed run has left" not in stack.up()
        assert _jobs(stack).keys() == {"same", "edited", "again"}
        # Nor is there any drift after it, with or without another up: a name that is gone is not gone anew.
        stack.up("--refresh", "--expect-no-changes")
        stack.pulumi(*DRIFT)

    def test_up_with_refresh_restores_after_a_killed_destroy(self, stack: Project, resumed: Resumed) -> None:
        declared = stack.declarations["customJobs"].keys()
        kill_pulumi_at(stack, "DELETE", "/customJobs", "destroy", calls=len(declared))
        assert stack.list_jobs() == []
        stack.up("--refresh")
        assert _jobs(stack).keys() == declared
        stack.assert_no_changes()

    def test_destroy_removes_orphans(self, stack: Project, resumed: Resumed) -> None:
        jobs = stack.declarations["customJobs"]
        jobs["new"] = jobs["same"]
        stack.declare()
        kill_pulumi_at(stack, "POST", "/customJobs", "up")
        assert "new" in _jobs(stack) and "new" not in stack.resources()
        stack.destroy()
        stack.start_emulator()
        assert stack.list_jobs() == []


def _jobs(project: Project) -> dict[str, str]:
    """Return the names of the emulator's jobs, by the names that they are declared with."""
    jobs = {job["displayName"]: job["name"] for job in project.list_jobs()}
    assert len(jobs) == len(project.list_jobs())
    return jobs
