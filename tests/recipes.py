"""The recipes of docs/ci.md, testing.md and releasing.md: what their files hold, and their steps as shell scripts."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.blocks import taken


def texts() -> tuple[str, str]:
    """The files for GitHub Actions and for GitLab."""
    (github,) = taken("docs/ci.md", "yaml", "name: training\n")
    (gitlab,) = taken("docs/ci.md", "yaml", ".google:")
    return github, gitlab


def emulator_workflow() -> str:
    """The file for GitHub Actions that tests with the emulator."""
    (text,) = taken("docs/testing.md", "yaml")
    return text


def release_workflow() -> str:
    """The file for GitHub Actions that publishes a version."""
    (text,) = taken("docs/releasing.md", "yaml")
    return text


def github_steps(job: str, values: Mapping[str, str]) -> list[list[str]]:
    """The commands that GitHub's runner starts for a job's steps of shell code, with `values` for its expressions.

    Source: GitHub's workflow syntax, "jobs.<job_id>.steps[*].shell". Fails on an expression that has no value.
    """
    steps = yaml.safe_load(texts()[0])["jobs"][job]["steps"]
    filled = re.compile(r"\$\{\{ *(\S+) *\}\}")
    shells = {None: ["bash", "-e"], "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"]}
    return [
        [*shells[step.get("shell")], "-c", filled.sub(lambda found: values[found[1]], step["run"])]
        for step in steps
        if "run" in step
    ]


def gitlab_script(job: str) -> str:
    """The shell code of a job, variables, `before_script` and all, as GitLab's runner joins it."""
    pipeline = yaml.safe_load(texts()[1])
    base = pipeline[pipeline[job]["extends"]] if "extends" in pipeline[job] else {}
    whole: dict[str, Any] = {"before_script": [], "variables": {}, **base, **pipeline[job]}
    variables = {**base.get("variables", {}), **whole["variables"]}
    exports = [f'export {name}="{value}"' for name, value in variables.items()]
    return "\n".join(["set -eo pipefail", *exports, *whole["before_script"], *whole["script"]])
