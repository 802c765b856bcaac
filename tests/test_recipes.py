"""Pipelines: their files are ones that GitHub and GitLab take, and log in to Google Cloud without a key."""

import os
import subprocess
from pathlib import Path

import yaml
from google.auth import identity_pool

from tests import go_program, recipes

GITLAB_KEYS = {"image", "variables", "id_tokens", "before_script", "extends", "rules", "script", "resource_group"}
GITLAB_KEYS |= {"needs", "artifacts"}
"""The keywords of a job that the recipe uses (GitLab's CI/CD YAML syntax reference)."""
PROVIDER = "projects/1/locations/global/workloadIdentityPools/ci/providers/git"
DEPLOYER = "deployer@acme-dev.iam.gserviceaccount.com"
TOKEN = "canary-of-a-pipeline-token"


def test_actionlint_finds_nothing_in_the_workflows(tmp_path: Path) -> None:
    program = go_program.built("github.com/rhysd/actionlint/cmd/actionlint", "v1.7.7")
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    workflow = tmp_path / ".github" / "workflows" / "training.yml"
    for text in (recipes.texts()[0], recipes.emulator_workflow()):
        workflow.write_text(text)
        checked = subprocess.run(
            [program, "-shellcheck=", "-pyflakes=", workflow], cwd=tmp_path, capture_output=True, text=True
        )
        assert (checked.returncode, checked.stdout) == (0, "")
    # It would have: a job that is needed and is not there.
    workflow.write_text(recipes.texts()[0].replace("runs-on:", "needs: nothing\n    runs-on:"))
    assert subprocess.run([program, workflow], cwd=tmp_path, capture_output=True).returncode == 1


def test_both_pipelines_review_update_and_look_for_drift() -> None:
    github, gitlab = map(yaml.safe_load, recipes.texts())
    jobs = {"preview", "dev", "plan", "prod", "drift"}
    assert github["jobs"].keys() == jobs
    assert github["permissions"]["id-token"] == "write"
    assert gitlab.keys() == {".google", *jobs}
    assert set().union(*gitlab.values()) == GITLAB_KEYS
    assert {gitlab[name]["extends"] for name in jobs} == {".google"}
    for pipeline in (github["jobs"], gitlab):
        assert (pipeline["plan"]["needs"], pipeline["prod"]["needs"]) in (("dev", "plan"), (["dev"], ["plan"]))


def test_code_of_pull_requests_runs_as_an_account_that_only_reads() -> None:
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


def test_gitlab_s_steps_write_workload_identity_credentials(tmp_path: Path) -> None:
    script = recipes.gitlab_script("dev").replace("/tmp/", f"{tmp_path}/")
    variables = {"GOOGLE_TOKEN": TOKEN, "WORKLOAD_IDENTITY_PROVIDER": PROVIDER, "DEPLOYER": DEPLOYER}
    log_in = script[: script.index("eval ")] + '\nprintf %s "$GOOGLE_APPLICATION_CREDENTIALS"'
    done = subprocess.run(
        ["bash", "-c", log_in], env=os.environ | variables, capture_output=True, text=True, check=True
    )
    credentials = identity_pool.Credentials.from_file(done.stdout)
    assert credentials.service_account_email == DEPLOYER
    assert credentials.info["audience"] == f"//iam.googleapis.com/{PROVIDER}"
    assert credentials.retrieve_subject_token(None) == TOKEN
