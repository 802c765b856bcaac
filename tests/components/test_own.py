"""What `pulumi up`, `vertex-training run` and `data lock` leave beside a project becomes no input of the next one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from vertex_training.data.listing import _files
from vertex_training.images.autopackage import PackageContext
from vertex_training.images.context import DockerfileContext
from vertex_training.own import Own
from vertex_training.packages import SourceDistribution
from vertex_training.schema.source import SourceFile
from vertex_training.settings.entries import included

STAMPED = "runs/train-20261128-010203"
WRITTEN = (
    ".emulator/secrets.json",
    ".emulator/gcs/acme/jobs.yaml",
    ".pulumi/stacks/a.json",
    ".pulumi-state/.pulumi/stacks/a.json",
    "state/.pulumi/stacks/a.json",
    f"{STAMPED}/model/task.py",
    f"{STAMPED}/jobs.yaml",
    "moved/token",
    "data.lock",
)
"""Files that this package or Pulumi writes, `moved` by VERTEX_EMULATOR_DATA."""
OF_USERS = ("runs/config/a.py", "nested/data.lock", "inputs/a.py", "emulator/a.py", "runs.py")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose top folder is all that a user may declare."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", "moved")
    for name, text in {"Pulumi.yaml": "name: a\n", "train.py": "", "setup.py": "", "jobs.yaml": ""}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY . /app\n")
    write(tmp_path, OF_USERS)
    return tmp_path


def write(root: Path, names: tuple[str, ...]) -> None:
    """Write files, each with a canary."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("canary")


def image(root: Path) -> DockerfileContext:
    return DockerfileContext(root, "Dockerfile", {}, None, "linux/amd64")


def script(root: Path) -> PackageContext:
    package = {"baseImage": "python:3.11", "path": ".", "script": "train.py"}
    return PackageContext(root, "Dockerfile", {}, None, "linux/amd64", package=package)  # type: ignore[arg-type]


def of_context(make: Callable[[Path], DockerfileContext | PackageContext]) -> Callable[[Path], tuple[str, set[str]]]:
    return lambda root: ((context := make(root)).tag, set(context.files.values()))


def distribution(root: Path) -> tuple[str, set[str]]:
    found = SourceDistribution.of(root, "a", {"path": "."})
    return found.tag, set(found.archive.files.values())


def data(root: Path) -> tuple[str, set[str]]:
    parts = {part.name: str(part) for part in _files(".", root)}
    return str(sorted(parts.items())), {*parts}


def declarations(root: Path) -> tuple[str, set[str]]:
    found, problems = included(root, SourceFile(""), ["**/*.yaml"])
    assert problems == []
    return "", {*found}


@pytest.mark.parametrize("read", [of_context(image), of_context(script), distribution, data, declarations])
def test_own_output_is_no_input(read: Callable[[Path], tuple[str, set[str]]], project: Path) -> None:
    digest, names = before = read(project)
    if read is not declarations:
        assert names >= {*OF_USERS} and digest
    write(project, WRITTEN)
    assert read(project) == before


def test_the_lock_is_in_what_names_it(project: Path) -> None:
    write(project, WRITTEN)
    (project / "Dockerfile").write_text("FROM scratch\nCOPY . data.lock /app/\n")
    assert "data.lock" in image(project).files
    (project / "Dockerfile").write_text("FROM scratch\nCOPY . /app/\n")
    assert "data.lock" not in image(project).files
    (project / ".dockerignore").write_text("*\n!data.lock\n!.emulator\n")
    assert set(image(project).files) == {"data.lock", "Dockerfile"}


def test_a_folder_that_is_asked_for_is_whole(project: Path) -> None:
    write(project, (*WRITTEN, f"{STAMPED}/Dockerfile", ".emulator/gcs/acme/Dockerfile"))
    assert set(image(project / STAMPED).files) == {"Dockerfile", "jobs.yaml", "model/task.py"}
    assert set(image(project / ".emulator" / "gcs" / "acme").files) == {"Dockerfile", "jobs.yaml"}


def test_folders_of_other_projects_are_own_too(project: Path) -> None:
    write(project / "sub", ("Pulumi.yaml", *WRITTEN))
    own = Own(project)
    assert own.covers(f"sub/{STAMPED}/x") and own.covers("sub/.emulator/secrets.json") and own.covers("sub/data.lock")
    assert not own.covers("other/runs/train-20261128-010203/x")
