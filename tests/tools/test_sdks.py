"""Pulumi's SDKs for tests: installed once, each by its hash, and never in part."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup import python, sdks
from tools.setup.programs import Output, SetupError
from tools.setup.sdks import (
    SHA256,
    find,
    folder_of,
    make,
)

Program = Callable[[str | Path, str], Path]
# What pip gets: -m pip install … -r REQUIREMENTS --target FOLDER
INSTALL = 'while [ $# -gt 2 ]; do shift; done; [ "$1" = --target ] && /bin/mkdir "$2" && echo pulumi > "$2/installed"'


@pytest.fixture
def pip(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the script that stands for the environment's Python."""
    interpreter = tmp_path / "python"
    monkeypatch.setattr(python, "PYTHON", interpreter)
    return lambda script: program(interpreter, f'echo "$*" >> "{tmp_path}/asked"; {script}') and None


def set_up() -> str:
    return make(Output(io.StringIO()))


def test_missing_sdks_are_installed_once(pip: Callable[[str], None], tmp_path: Path) -> None:
    pip(INSTALL)
    oldest, newest = SHA256
    folder_of(oldest).mkdir(parents=True)
    assert find() is None
    assert set_up() == find() == f"Pulumi SDKs for tests: {oldest}, {newest}"
    assert (folder_of(newest) / "installed").is_file()
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert asked.startswith("-m pip install ") and "--no-deps" in asked


def test_a_failed_installation_leaves_nothing(pip: Callable[[str], None]) -> None:
    pip(f"{INSTALL}; echo the hashes do not match >&2; exit 1")
    with pytest.raises(SetupError, match=f"{next(iter(SHA256))} could not be installed.*\n?.*hashes do not match"):
        set_up()
    assert find() is None
    assert list(folder_of("").parent.iterdir()) == []


def test_pip_gets_the_hash_of_each_version(pip: Callable[[str], None], tmp_path: Path) -> None:
    pip(f'while [ "$1" != -r ]; do shift; done; /bin/cat "$2" >> "{tmp_path}/requirements"; shift 2; {INSTALL}')
    set_up()
    expected = [f"pulumi=={version} --hash=sha256:{digest}" for version, digest in SHA256.items()]
    assert (tmp_path / "requirements").read_text().splitlines() == expected
    assert sdks.find()
