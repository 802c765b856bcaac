"""The recipes of docs/ci.md, in the shells of GitHub's and GitLab's runners."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest
import yaml

from tests import recipes
from tests.engine.cloud import CloudProject
from tests.engine.project import CHECKOUT
from tests.vertex_emulator.running import IMAGE, RunningEmulator

EXPRESSIONS = {"github.event.number": "42"}
GH = """\
#!/bin/sh
echo "$*" >> gh-was-called-with
case "$*" in *--paginate*) cat id-of-the-comment 2>/dev/null || true;; esac
"""
"""Writes down its calls, and finds the comment whose id is in a file."""
VARIABLES = {"WORKLOAD_IDENTITY_PROVIDER": "projects/1/…", "DEPLOYER": "deployer@acme-dev", "GOOGLE_TOKEN": "token"}
VARIABLES |= {"PREVIEWER": "previewer@acme-dev", "GITHUB_REPOSITORY": "acme/training"}


PULUMI = f"""\
#!/bin/sh
if [ "$*" = "install --no-plugins" ]
then ln -sfn {shlex.quote(str(CHECKOUT))}/.venv .venv
else exec {shlex.quote(shutil.which("pulumi") or "")} "$@"
fi
"""
"""Installs as if the package index had this package."""


@pytest.fixture
def checkout(tmp_path: Path, vertex: RunningEmulator) -> CloudProject:
    """A project on a runner, with the stacks `dev` and `prod` of one job each; `gh` writes down its call."""
    project = CloudProject(tmp_path, vertex)
    (project.root / ".venv").unlink()
    project.declarations["images"] = {"trainer": {"uri": IMAGE}}
    project.container["command"] = ["true"]
    project.declare()
    prod = {**project.stack, "vertex-training:project": "acme-prod", "vertex-training:projectNumber": "210987654321"}
    (project.root / "stacks" / "Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": prod}))
    project.create_stack("prod")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("gh", GH), ("pulumi", PULUMI)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
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
    """Run a job of the pipeline; what it writes to /tmp lies in a folder of its own there."""
    with TemporaryDirectory(dir="/tmp") as folder:
        return run(project, ["bash", "-c", recipes.gitlab_script(job).replace("/tmp/", f"{folder}/")])


def run_github_preview_until_comment(project: CloudProject) -> "tuple[int, list[str]]":
    """Run the preview, and the step that comments on it whatever came before; its exit code, and the calls of `gh`."""
    (preview,) = recipes.github_steps("preview", EXPRESSIONS)
    (comment,) = recipes.github_steps("comment", EXPRESSIONS)
    done = run(project, preview)
    (project.root / "gh-was-called-with").unlink(missing_ok=True)
    assert run(project, comment).returncode == 0
    return done.returncode, (project.root / "gh-was-called-with").read_text().splitlines()


@pytest.fixture
def notes(checkout: CloudProject) -> Iterator[list[dict[str, Any]]]:
    """The notes of a merge request in a GitLab of this machine."""
    notes: list[dict[str, Any]] = [{"id": 1, "body": "Looks good"}]

    class Notes(BaseHTTPRequestHandler):
        def respond(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length))["body"] if length else ""
            assert self.headers["PRIVATE-TOKEN"] == "of the project"
            if self.command == "POST":
                notes.append({"id": len(notes) + 1, "body": body})
            elif self.command == "PUT":
                notes[int(self.path.rpartition("/")[2]) - 1]["body"] = body
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(notes).encode())

        do_GET = do_POST = do_PUT = respond  # noqa: N815

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Notes) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        checkout.environment |= {"CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4"}
        checkout.environment |= {"CI_PROJECT_ID": "7", "CI_MERGE_REQUEST_IID": "42", "REVIEW_TOKEN": "of the project"}
        yield notes
        server.shutdown()


def test_workflows_apply_what_was_reviewed_and_leave_no_drift(checkout: CloudProject, vertex: RunningEmulator) -> None:
    code, calls = run_github_preview_until_comment(checkout)
    assert code == 0 and "--paginate repos/acme/training/issues/42/comments" in calls[0]
    assert calls[1] == "api --silent repos/acme/training/issues/42/comments -F body=@body.md"
    comment = (checkout.root / "review.md").read_text()
    assert comment.startswith("<!-- review of dev -->\n### Preview of `dev`\n")
    assert "- 1 job to submit: `train`" in comment and "| USD an hour | 0.00 | 0.27 |" in comment
    assert not checkout.record.exists()

    done = run_github_job(checkout, "dev")
    assert done.returncode == 0 and "Updating (dev)" in done.stdout, done.stdout + done.stderr
    checkout.environment["GITHUB_STEP_SUMMARY"] = str(checkout.root / "summary.md")
    done = run_github_job(checkout, "plan")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (checkout.root / "summary.md").read_text().startswith("### Preview of `prod`\n")
    done = run_github_job(checkout, "prod")
    assert done.returncode == 0 and "Updating (prod)" in done.stdout, done.stdout + done.stderr
    assert run_gitlab_job(checkout, "drift").returncode == 0
    # The plan is used up: run again, it would be one that nobody reviewed.
    done = run_gitlab_job(checkout, "prod")
    assert done.returncode != 0 and "plan.json: is older than the state: " in done.stderr
    assert "Updating (prod)" not in done.stdout

    job = checkout.resources("prod")["train"]["id"]
    vertex.call("DELETE", f"v1/{job}")
    found = run_github_job(checkout, "drift")
    assert found.returncode != 0
    assert "train" in found.stdout and "delete" in found.stdout, found.stdout
    look = recipes.github_steps("drift", EXPRESSIONS)[-1][-1].splitlines()[-1]
    assert look == recipes.gitlab_script("drift").splitlines()[-1]
    assert vertex.answer(f"v1/{job}").status_code == 404  # looked, and touched nothing


def test_a_mistake_fails_and_edits_the_comment(checkout: CloudProject, notes: list[dict[str, Any]]) -> None:
    done = run_gitlab_job(checkout, "preview")
    assert done.returncode == 0, done.stdout + done.stderr
    assert run_gitlab_job(checkout, "comment").returncode == 0
    assert len(notes) == 2 and "- 1 job to submit: `train`" in notes[1]["body"]

    checkout.container["imageUri"] = "${images.trainr}"
    checkout.declare()
    mistake = "${images.trainr} is not declared; did you mean trainer?`"
    done = run_gitlab_job(checkout, "preview")
    assert done.returncode != 0
    assert run_gitlab_job(checkout, "comment").returncode == 0
    assert len(notes) == 2 and notes[1]["body"].startswith("<!-- review of dev -->\n") and mistake in notes[1]["body"]

    (checkout.root / "id-of-the-comment").write_text("17\n")
    code, calls = run_github_preview_until_comment(checkout)
    assert code != 0
    assert calls[1] == "api --silent --method PATCH repos/acme/training/issues/comments/17 -F body=@body.md"
    assert mistake in (checkout.root / "review.md").read_text()


def test_a_rehearsal_says_first_what_fails(checkout: CloudProject, notes: list[dict[str, Any]]) -> None:
    """On the branch the container fails, which it does not on main."""
    git = ["git", "-c", "user.name=ci", "-c", "user.email=ci@acme.dev"]
    (checkout.root / ".gitignore").write_text(".venv\n*.json\n*.md\n")
    for command in (["git", "init", "--quiet"], ["git", "add", "."], [*git, "commit", "--quiet", "-m", "main"]):
        assert run(checkout, command).returncode == 0
    checkout.container["command"] = ["sh", "-c", "echo the data is not there; exit 3"]
    checkout.declare()
    assert run(checkout, [*git, "commit", "--quiet", "-a", "-m", "an edit"]).returncode == 0

    code, _ = run_github_preview_until_comment(checkout)
    assert code == 0 and (checkout.root / "review.md").read_text().startswith("<!-- review of dev -->\n### Preview")
    done = run_github_job(checkout, "rehearse")
    assert done.returncode == 1, done.stdout + done.stderr
    (comment,) = recipes.github_steps("comment", EXPRESSIONS)
    assert run(checkout, comment).returncode == 0
    lines = (checkout.root / "body.md").read_text().splitlines()
    assert lines[:2] == ["<!-- review of dev -->", "### Preview of `dev`"]
    assert lines[2].startswith("- **Runs**: ❌ no, 1 of 1 job failed: `train`: `The replica workerpool0-0 exited with")
    assert lines[2].endswith(" status of 3.`, and its log ends with `the data is not there`")
    assert json.loads((checkout.root / "base.json").read_text())["jobs"][0]["outcome"] == "succeeded"

    # The branch is mended; then the cache has the base.
    checkout.environment["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = "HEAD^"
    checkout.container["command"] = ["true"]
    checkout.declare()
    (checkout.root / "base.json").unlink()
    for runs in (2, 1):
        done = run_gitlab_job(checkout, "rehearse")
        assert (done.returncode, done.stderr.count("train: succeeded")) == (0, runs), done.stdout + done.stderr
        checkout.environment["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = "is not needed"
    assert run_gitlab_job(checkout, "comment").returncode == 0
    assert "### Preview of `dev`\n- **Runs**: yes, 1 rehearsed job\n" in notes[1]["body"]
