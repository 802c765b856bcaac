"""Pipelines: their files are ones that GitHub and GitLab take, and log in to Google Cloud without a key."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from google.auth import identity_pool

from tests import go_program, recipes
from tools.template import TEMPLATE

GITLAB_KEYS = {"image", "variables", "id_tokens", "before_script", "extends", "rules", "script", "resource_group"}
GITLAB_KEYS |= {"needs", "artifacts", "environment", "tags", "cache"}
"""The keywords of a job that the recipe uses (GitLab's CI/CD YAML syntax reference)."""
PROVIDER = "projects/1/locations/global/workloadIdentityPools/ci/providers/git"
DEPLOYER = "deployer@acme-dev.iam.gserviceaccount.com"
TOKEN = "canary-of-a-pipeline-token"


def test_actionlint_finds_nothing_in_the_workflows(tmp_path: Path) -> None:
    program = go_program.built("github.com/rhysd/actionlint/cmd/actionlint", "v1.7.7")
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    workflow = tmp_path / ".github" / "workflows" / "training.yml"
    for text in (recipes.texts()[0], recipes.emulator_workflow(), recipes.release_workflow()):
        workflow.write_text(text)
        checked = subprocess.run(
            [program, "-shellcheck=", "-pyflakes=", workflow], cwd=tmp_path, capture_output=True, text=True
        )
        assert (checked.returncode, checked.stdout) == (0, "")
    # It would have: a job that is needed and is not there.
    workflow.write_text(recipes.texts()[0].replace("runs-on:", "needs: nothing\n    runs-on:"))
    assert subprocess.run([program, workflow], cwd=tmp_path, capture_output=True).returncode == 1


def test_a_new_project_has_the_workflow_of_the_page() -> None:
    assert (TEMPLATE / ".github" / "workflows" / "training.yml").read_text() == recipes.texts()[0]


def test_github_runs_nothing_before_its_variables_are_set() -> None:
    """A project of the template has no stack `prod`, and its repository none of the variables at first."""
    jobs = yaml.safe_load(recipes.texts()[0])["jobs"]
    free = {name: job for name, job in jobs.items() if not str(job.get("if")).startswith("vars.")}
    assert {name: job["needs"] for name, job in free.items()} == {
        "rehearse": "preview",
        "comment": ["preview", "rehearse"],
        "prod": "plan",
    }
    assert [name for name, job in jobs.items() if "--stack prod" in str(job) and name not in free] == [
        name for name, job in jobs.items() if str(job.get("if")).startswith("vars.HAS_PROD")
    ]
    assert "needs.preview.result != 'skipped'" in jobs["comment"]["if"]


def test_both_pipelines_review_update_and_look_for_drift() -> None:
    github, gitlab = map(yaml.safe_load, recipes.texts())
    jobs = {"preview", "dev", "plan", "prod", "drift"}
    assert github["jobs"].keys() == gitlab.keys() - {".google"} == {*jobs, "rehearse", "comment"}
    assert {github["jobs"][name]["permissions"]["id-token"] for name in jobs} == {"write"}
    assert set().union(*gitlab.values()) == GITLAB_KEYS
    assert {gitlab[name]["extends"] for name in jobs} == {".google"}
    for pipeline in (github["jobs"], gitlab):
        assert (pipeline["plan"]["needs"], pipeline["prod"]["needs"]) in (("dev", "plan"), (["dev"], ["plan"]))


def test_pull_requests_run_as_a_reading_account() -> None:
    github, gitlab = map(yaml.safe_load, recipes.texts())
    accounts = {
        name: step["with"]["service_account"]
        for name, job in github["jobs"].items()
        for step in job["steps"]
        if "auth@" in step.get("uses", "")
    }
    reading = [name for name, account in accounts.items() if account == "${{ vars.PREVIEWER }}"]
    assert reading == ["preview", "plan"] and len(accounts) == 5
    assert [name for name in gitlab if gitlab[name].get("variables") == {"ACCOUNT": "$PREVIEWER"}] == reading
    assert "head.repo.full_name == github.repository" in github["jobs"]["preview"]["if"]
    assert "pull_request_target" not in github[True]


def test_code_of_a_branch_meets_no_right_to_write() -> None:
    github, gitlab = map(yaml.safe_load, recipes.texts())
    assert github["permissions"] == {"contents": "read"} and "secrets." not in str(github["env"])
    for name, job in github["jobs"].items():
        uses = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
        if name == "comment":
            assert job["permissions"] == {"pull-requests": "write"}
            assert not {"actions/checkout", "google-github-actions/auth"} & {*uses}
            assert "secrets." not in str(job) and "pulumi install" not in str(job)
        else:
            token = {} if name == "rehearse" else {"id-token": "write"}
            assert job["permissions"] == {"contents": "read", **token} and "GH_TOKEN" not in str(job)
            (checkout,) = (step["with"] for step in job["steps"] if "actions/checkout@" in step.get("uses", ""))
            assert checkout["persist-credentials"] is False
        assert job.get("environment") == (None if name in ("preview", "rehearse", "comment") else name)
    for rehearse in (github["jobs"]["rehearse"], gitlab["rehearse"]):
        assert not [word for word in ("auth", "secrets.", "vars.", "id_tokens", "extends") if word in str(rehearse)]
    assert gitlab["comment"]["variables"] == {"GIT_STRATEGY": "none"} and "id_tokens" not in gitlab["comment"]
    environments = {name: job.get("environment") for name, job in gitlab.items()}
    assert environments["comment"] == {"name": "review", "action": "access"}
    assert environments["preview"] == {"name": "dev", "action": "access"}
    assert [name for name, job in gitlab.items() if "REVIEW_TOKEN" in str(job)] == ["comment"]


HOSTILE_REVIEWS = {
    "a command": "/merge\n  /approve\nfine\n",
    "a million characters": "x" * 1_000_000,
    "no UTF-8": "\udcff",
    "a link to the environment": None,
}


@pytest.mark.parametrize("name", ["review.md", "rehearsed.md"])
@pytest.mark.parametrize("review", HOSTILE_REVIEWS.values(), ids=list(HOSTILE_REVIEWS))
def test_a_comment_is_data(review: str | None, name: str, tmp_path: Path) -> None:
    """What other jobs leave is somebody else's: neither a command of GitLab or a bot, nor a file of the job's."""
    if review is None:
        (tmp_path / name).symlink_to("/proc/self/environ")
    else:
        (tmp_path / name).write_text(review, errors="surrogateescape")
    (tmp_path / "gh").write_text('#!/bin/sh\ncase "$*" in *--paginate*) ;; *) cat body.md > sent;; esac\n')
    (tmp_path / "gh").chmod(0o755)
    variables = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "a/b", "GH_TOKEN": TOKEN}
    (command,) = recipes.github_steps("comment", {"github.event.number": "1"})
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    sent = tmp_path / "sent"
    assert (done.returncode == 0) == (review is not None) == sent.exists(), done.stderr
    if review is not None:
        lines = sent.read_bytes().split(b"\n")
        assert len(sent.read_bytes()) <= 60_010 and not any(line.lstrip().startswith(b"/") for line in lines)


