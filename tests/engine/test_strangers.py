"""A pull request of a stranger, previewed and reviewed: what its files reach without its program's help."""

import json
import subprocess
from typing import Any

import pytest

from tests.engine.project import Project

CANARY = "canaryOfTheRunnerQ8f2"
HOSTILE_NAME = "a`b\n::error::<img src=x>@everyone\x1b[2J](javascript:0)|.py"
RUNS = f"import pathlib; pathlib.Path('RAN').write_text('{CANARY}')\n"


@pytest.fixture
def fork(project: Project) -> Project:
    """A checkout beside a home and a neighbour that have the canary."""
    home, neighbour = (project.root.parent / name for name in ("homes", "neighbour"))
    for folder in (home / ".config" / "gcloud", home / ".docker", neighbour):
        folder.mkdir(parents=True)
    secrets = [
        home / ".config/gcloud/application_default_credentials.json",
        home / ".netrc",
        home / ".docker/config.json",
    ]
    for file in (*secrets, neighbour / "jobs.yaml", neighbour / "Dockerfile", neighbour / "pyproject.toml"):
        file.write_text(f"FROM {CANARY}\n[{CANARY}\n")
    (project.root / ".git").mkdir()
    variables = {"HOME": str(home), "AWS_SECRET_ACCESS_KEY": CANARY, "GOOGLE_OAUTH_ACCESS_TOKEN": CANARY}
    project.environment |= variables | {"PULUMI_CONFIG_PASSPHRASE": project.environment["PULUMI_CONFIG_PASSPHRASE"]}
    return project


def texts(project: Project, **run: Any) -> list[str]:
    """Preview the stack in both forms, and review it; return all that can be read afterwards."""
    options = ("--stack", project.name)
    shown = [project.pulumi("preview", "--diff", *options, **run)]
    preview = project.pulumi("preview", "--json", "--show-sames", *options, **run)
    file = project.root.parent / "preview.json"
    file.write_text(preview[preview.index("{\n") :])
    review = ["vertex-training", "review", str(file)]
    shown += [preview, subprocess.run(review, check=True, capture_output=True, text=True).stdout]
    caches = [path for path in (project.root.parent / "homes" / ".cache").rglob("*") if path.is_file()]
    return shown + [path.read_bytes().decode(errors="replace") for path in caches]


def find_uris(preview: str) -> list[str]:
    """Return the URIs of images and packages in a preview."""
    steps = json.loads(preview[preview.index("{\n") :])["steps"]
    return [uri for step in steps if (uri := step["newState"].get("inputs", {}).get("uri"))]


def test_paths_out_of_the_checkout_are_problems(fork: Project) -> None:
    root = fork.root
    (root / "out").symlink_to("../neighbour")
    (root / "trainer" / "home").symlink_to("../../homes")
    fork.declarations["images"] |= {
        "a": {"context": "../neighbour"},
        "b": {"context": "out"},
        "c": {"context": "trainer", "dockerfile": "home/.netrc"},
        "d": {"context": str(root.parent / "homes")},
    }
    fork.declarations["packages"] = {"e": {"path": "out"}, "f": {"script": "../neighbour/train.py"}}
    fork.declarations["customJobs"]["g"] = {"spec": {"file": "out/jobs.yaml"}}
    fork.stack["vertex-training:include"] += ["out/*.yaml", "../neighbour", "/proc/self/environ", "~/.netrc"]
    fork.declare()
    shown = texts(fork, fails=True)
    assert "11 problems in what is declared:" in shown[0]
    assert CANARY not in "".join(shown)


def test_links_and_names_of_a_stranger_are_only_data(fork: Project) -> None:
    root = fork.root
    for folder in ("trainer", "package"):
        (root / folder).mkdir(exist_ok=True)
        (root / folder / "credentials").symlink_to("../../homes/.config/gcloud/application_default_credentials.json")
        (root / folder / "environment").symlink_to("/proc/self/environ")
        (root / folder / HOSTILE_NAME.replace("/", "")).write_text("x")
        for name in ("setup.py", "conftest.py", "sitecustomize.py", "usercustomize.py"):
            (root / folder / name).write_text(RUNS)
        (root / folder / "pyproject.toml").write_text("[build-system]\nrequires = []\nbackend-path = ['.']\n")
    (root / ".git" / "hooks").mkdir()
    hook = root / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch RAN\n")
    hook.chmod(0o755)
    (root / "trainer" / "Dockerfile").write_text("FROM scratch\nRUN touch /RAN\nCOPY . /\n")
    fork.declarations["packages"] = {"p": {"path": "package"}}
    fork.job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] = [HOSTILE_NAME]
    fork.declare()
    shown = texts(fork)
    assert CANARY not in "".join(shown) and not [*root.parent.rglob("RAN")]
    assert "\x1b" not in shown[2] and "\n::error::" not in shown[2] and "1 image to build" in shown[2]
    # What the links lead to decides neither the image's tag nor the package's.
    for file in (root.parent / "homes").rglob("*.json"):
        file.write_text("other")
    assert find_uris(texts(fork)[1]) == find_uris(shown[1]) != []
