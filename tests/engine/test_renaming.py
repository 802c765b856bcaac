"""Twenty jobs that have run, and each move of docs/moving.md with Pulumi's engine: what was submitted, and deleted."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.project import Project
from tests.standins import training


def job(name: str, *arguments: str) -> dict[str, Any]:
    container = {"imageUri": "python:3.11-slim-bookworm", "args": [*arguments]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
    return {"displayName": f"{name}-succeeded", "jobSpec": {"workerPoolSpecs": [pool]}}


class Renaming:
    """A project of jobs that have run; `server` stands in for the emulator."""

    def __init__(self, project: Project, server: training.Training) -> None:
        self.project, self.server = project, server
        jobs = {f"job{number}": job(f"job{number}", f"--seed={number}") for number in range(18)}
        self.jobs = {"a": job("a"), "b": job("b", "--model=${jobs.a.modelDir}", "${jobs.a.name}"), **jobs}
        self.up()

    def declare(self) -> None:
        self.project.declarations = {"customJobs": self.jobs}
        self.project.declare()

    def up(self, *options: str, fails: bool = False) -> str:
        self.declare()
        return self.project.up(*options, fails=fails)

    def submitted(self) -> list[str]:
        """The names of the jobs that were submitted since the last look, and of those that were deleted."""
        calls = [*self.server.calls]
        self.server.calls.clear()
        names = {id_: name for name, (id_, _) in self.state().items()}
        return sorted(f"{verb} {names.get(name, 'another')}" for verb, name in calls)

    def state(self, stack: str | None = None) -> dict[str, tuple[str, str]]:
        """The id and the URN of each job."""
        resources = self.project.resources(stack).items()
        return {name: (each["id"], each["urn"]) for name, each in resources if "run" in each.get("outputs", {})}

    def rename(self, old: str, new: str, **keys: Any) -> None:
        """Declare a job under another name, in its place."""
        self.jobs = {new if name == old else name: each for name, each in self.jobs.items()}
        self.jobs[new] = {**self.jobs[new], **keys}


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renaming]:
    project = Project(tmp_path_factory.mktemp("renaming"))
    with training.serve(project.data) as server:
        yield Renaming(project, server)


def test_each_job_has_run_once(moving: Renaming) -> None:
    assert moving.submitted() == sorted(f"POST {name}" for name in moving.jobs)
    moving.project.assert_no_changes("--refresh")


def test_labels_and_display_names_run_nothing(moving: Renaming) -> None:
    for name, each in moving.jobs.items():
        each.update(labels={"team": "vision"}, displayName=f"new-{name}-succeeded")
    printed = moving.up()
    assert "displayName and labels: from their next run on, of a, b," in printed
    assert moving.submitted() == []
    moving.project.assert_no_changes("--refresh")


def test_a_renamed_job_goes_on(moving: Renaming) -> None:
    kept = copy.deepcopy(moving.jobs)
    moving.rename("job3", "job33")
    moving.declare()
    hint = 'job33: runs what job3 has run, which is gone; add "formerly: job3" to go on with its run'
    assert hint in moving.project.pulumi("preview", "--stack", moving.project.name)
    moving.jobs = kept
    moving.rename("a", "first", formerly="a")
    moving.jobs["b"] = job("b", "--model=${jobs.first.modelDir}", "${jobs.first.name}")
    id_, _ = moving.state()["a"]
    assert "runs what" not in moving.up()
    assert (moving.submitted(), moving.state()["first"][0]) == ([], id_)
    moving.project.assert_no_changes("--refresh")
    del moving.jobs["first"]["formerly"]
    moving.declare()
    moving.project.assert_no_changes()


def test_a_target_does_not_run_what_uses_it_with_old_results(moving: Renaming) -> None:
    moving.jobs["first"]["lifecycle"] = {"rerun": 1}
    target = f"--target={moving.state()['first'][1]}"
    moving.declare()
    # The command line is that of the parent process, which a forked provider does not have.
    command = ("up", "--yes", "--skip-preview", "--stack", moving.project.name, target)
    process = moving.project.start_pulumi(*command)
    printed, _ = process.communicate(timeout=240)
    assert process.returncode != 0
    assert "b: would run again with the inputs of its last run" in printed
    assert moving.submitted() == []
    moving.up("--target", "**CustomJob::b")
    assert moving.submitted() == []
    moving.up(target, "--target-dependents")
    assert moving.submitted() == ["DELETE another", "DELETE another", "POST b", "POST first"]
    moving.project.assert_no_changes()


def test_a_renamed_stack_runs_nothing(moving: Renaming) -> None:
    project = moving.project
    project.pulumi("stack", "rename", "--stack", project.name, "other")
    project.name = "other"
    moving.up()
    assert moving.submitted() == []
    project.assert_no_changes("--refresh")


def test_a_job_in_another_stack_goes_on(moving: Renaming) -> None:
    project, there = moving.project, "there"
    project.create_stack(there)
    here, name = project.name, "job5"
    id_, urn = moving.state()[name]
    moved = moving.jobs.pop(name)
    # The component that the job is in must be there already.
    project.name, project.declarations = there, {"customJobs": {"other": job("other")}}
    project.declare()
    project.up()
    moving.server.calls.clear()
    project.pulumi("state", "move", "--yes", "--source", here, "--dest", there, urn)
    project.declarations["customJobs"][name] = {**moved, "formerly": name}
    project.declare()
    project.up()
    assert moving.submitted() == []
    assert moving.state()[name][0] == id_
    project.assert_no_changes("--refresh")
    project.name = here
    moving.up()
    assert moving.submitted() == []
    assert id_ in moving.server.jobs
    project.assert_no_changes("--refresh")