def test_gitlab_s_steps_write_workload_identity_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = recipes.gitlab_script("dev").replace("/tmp/", "")
    variables = {"GOOGLE_TOKEN": TOKEN, "WORKLOAD_IDENTITY_PROVIDER": PROVIDER, "DEPLOYER": DEPLOYER}
    log_in = script[: script.index("pulumi install")] + '\nprintf %s "$GOOGLE_APPLICATION_CREDENTIALS"'
    done = subprocess.run(
        ["bash", "-c", log_in], env=os.environ | variables, capture_output=True, text=True, check=True
    )
    credentials = identity_pool.Credentials.from_file(done.stdout)
    assert credentials.service_account_email == DEPLOYER
    assert credentials.info["audience"] == f"//iam.googleapis.com/{PROVIDER}"
    assert credentials.retrieve_subject_token(None) == TOKEN


@pytest.mark.parametrize(
    ("tag", "heading", "refusal"),
    [
        ("v9.9.9", "## 9.9.9", ""),
        ("v9.9.8", "## 9.9.9", "the tag v9.9.8 is not v9.9.9"),
        ("v9.9.9", "## 9.9.9 (unreleased)", "CHANGELOG.md has no section '## 9.9.9'"),
    ],
)
def test_a_release_needs_its_tag_and_its_changes(tag: str, heading: str, refusal: str, tmp_path: Path) -> None:
    (tmp_path / "vertex_api").mkdir()
    (tmp_path / "vertex_api" / "__init__.py").write_text('__version__ = "9.9.9"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    check = next(
        step["run"] for step in yaml.safe_load(recipes.release_workflow())["jobs"]["build"]["steps"] if "run" in step
    )
    done = subprocess.run(
        ["bash", "-e", "-c", check],
        cwd=tmp_path,
        env={**os.environ, "GITHUB_REF_NAME": tag},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (int(bool(refusal)), refusal)
