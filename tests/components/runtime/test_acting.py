"""Whose code may act as somebody at Google from this machine, by what CI services say of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from vertex_training.runtime.acting import ActingRefused, require_own_code

GITHUB = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/train"}
GITLAB = {"CI": "true", "GITLAB_CI": "true", "CI_PROJECT_ID": "7"}
FORK, UNKNOWN = "this is a pull request of a fork", "does not say whether the code is a fork's"


def repository(name: str | None) -> dict[str, Any]:
    return {"head": {"repo": {"full_name": name} if name else None}}


def said(environment: dict[str, str]) -> str:
    with pytest.raises(ActingRefused) as refused:
        require_own_code("--as", environment)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def github(tmp_path: Path, event: Any) -> dict[str, str]:
    (tmp_path / "event.json").write_text(json.dumps(event))
    return {**GITHUB, "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}


@pytest.mark.parametrize(
    "event",
    [
        {"pull_request": repository("stranger/train")},
        {"pull_request": repository(None)},
        {"workflow_run": {"head_repository": {"full_name": "stranger/train"}}},
        {"workflow_run": {"head_repository": None}},
    ],
)
def test_a_fork_on_github_acts_as_nobody(event: Any, tmp_path: Path) -> None:
    assert said(github(tmp_path, event)).startswith(f"--as: {FORK} (")


@pytest.mark.parametrize("event", [{"issue": {"pull_request": {}}}, {"pull_request": {}}, [], "x"])
def test_what_github_does_not_say_is_refused(event: Any, tmp_path: Path) -> None:
    assert UNKNOWN in said(github(tmp_path, event))
    assert UNKNOWN in said({**GITHUB, "GITHUB_EVENT_PATH": str(tmp_path / "none.json")})
    assert UNKNOWN in said(GITHUB)


def test_own_code_on_github_may(tmp_path: Path) -> None:
    for event in ({"pull_request": repository("acme/train")}, {"ref": "refs/heads/main"}, {"schedule": "0 0 * * *"}):
        require_own_code("--as", github(tmp_path, event))


def test_gitlab_tells_a_fork_by_its_project() -> None:
    fork = {"CI_MERGE_REQUEST_PROJECT_ID": "7", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8"}
    assert FORK in said({**GITLAB, **fork})
    outside = {"CI_PIPELINE_SOURCE": "external_pull_request_event"}
    outside |= {f"CI_EXTERNAL_PULL_REQUEST_{side}_REPOSITORY": f"{side}/x" for side in ("TARGET", "SOURCE")}
    assert FORK in said({**GITLAB, **outside})
    assert UNKNOWN in said({**GITLAB, "CI_MERGE_REQUEST_PROJECT_ID": "7"})
    require_own_code("--as", GITLAB)
    require_own_code("--as", {**GITLAB, **fork, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7"})


@pytest.mark.parametrize("name", ["CI", "JENKINS_URL", "TF_BUILD", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID"])
def test_other_services_do_not_say_it(name: str) -> None:
    assert f"or unset {name} if nobody else's code can be here" in said({name: "true"})


@pytest.mark.parametrize("value", ["", "0", "false", "False"])
def test_a_machine_of_one_s_own_may(value: str) -> None:
    require_own_code("--as", {"HOME": "/root", "CI": value, "GITHUB_ACTIONS": value, "GITLAB_CI": value})
    assert UNKNOWN in said({**GITHUB, "CI": value})
