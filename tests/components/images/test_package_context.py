"""Contexts of packages: the digest changes with what is copied or installed, and with nothing else."""

import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vertex_training.images.package_context import PackageContext
from vertex_training.images.training_image_resource import create_build_context

from tests.components.projects import write

FILES = {
    "t/trainer/task.py": "print(1)\n",
    "t/trainer/util.py": "",
    "t/requirements.txt": "rich\n",
    "t/dep/foo.tar.gz": "x",
    "t/data/deep/a.csv": "1,2\n",
    "t/notes.md": "x",
    "t/other/unused.py": "x",
}
PACKAGE: dict[str, Any] = {
    "path": "t",
    "script": "trainer/task.py",
    "baseImage": "python:3.11",
    "requirements": ["pandas"],
    "extraPackages": ["dep/foo.tar.gz"],
    "extraDirs": ["data"],
}


def context(root: Path, **fields: Any) -> PackageContext:
    found = create_build_context(root, {"package": {**PACKAGE, **fields}})
    assert isinstance(found, PackageContext)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def read_archive(context: PackageContext) -> dict[str, bytes]:
    with context.open_archive() as archive, tarfile.open(fileobj=archive) as tar:
        return {member.name: stream.read() for member in tar.getmembers() if (stream := tar.extractfile(member))}


def test_the_context_has_copied_files_and_dockerfile(project: Path) -> None:
    one = context(project)
    expected = ["data/deep/a.csv", "dep/foo.tar.gz", "requirements.txt", "trainer/task.py", "trainer/util.py"]
    assert list(one.digests_by_context_path) == ["Dockerfile", *(f"package/{path}" for path in expected)]
    held = read_archive(one)
    assert held.pop("Dockerfile").decode() == one.dockerfile_text
    assert held == {f"package/{path}": FILES[f"t/{path}"].encode() for path in expected}


def test_a_top_level_script_copies_the_whole_path(
    project: Path,
) -> None:
    write(project, {"t/train.py": "", "t/Dockerfile": "FROM other\n"})
    one = context(project, script="./train.py")
    assert one.digests_by_context_path.keys() >= {
        "Dockerfile",
        "package/Dockerfile",
        "package/notes.md",
        "package/other/unused.py",
    }
    assert read_archive(one)["package/Dockerfile"] == b"FROM other\n"
    assert b"FROM python:3.11" in read_archive(one)["Dockerfile"]


EDITS: dict[str, Callable[[Path], object]] = {
    "the script": lambda path: (path / "trainer/task.py").write_text("print(2)\n"),
    "a file beside the script": lambda path: (path / "trainer/util.py").write_text("x"),
    "a new file beside the script": lambda path: (path / "trainer/new.py").touch(),
    "an executable bit": lambda path: (path / "trainer/task.py").chmod(0o755),
    "requirements.txt": lambda path: (path / "requirements.txt").write_text("rich>1\n"),
    "requirements.txt going": lambda path: (path / "requirements.txt").unlink(),
    "setup.py coming": lambda path: (path / "setup.py").touch(),
    "an extra package": lambda path: (path / "dep/foo.tar.gz").write_text("y"),
    "a file deep in an extra folder": lambda path: (path / "data/deep/a.csv").write_text("1,3\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_the_digest_changes_with(project: Path, edit: str) -> None:
    before = context(project).digest
    EDITS[edit](project / "t")
    assert context(project).digest != before


@pytest.mark.parametrize(
    "fields",
    [
        {"script": "trainer/util.py"},
        {"baseImage": "python:3.12"},
        {"requirements": ["pandas>1"]},
        {"requirements": []},
        {"extraPackages": []},
        {"extraDirs": []},
        {"extraDirs": ["data/deep"]},
    ],
    ids=str,
)
def test_the_digest_changes_with_what_is_declared(project: Path, fields: dict[str, Any]) -> None:
    assert context(project, **fields).digest != context(project).digest


def test_the_digest_changes_with_the_platform(project: Path) -> None:
    arm = create_build_context(project, {"package": PACKAGE, "platform": "linux/arm64"})
    assert arm.digest != context(project).digest


LEFT_OUT: dict[str, Callable[[Path], object]] = {
    "a file that is not copied": lambda path: (path / "other/unused.py").write_text("y"),
    "a new file that is not copied": lambda path: (path / "README.md").touch(),
    "what Python compiled": lambda path: write(path, {"trainer/__pycache__/task.pyc": "", "data/__pycache__/a": ""}),
    "what Python compiled beside the script": lambda path: (path / "trainer/task.pyc").touch(),
    "times": lambda path: os.utime(path / "trainer/task.py", (1, 1)),
    "a .dockerignore that leaves out what is not copied": lambda path: (path / ".dockerignore").write_text("*.md\n"),
    "an empty folder": lambda path: (path / "trainer/empty").mkdir(),
}


@pytest.mark.parametrize("edit", LEFT_OUT)
def test_digest_and_archive_do_not_change_after(project: Path, edit: str) -> None:
    one = context(project)
    digest, held = one.digest, read_archive(one)
    LEFT_OUT[edit](project / "t")
    assert context(project).digest == digest
    assert read_archive(context(project)) == held


def test_the_digest_is_the_same_under_another_path(project: Path) -> None:
    digest = context(project).digest
    (project / "t").rename(project / "renamed")
    assert context(project, path="renamed").digest == digest


def test_ignored_files_of_a_copied_folder_are_excluded(project: Path) -> None:
    write(project, {"t/.dockerignore": "**/*.csv\n!data/keep.csv\n", "t/data/keep.csv": ""})
    assert [path for path in context(project).digests_by_context_path if "data" in path] == ["package/data/keep.csv"]


def test_dockerignore_itself_is_not_copied(project: Path) -> None:
    write(project, {"t/train.py": ""})
    before = context(project, script="train.py").digest
    write(project, {"t/.dockerignore": "*.nothing\n"})
    assert context(project, script="train.py").digest == before


def test_the_target_of_a_link_is_copied_too(project: Path) -> None:
    write(project, {"t/reqs/base.txt": "rich\n", "t/shared/conf/a.yaml": "x"})
    (project / "t/requirements.txt").unlink()
    (project / "t/requirements.txt").symlink_to("reqs/base.txt")
    (project / "t/conf").symlink_to("shared/conf")
    files = context(project, extraDirs=["conf"]).digests_by_context_path
    assert files.keys() >= {
        "package/requirements.txt",
        "package/reqs/base.txt",
        "package/conf",
        "package/shared/conf/a.yaml",
    }


def test_the_digest_is_stable_across_versions(project: Path) -> None:
    # Another digest would rebuild every image of every user.
    assert context(project).tag == "4de490d1be715bee"
