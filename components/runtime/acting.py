"""Who may let jobs act at Google from this machine: nobody for a fork's code, and only whoever gets a token there."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vertex_api.acting import Acting
from vertex_api.errors import VertexError

from ..errors import ComponentError

_OTHERS = ("CI", "JENKINS_URL", "TF_BUILD", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID")
"""Variables of CI services, the first of nearly all."""
_UNSET = ("", "0", "false")
"""Values by which people say that this is no CI (`index.js` of npm's ci-info and is-in-ci; an empty one in shells)."""
_UNKNOWN = (
    "this CI does not say whether the code is a fork's; run it on your own machine, or unset {} if nobody else's code "
    "can be here (`vertex-training docs security`)"
)


class ActingRefused(ComponentError):
    """Jobs may not act as somebody at Google."""


def require_own_code(option: str, environment: Mapping[str, str] = os.environ) -> None:
    """Raise ActingRefused in CI for code of a fork, and where it cannot be told whose code it is."""
    environment = {name: value for name, value in environment.items() if value.lower() not in _UNSET}
    if "GITHUB_ACTIONS" in environment:
        ours, theirs, marker = environment.get("GITHUB_REPOSITORY"), _github_head(environment), "GITHUB_ACTIONS"
    elif "GITLAB_CI" in environment:
        of_gitlab = {name: environment.get(f"CI_MERGE_REQUEST_{name}_ID") for name in ("PROJECT", "SOURCE_PROJECT")}
        ours, theirs, marker = of_gitlab["PROJECT"], of_gitlab["SOURCE_PROJECT"], "GITLAB_CI"
        if environment.get("CI_PIPELINE_SOURCE") == "external_pull_request_event":
            ours, theirs = (
                environment.get(f"CI_EXTERNAL_PULL_REQUEST_{side}_REPOSITORY") for side in ("TARGET", "SOURCE")
            )
    elif marker := next((each for each in _OTHERS if each in environment), ""):
        ours, theirs = "", None
    else:
        return
    if theirs is None and marker == "GITLAB_CI" and ours is None:
        return  # no merge request
    if theirs is None:
        raise ActingRefused(f"{option}: {_UNKNOWN.format(marker)}")
    if theirs != ours:
        raise ActingRefused(
            f"{option}: this is a pull request of a fork ({theirs or 'which is gone'}), whose code must not act as "
            "anybody at Google; read it, and push it to a branch of your own (`vertex-training docs security`)"
        )


def _github_head(environment: Mapping[str, str]) -> str | None:
    """Return the repository whose code a run of GitHub's has, None if it cannot be told."""
    try:
        event: Any = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text())
        if "pull_request" in event:
            return str((event["pull_request"]["head"]["repo"] or {}).get("full_name", ""))
        if "workflow_run" in event:
            return str((event["workflow_run"]["head_repository"] or {}).get("full_name", ""))
        # A comment on a pull request runs what the workflow checks out, which may be any head.
        return None if event.get("issue") else environment["GITHUB_REPOSITORY"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def require_token(option: str, acting: Acting) -> None:
    """Raise ActingRefused with what to do if Google gives no token, which is not kept here."""
    try:
        acting.headers()
    except VertexError as error:
        raise ActingRefused(f"{option}: {error}") from error
