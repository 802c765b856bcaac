"""Pulumi's SDKs for tests: installed once, each by its hash, and never in part."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup import oldest_and_newest_pulumi_sdk, python_environment
from tools.setup.oldest_and_newest_pulumi_sdk import (
    SHA256_BY_VERSION,
    describe_if_ready,
    get_sdk_folder,
    set_up_and_describe,
)
from tools.setup.progress_output import ProgressOutput
from tools.setup.subprocess_runner import SetupError

Program = Callable[[str | Path, str], Path]
# What pip gets: -m pip install … -r REQUIREMENTS --target FOLDER
INSTALL = 'while [ $# -gt 2 ]; do shift; done; [ "$1" = --target ] && /bin/mkdir "$2" && echo pulumi > "$2/installed"'


@pytest.fixture
def pip(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the script that stands for the environment's Python."""
    python = tmp_path / "python"
    monkeypatch.setattr(python_environment, "PYTHON", python)
    return lambda script: program(python, f'echo "$*" >> {tmp_path}/asked; {script}') and None


def set_up() -> str:
    return set_up_and_describe(ProgressOutput(io.StringIO()))


def test_missing_sdks_are_installed_once(pip: Callable[[str], None], tmp_path: Path) -> None:
    pip(INSTALL)
    oldest, newest = SHA256_BY_VERSION
    get_sdk_folder(oldest).mkdir(parents=True)
    assert describe_if_ready() is None
    assert set_up() == describe_if_ready() == f"Pulumi SDKs for tests: {oldest}, {newest}"
    assert (get_sdk_folder(newest) / "installed").is_file()
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert asked.startswith("-m pip install ") and "--no-deps" in asked


def test_a_failed_installation_leaves_nothing(pip: Callable[[str], None]) -> None:
    pip(f"{INSTALL}; echo the hashes do not match >&2; exit 1")
    with pytest.raises(
        SetupError, match=f"{next(iter(SHA256_BY_VERSION))} could not be installed.*\n?.*hashes do not match"
    ):
        set_up()
    assert describe_if_ready() is None
    assert list(get_sdk_folder("").parent.iterdir()) == []


def test_pip_gets_the_hash_of_each_version(pip: Callable[[str], None], tmp_path: Path) -> None:
    pip(f'while [ "$1" != -r ]; do shift; done; /bin/cat "$2" >> {tmp_path}/requirements; shift 2; {INSTALL}')
    set_up()
    expected = [f"pulumi=={version} --hash=sha256:{digest}" for version, digest in SHA256_BY_VERSION.items()]
    assert (tmp_path / "requirements").read_text().splitlines() == expected
    assert oldest_and_newest_pulumi_sdk.describe_if_ready()
