"""Source distributions: equal for equal files, and pip installs them."""

import io
import os
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import docker
import pytest
from vertex_training.packages.source_distribution import SourceDistribution
from vertex_training.schema import shapes

from tests.components.projects import write

BASE = "python:3.11-slim-bookworm"
SETUP = "from setuptools import setup\nsetup(name='team-trainer', version='1', packages=['trainer'])\n"
FILES = {
    "t/setup.py": SETUP,
    "t/README.md": "x",
    "t/trainer/__init__.py": "",
    "t/trainer/task.py": "import sys\nfrom trainer import data\nprint(__name__, data.VALUE, sys.argv[1:])\n",
    "t/trainer/data.py": "VALUE = 7\n",
}
FOLDER = {"path": "t"}
SCRIPT = {"script": "train.py", "requirements": ["setuptools>=1"]}


def distribution(root: Path, package: dict[str, Any], name: str = "trainer") -> SourceDistribution:
    return SourceDistribution.from_declaration(root, name, cast(shapes.PythonPackage, package))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, {**FILES, "train.py": "import sys\nprint(__name__, sys.argv[1:])\n"})
    return tmp_path


def members(archive: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: member for member in tar.getmembers()}


def test_a_folder_is_archived_without_metadata(project: Path) -> None:
    found = members(distribution(project, FOLDER).build_archive_bytes())
    assert list(found) == [f"trainer/{path.removeprefix('t/')}" for path in sorted(FILES)]
    for member in found.values():
        assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")


def test_a_script_is_packaged_as_by_the_sdk(project: Path) -> None:
    archive = distribution(project, SCRIPT).build_archive_bytes()
    top = "aiplatform_custom_trainer_script-0.1"
    inner = f"{top}/aiplatform_custom_trainer_script"
    assert list(members(archive)) == [f"{top}/PKG-INFO", f"{inner}/__init__.py", f"{inner}/task.py", f"{top}/setup.py"]
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        stream = tar.extractfile(f"{inner}/task.py")
        assert stream and stream.read() == (project / "train.py").read_bytes()


@pytest.mark.parametrize("package", [FOLDER, SCRIPT], ids=["a folder", "a script"])
def test_the_archive_is_reproducible(project: Path, tmp_path: Path, package: dict[str, Any]) -> None:
    one = distribution(project, package)
    names = [*FILES, "train.py"]
    random.Random(7).shuffle(names)
    other = tmp_path / "far" / "other"
    previous = os.umask(0o077)
    try:
        write(other, {name: (project / name).read_text() for name in names})
    finally:
        os.umask(previous)
    os.utime(other / "train.py", (1, 1))
    assert distribution(other, package).tag == one.tag
    assert distribution(other, package).build_archive_bytes() == one.build_archive_bytes()
    assert one.build_archive_bytes()[4:8] == b"\0\0\0\0"  # when it was compressed, as gzip notes it


EDITS: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: (path / "trainer/data.py").write_text("VALUE = 8\n"),
    "a new file": lambda path: (path / "trainer/new.py").touch(),
    "a file less": lambda path: (path / "README.md").unlink(),
    "a file's name": lambda path: (path / "README.md").rename(path / "README.rst"),
    "an executable bit": lambda path: (path / "setup.py").chmod(0o755),
}


@pytest.mark.parametrize("edit", EDITS)
def test_the_digest_changes_with(project: Path, edit: str) -> None:
    before = distribution(project, FOLDER).tag
    EDITS[edit](project / "t")
    assert distribution(project, FOLDER).tag != before


def test_a_script_digest_covers_bytes_and_requirements(project: Path) -> None:
    before = distribution(project, SCRIPT).tag
    assert distribution(project, {**SCRIPT, "requirements": ["rich"]}).tag != before
    (project / "train.py").write_text("edited")
    assert distribution(project, SCRIPT).tag != before


LEFT_BEHIND = [
    "trainer/__pycache__/task.cpython-311.pyc",
    "trainer/task.pyc",
    "team_trainer.egg-info/PKG-INFO",
    "build/lib/trainer/task.py",
    "dist/team-trainer-1.tar.gz",
    ".git/HEAD",
    ".venv/bin/python",
]


def test_files_of_development_tools_are_excluded(project: Path) -> None:
    before = distribution(project, FOLDER)
    archive = before.build_archive_bytes()
    write(project / "t", dict.fromkeys(LEFT_BEHIND, "x"))
    assert distribution(project, FOLDER).build_archive_bytes() == archive
    write(project / "t", {"trainer/build/data.txt": "x"})  # a folder of that name within the package is its own
    assert distribution(project, FOLDER).build_archive_bytes() != archive


def test_the_digests_are_stable_across_versions(project: Path) -> None:
    # Another digest would run every job of every user again.
    assert (distribution(project, FOLDER).tag, distribution(project, SCRIPT).tag) == (
        "f7b4c4b5fd757567",
        "0ee343a57717803d",
    )


@pytest.mark.parametrize(
    ("package", "module", "said"),
    [
        (FOLDER, "trainer.task", "__main__ 7 ['--epochs=3']\n"),
        (SCRIPT, "aiplatform_custom_trainer_script.task", "__main__ ['--epochs=3']\n"),
    ],
    ids=["a folder", "a script"],
)
def test_pip_installs_it_and_its_module_runs(project: Path, package: dict[str, Any], module: str, said: str) -> None:
    (project / "package.tar.gz").write_bytes(distribution(project, package).build_archive_bytes())
    # The image's own setuptools: a build in isolation would ask a package index for one.
    install = "pip install --quiet --no-build-isolation --root-user-action=ignore /in/package.tar.gz"
    client = docker.from_env()
    try:
        output = client.containers.run(
            BASE,
            ["sh", "-c", f"{install} && python -m {module} --epochs=3"],
            volumes={str(project): {"bind": "/in", "mode": "ro"}},
            network_mode="none",
            remove=True,
        )
    finally:
        client.close()
    assert output.decode() == said
