"""The packages and commands of this checkout: installed once, current, and working in a folder with an odd name."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.setup import CHECKOUT, commands
from tools.setup.programs import Output

OUTPUT = Output(io.StringIO())


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose folder has spaces in its name, for this checkout."""
    folder = tmp_path / "a $folder's" / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib" / "python3" / "site-packages").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(commands, "VENV", folder)
    return folder


def test_scripts_are_found_once_they_are_written(venv: Path) -> None:
    assert commands.find() is None
    line = commands.make(OUTPUT)
    assert line == commands.find() == "Commands: vertex-emulator, vertex-training in .venv/bin"


def test_another_checkout_s_script_is_outdated(venv: Path) -> None:
    commands.make(OUTPUT)
    (venv / "bin" / "vertex-training").write_text("#!/bin/sh\n")
    assert commands.find() is None


def test_another_checkout_s_packages_are_outdated(venv: Path, tmp_path: Path) -> None:
    commands.make(OUTPUT)
    link = venv / "lib" / "python3" / "site-packages" / "vertex_training"
    assert link.resolve() == CHECKOUT / "components"
    link.unlink()
    assert commands.find() is None
    link.symlink_to(tmp_path)
    assert commands.find() is None
    commands.make(OUTPUT)
    assert link.resolve() == CHECKOUT / "components"


def test_modules_are_compiled_where_programs_may_not_do_so(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    commands.make(OUTPUT)
    assert not (tmp_path / "compiled").exists()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(commands, "PACKAGES", {"vertex_training": "components/targets"})
    monkeypatch.setattr(commands, "CHECKOUT", copied := tmp_path / "copied")
    shutil.copytree(CHECKOUT / "components" / "targets", copied / "components" / "targets")
    (copied / "pyproject.toml").symlink_to(CHECKOUT / "pyproject.toml")
    broken = copied / "components" / "targets" / "edited.py"
    broken.write_text("def")
    assert commands.find() is None
    assert commands.make(OUTPUT).startswith("Commands: ")
    assert commands.find() is None  # Python says what is wrong with it where it is imported
    broken.unlink()
    assert commands.find()
    os.utime(copied / "components" / "targets" / "__init__.py", (2**32, 2**32))
    assert commands.find() is None


@pytest.mark.parametrize("name", ["vertex-emulator", "vertex-training"])
def test_a_script_runs_this_checkout_from_anywhere(venv: Path, tmp_path: Path, name: str) -> None:
    commands.make(OUTPUT)
    text = (venv / "bin" / name).read_text().replace(str(venv / "bin" / "python"), sys.executable)
    (venv / "bin" / name).write_text(text)
    command = [str(venv / "bin" / name), "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {name} " if name == "vertex-training" else "usage: ")
