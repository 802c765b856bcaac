"""When `.venv` is good as it is, and when it is made anew."""

import importlib.util
import io
import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tools.setup import programs, python
from tools.setup.programs import CommandFailed, Output, SetupError
from tools.setup.python import (
    PROMPT,
    can_replace,
    find,
    make,
    stamp,
)

OUTPUT = Output(io.StringIO())


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished environment of a checkout of its own."""
    folder = tmp_path / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").touch()
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nprompt = 'vertex-training'\n")
    (tmp_path / "requirements.lock").write_text("a==1 \\\n    --hash=sha256:0\nb.c-d==2 \\\n    --hash=sha256:1\n")
    monkeypatch.setattr(python, "VENV", folder)
    monkeypatch.setattr(python, "PYTHON", folder / "bin/python")
    monkeypatch.setattr(python, "STAMP", folder / "setup.json")
    monkeypatch.setattr(python, "REQUIREMENTS", tmp_path / "requirements.lock")
    (folder / "setup.json").write_text(json.dumps({**stamp(), "packages": 83}))
    return folder


def test_a_finished_environment_is_found(venv: Path) -> None:
    line = find()
    assert line
    assert line.startswith("Python environment: .venv, Python 3.")
    assert line.endswith(", 83 packages")


def test_a_changed_lock_makes_it_out_of_date(venv: Path) -> None:
    (venv.parent / "requirements.lock").write_text("a==2\n")
    assert find() is None


def test_another_interpreter_makes_it_out_of_date(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(python, "base_python", lambda: Path("/opt/other/python3"))
        assert find() is None
    assert find() is not None
    monkeypatch.setattr(platform, "python_version", lambda: "3.11.0")
    assert find() is None


def test_a_moved_checkout_makes_it_out_of_date(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = venv.rename(venv.with_name("moved"))
    monkeypatch.setattr(python, "VENV", moved)
    monkeypatch.setattr(python, "PYTHON", moved / "bin/python")
    monkeypatch.setattr(python, "STAMP", moved / "setup.json")
    assert find() is None


@pytest.mark.parametrize("content", [None, "", "[]", "{}"])
def test_an_unfinished_one_is_not_found(venv: Path, content: str | None) -> None:
    (venv / "setup.json").unlink()
    if content is not None:
        (venv / "setup.json").write_text(content)
    assert find() is None


def test_one_whose_interpreter_is_gone_is_not_found(venv: Path) -> None:
    (venv / "bin/python").unlink()
    (venv / "bin/python").symlink_to("/no/longer/python3")
    assert find() is None


def test_packages_are_installed_as_locked_and_nothing_else(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []

    def run(*command: str | Path, **_: object) -> str:
        commands.append(tuple(map(str, command)))
        if "--clear" in command:
            (venv / "setup.json").unlink()
        else:
            assert find() is None, "taken for finished while packages are being installed"
        return ""

    monkeypatch.setattr(python, "run", run)
    (venv / "lib/python3.11/site-packages/a-1.dist-info").mkdir(parents=True)
    assert make(OUTPUT).endswith(", 1 packages")
    create, install = commands
    assert {"venv", "--clear", str(venv)} <= set(create)
    assert {"--require-hashes", "--no-deps", str(venv.parent / "requirements.lock")} <= set(install)
    assert find() is not None


def test_a_failed_installation_stays_unfinished(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*command: str | Path, **_: object) -> str:
        if "venv" in command:
            (venv / "setup.json").unlink()
            return ""
        raise CommandFailed("no network")

    monkeypatch.setattr(python, "run", run)
    with pytest.raises(SetupError, match=r"could not be installed\. no network"):
        make(OUTPUT)
    assert find() is None


def test_missing_ensurepip_names_the_package(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(programs, "can_install", lambda: False)
    with pytest.raises(SetupError, match=r"sudo apt-get install python3\.\d+-venv"):
        make(OUTPUT)


def test_its_own_environment_may_be_replaced(tmp_path: Path) -> None:
    options = ["--without-pip", "--prompt", PROMPT]
    subprocess.run([sys.executable, "-m", "venv", *options, tmp_path / "own"], check=True)
    (tmp_path / "empty").mkdir()
    assert can_replace(tmp_path / "own")
    assert can_replace(tmp_path / "empty")
    assert can_replace(tmp_path / "missing")


def test_environments_with_user_packages_are_never_replaced(tmp_path: Path) -> None:
    folder = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in ("packaging-26.3", "pip-26.3", "setuptools-84.2.1", "wheel-0.48.0"):
        (packages / f"{name}.dist-info").mkdir()
    assert can_replace(folder)
    (packages / "numpy-2.0.dist-info").mkdir()
    assert not can_replace(folder)


def test_environments_of_others_are_never_emptied(venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "run", lambda *_, **__: pytest.fail("ran a program"))
    (venv / "setup.json").unlink()
    elsewhere = venv.rename(tmp_path / "elsewhere")
    venv.symlink_to(elsewhere)
    with pytest.raises(SetupError, match="did not make it"):
        make(OUTPUT)
    venv.unlink()
    venv.mkdir()
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    with pytest.raises(SetupError, match="did not make it"):
        make(OUTPUT)
    assert (elsewhere / "bin/python").exists()


def test_files_and_other_folders_are_not_environments(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/work.txt").touch()
    assert not any(can_replace(tmp_path / name) for name in ("file", "dangling", "folder"))
