"""The recipes of docs/ci.md, in the shells of GitHub's and GitLab's runners."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests import recipes
from tests.engine.cloud import CloudProject
from tests.engine.environment import link_environment
from tests.engine.project import CHECKOUT
from tests.vertex_emulator.running import IMAGE, RunningEmulator

EXPRESSIONS = {"github.event.number": "42"}
VARIABLES = {"WORKLOAD_IDENTITY_PROVIDER": "projects/1/…", "DEPLOYER": "deployer@acme-dev", "GOOGLE_TOKEN": "token"}


@pytest.fixture
def checkout(tmp_path: Path, vertex: RunningEmulator) -> CloudProject:
    """A checkout on a runner, set up, with the stacks `dev` and `prod` of one job each; `gh` writes down its call."""
    project = CloudProject(tmp_path, vertex)
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(CHECKOUT / name, project.root)
    shutil.copytree(CHECKOUT / "tools", project.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    link_environment(project.root)
    project.declarations["images"] = {"trainer": {"uri": IMAGE}}
    project.container["command"] = ["true"]
    project.declare()
    prod = {**project.stack, "vertex-training:project": "acme-prod", "vertex-training:projectNumber": "210987654321"}
    (project.root / "stacks" / "Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": prod}))
    project.pulumi("stack", "init", "prod")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gh").write_text('#!/bin/sh\necho "$*" > gh-was-called-with\n')
    (programs / "gh").chmod(0o755)
    project.environment |= {**VARIABLES, "PATH": f"{programs}:{os.environ['PATH']}"}
    return project


def run(project: CloudProject, command: list[str]) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        command, cwd=project.root, env=project.environment, capture_output=True, text=True, timeout=240
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done


def run_github_job(project: CloudProject, job: str) -> "subprocess.CompletedProcess[str]":
    """Run a job of the workflow up to the first step that fails."""
    for command in recipes.github_steps(job, EXPRESSIONS):
        done = run(project, command)
        if done.returncode:
            break
    return done


def run_gitlab_job(project: CloudProject, job: str) -> "subprocess.CompletedProcess[str]":
    """Run a job of the pipeline; what it writes to /tmp lies beside the project."""
    script = recipes.gitlab_script(job).replace("/tmp/", f"{project.root.parent}/")
    return run(project, ["bash", "-c", script])


def test_workflows_comment_previews_and_leave_no_drift(checkout: CloudProject, vertex: RunningEmulator) -> None:
    done = run_github_job(checkout, "preview")
    assert done.returncode == 0, done.stdout + done.stderr
    called = (checkout.root / "gh-was-called-with").read_text().split()
    assert called[:3] == ["pr", "comment", "42"]
    comment = (checkout.root / called[-1]).read_text()
    assert comment.startswith("```\n") and comment.endswith("```\n") and "\x1b" not in comment
    assert "+ pulumi-python:dynamic/vertex:CustomJob: (create)" in comment
    assert not checkout.record.exists()

    done = run_github_job(checkout, "up")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.index("Updating (dev)") < done.stdout.index("Updating (prod)")
    assert run_github_job(checkout, "drift").returncode == 0

    job = json.loads(checkout.pulumi("stack", "output", "jobs", "--json", "--stack", "prod"))["train"]["name"]
    vertex.call("DELETE", f"v1/{job}")
    for pipeline in (run_github_job, run_gitlab_job):
        found = pipeline(checkout, "drift")
        assert found.returncode != 0
        assert "train" in found.stdout and "delete" in found.stdout, found.stdout
    assert vertex.answer(f"v1/{job}").status_code == 404  # looked, and touched nothing


def test_a_preview_with_a_mistake_fails_the_workflow(checkout: CloudProject) -> None:
    checkout.container["imageUri"] = "${images.trainr}"
    checkout.declare()
    for done in (run_github_job(checkout, "preview"), run_gitlab_job(checkout, "preview")):
        assert done.returncode != 0
        assert "${images.trainr} is not declared; did you mean trainer?" in done.stdout + done.stderr
    assert not (checkout.root / "gh-was-called-with").exists()
