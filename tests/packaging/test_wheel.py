"""The wheel: exactly the three rooms, small, and with honest metadata."""

import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import git_server
from tests.packaging.building import OFFLINE, PIP, ROOMS, wheel
from tools.lock import TESTED
from tools.template import CHECKOUT, copy_checkout, tracked_files
from vertex_api import __version__

MAX_BYTES = 1_600_000
"""What CI machines download for each preview, without the extra `emulator`. A sixth of it is the names of
files, another sixth the pages of docs/, which messages name."""
EXTRA_ONLY = {"egobox", "numpy", "starlette", "uvicorn"}
INFO = f"vertex_training-{__version__}.dist-info"


def metadata_of(built: Path) -> Message:
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(built) as archive:
        return message_from_bytes(archive.read(f"{INFO}/METADATA"))


def requirement_closure(extra: str) -> set[str]:
    """Return the names of all distributions that the wheel requires with an extra, or with none if it is empty."""
    seen: set[str] = set()

    def add(requirements: Iterator[Requirement], extras: set[str]) -> None:
        for requirement in requirements:
            markers = [{"extra": each} for each in extras or {""}]
            if requirement.marker and not any(requirement.marker.evaluate(marker) for marker in markers):
                continue
            name = requirement.name.lower().replace("_", "-")
            if name not in seen:
                seen.add(name)
                add(map(Requirement, metadata.requires(requirement.name) or []), requirement.extras)

    add(map(Requirement, metadata_of(wheel()).get_all("Requires-Dist", [])), {extra})
    return seen


def test_the_wheel_holds_the_three_rooms_and_the_pages() -> None:
    files = [Path(file) for file in tracked_files()]
    expected = {str(Path(ROOMS[file.parts[0]], *file.parts[1:])) for file in files if file.parts[0] in ROOMS}
    pages = {
        f"vertex_training/pages/{file.name}" for file in files if str(file.parent) == "docs" and file.suffix == ".md"
    }
    with zipfile.ZipFile(wheel()) as archive:
        names = {name for name in archive.namelist() if not name.startswith(INFO)}
    assert names == expected | pages
    assert {f"{package}/py.typed" for package in ROOMS.values()} <= names
    assert {"vertex_training/schema/stack.schema.json", "vertex_emulator/page/assets/page.html"} <= names
    assert "vertex_api/estimates/prices.json" in names


def test_the_wheel_is_small() -> None:
    assert wheel().stat().st_size <= MAX_BYTES


def test_the_metadata_name_licence_version_and_links() -> None:
    info = metadata_of(wheel())
    assert (info["Name"], info["Version"]) == ("vertex-training", __version__)
    assert info["License-Expression"] == "Apache-2.0"
    assert "LICENSE" in info.get_all("License-File", [])
    assert {url.partition(",")[0] for url in info.get_all("Project-URL", [])} >= {"Homepage", "Changelog"}
    assert info["Requires-Python"] == ">=3.11"
    versions = [each for each in info.get_all("Classifier", []) if ":: Python :: 3." in each]
    assert versions[0].endswith(" 3.11") and any(each.endswith(" {}.{}".format(*sys.version_info)) for each in versions)
    assert str(info.get_payload()).startswith("# vertex-training")


def test_requirements_are_ranges_that_the_lock_satisfies() -> None:
    for line in metadata_of(wheel()).get_all("Requires-Dist", []):
        requirement = Requirement(line)
        # A later tz database has the same names, and newer times.
        bounds = {">="} if requirement.name == "tzdata" else {">=", "<"}
        assert {clause.operator for clause in requirement.specifier} == bounds, line
        assert requirement.specifier.contains(metadata.version(requirement.name)), line


def test_pip_takes_the_template_s_constraints() -> None:
    """This environment has the tested versions: pip would have to look for any other, and finds none."""
    command = [*PIP, "install", "--quiet", "--dry-run", "--no-index", f"{wheel()}[emulator]", "-c", str(TESTED)]
    subprocess.run(command, check=True, capture_output=True)


def test_only_the_extra_brings_the_emulator_s_packages() -> None:
    assert requirement_closure("") & EXTRA_ONLY == set()
    assert requirement_closure("emulator") >= EXTRA_ONLY | requirement_closure("")


def test_the_version_stands_in_one_file() -> None:
    assert "version" not in tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    tracked = [file for file in tracked_files() if file.endswith((".py", ".toml"))]
    assert [file for file in tracked if f'version__ = "{__version__}"' in (CHECKOUT / file).read_text()] == [
        "vertex_api/__init__.py"
    ]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository that holds this checkout."""
    folder = tmp_path_factory.mktemp("git") / "repository"
    copy_checkout(folder)
    git_server.commit(folder)
    return folder


def contents(built: Path) -> dict[str, int]:
    """Return the files of a wheel, and what is in them as a number."""
    with zipfile.ZipFile(built) as archive:
        return {each.filename: each.CRC for each in archive.infolist()}


def test_pip_installs_from_git(repository: Path, tmp_path: Path) -> None:
    command = [*PIP, "install", *OFFLINE, "--no-compile", f"--target={tmp_path}", f"git+file://{repository}"]
    subprocess.run(command, check=True)
    files = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    installed = {file for file in files if not file.startswith((INFO, "bin/"))}
    assert installed == {name for name in contents(wheel()) if not name.startswith(INFO)}
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == ["vertex-emulator", "vertex-training"]


BUILD = """
import os, sys
from setuptools import build_meta

if not (child := os.fork()):  # setuptools can build once in a process
    build_meta.build_sdist(sys.argv[1])
elif os.waitpid(child, 0)[1]:
    sys.exit("no sdist")
else:
    build_meta.build_wheel(sys.argv[2])
"""


def test_an_sdist_and_a_used_checkout_build_the_same_wheel(repository: Path, tmp_path: Path) -> None:
    # What an earlier version, or another tool, has built in the checkout is in none of them.
    built_earlier = repository / "build" / "lib" / "vertex_api" / "removed.py"
    built_earlier.parent.mkdir(parents=True)
    built_earlier.touch()
    (tmp_path / "checkout").mkdir()
    command = [sys.executable, "-c", BUILD, tmp_path, tmp_path / "checkout"]
    subprocess.run(command, cwd=repository, check=True, capture_output=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    subprocess.run([*PIP, "wheel", *OFFLINE, f"--wheel-dir={tmp_path}", sdist], check=True)
    assert [contents(built) for built in tmp_path.rglob("*.whl")] == [contents(wheel())] * 2
