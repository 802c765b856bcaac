"""Jobs that have run, and each move of docs/moving.md with Pulumi's engine: what was submitted, and deleted."""

import copy
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.blocks import taken
from tests.engine.cloud import GCP, CloudProject
from tests.engine.project import Project
from tests.standins import training


def job(name: str, *arguments: str) -> dict[str, Any]:
    container = {"imageUri": "python:3.11-slim-bookworm", "args": [*arguments]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
    return {"displayName": f"{name}-succeeded", "jobSpec": {"workerPoolSpecs": [pool]}}


class Renaming:
    """A project of jobs that have run; `server` stands in for the emulator."""

    def __init__(self, project: Project, server: training.Training, jobs: int = 8, *, scheduled: bool = False) -> None:
        self.project, self.server = project, server
        seeded = {f"job{number}": job(f"job{number}", f"--seed={number}") for number in range(jobs - 2)}
        self.jobs = {"a": job("a"), "b": job("b", "--model=${jobs.a.modelDir}", "${jobs.a.name}"), **seeded}
        self.schedules: dict[str, Any] = {}
        if scheduled:
            self.jobs["later"] = job("later") | {"lifecycle": {"run": "scheduled"}}
            self.schedules = {"nightly": {"cron": "0 2 * * *", "job": "later"}}
        self.up()

    def declare(self) -> None:
        self.project.declarations = {"customJobs": self.jobs, "schedules": self.schedules}
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


def test_names_and_labels_run_nothing_but_a_new_name_without_the_old(moving: Renaming) -> None:
    for name, each in moving.jobs.items():
        each.update(labels={"team": "vision"}, displayName=f"new-{name}-succeeded")
    moving.rename("job3", "job33")
    moving.rename("a", "first", formerly="a")
    moving.jobs["b"]["jobSpec"] = job("b", "--model=${jobs.first.modelDir}", "${jobs.first.name}")["jobSpec"]
    id_, _ = moving.state()["a"]
    moving.declare()
    shown, printed = moving.project.preview_and_up()
    hint = 'job33: runs what job3 has run, which is gone; add "formerly: job3" to go on with its run'
    assert hint in shown and set(re.findall(r"(\S+): runs what", shown + printed)) == {"job33"}
    assert "displayName and labels: from their next run on, of b, first," in printed
    assert (moving.submitted(), moving.state()["first"][0]) == (["DELETE another", "POST job33"], id_)
    del moving.jobs["first"]["formerly"]
    moving.declare()
    moving.project.assert_no_changes("--refresh")


def test_a_target_does_not_run_what_uses_it_with_old_results(moving: Renaming) -> None:
    moving.jobs["first"]["lifecycle"] = {"rerun": 1}
    target = f"--target={moving.state()['first'][1]}"
    printed = moving.up(target, fails=True)
    assert "b: would run again with the inputs of its last run" in printed
    assert moving.submitted() == []
    moving.up("--target", "**CustomJob::b")
    assert moving.submitted() == []
    moving.up(target, "--target-dependents")
    assert moving.submitted() == ["DELETE another", "DELETE another", "POST b", "POST first"]


def test_a_renamed_stack_runs_nothing(moving: Renaming) -> None:
    project = moving.project
    project.pulumi("stack", "rename", "--stack", project.name, "other")
    project.name = "other"
    moving.up()
    assert moving.submitted() == []


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


BEFORE, AFTER = taken("docs/moving.md", "yaml")[2:4]
"""What of the page a stack has before its rename, and after it."""


PREFIXED = """\
import pulumi
import vertex_training as vt

below = pulumi.ComponentResource("team:index:Squad", "below")
opts = pulumi.ResourceOptions(%s)
vt.TrainingStack("training", {"prefix": "east-", "formerly": ""}, opts)
"""
ALIAS = "aliases=[pulumi.Alias(parent=None)]"


def settings(block: str) -> dict[str, Any]:
    """Return the settings of a block of the page, with the names that are ours."""
    text = block.replace("team-dev", "vertex-training-dev").replace("team/dev", "vertex-training/dev")
    return dict(yaml.safe_load(text.replace("acme-", "acme-dev-"))["config"])


@pytest.fixture(scope="class")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renaming]:
    folder = tmp_path_factory.mktemp("cloud")
    with training.serve(folder / "vertex") as server:
        project = CloudProject(folder, server)
        cloud = Renaming(project, server, jobs=3, scheduled=True)
        cloud.submitted()
        yield cloud


class TestCloud:
    """A stack of the target gcp with jobs that have run and a schedule; each test goes on from the one before it."""

    def test_a_renamed_stack_runs_nothing(self, cloud: Renaming) -> None:
        project = cloud.project
        project.stack |= settings(BEFORE)
        cloud.declare()
        project.assert_no_changes()
        project.pulumi("stack", "rename", "--stack", "dev", "prod")
        project.name = "prod"
        project.stack |= settings(AFTER)
        cloud.declare()
        _, steps = project.update()
        jobs = [(step["op"], step["name"], step["changed"]) for step in steps if step["type"] == "CustomJob"]
        assert jobs == [("update", name, ["owner"]) for name in ("a", "b", "job0")]
        assert {step["op"] for step in steps} <= {"update", "create"}
        assert cloud.submitted() == []

    def test_another_prefix_runs_nothing(self, cloud: Renaming) -> None:
        project = cloud.project
        (project.root / "__main__.py").write_text(PREFIXED % ALIAS)
        cloud.up()
        assert cloud.submitted() == []
        project.assert_no_changes("--refresh")

    def test_a_project_becomes_two_as_its_stack_moves_into_a_component(self, cloud: Renaming) -> None:
        project, second = cloud.project, copy.copy(cloud.project)
        second.root, second.name = project.root.parent / "second", "there"
        shutil.copytree(project.root, second.root, symlinks=True)
        program = second.root / "Pulumi.yaml"
        program.write_text(program.read_text().replace("name: vertex-training", "name: second"))
        (second.root / "__main__.py").write_text("import vertex_training\n\nvertex_training.run()\n")
        second.create_stack("there")
        second.stack = GCP | {
            "vertex-training:bucket": {"existing": "acme-dev-vertex-training-dev"},
            "vertex-training:identity": {"existing": "vertex-training-dev@acme-dev.iam.gserviceaccount.com"},
        }
        id_, urn = cloud.state()["east-job0"]
        moved = cloud.jobs.pop("job0")
        second.declarations = {"customJobs": {"other": job("other"), "east-job0": moved | {"formerly": "east-job0"}}}
        second.declare()
        source, dest = "organization/vertex-training/prod", "organization/second/there"
        project.pulumi("state", "move", "--yes", "--source", source, "--dest", dest, urn)
        second.up()
        assert cloud.submitted() == ["POST another"], "the job that the project had before"
        assert second.resources()["east-job0"]["id"] == id_
        second.assert_no_changes("--refresh")
        (project.root / "__main__.py").write_text(PREFIXED % "parent=below")
        refused = project.pulumi("preview", "--stack", project.name, fails=True)
        assert "is TrainingStack$GcpFoundation in the state, and Google Cloud has a stack's bucket" in refused
        (project.root / "__main__.py").write_text(PREFIXED % f"parent=below, {ALIAS}")
        before = len(project.read_provider_calls())
        cloud.up()
        assert cloud.submitted() == []
        assert "delete" not in {call["operation"] for call in project.read_provider_calls()[before:]}
        assert id_ in cloud.server.jobs
        assert "::team:index:Squad$" in cloud.state()["east-a"][1]
        cloud.project.assert_no_changes("--refresh")
