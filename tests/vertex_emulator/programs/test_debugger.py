"""The sitecustomize of containers, with a debugpy that only says what is called."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vertex_emulator import programs

IS_READY = """
import os, socket
def is_ready():
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect("\\0" + os.getcwd())
        return True
    except ConnectionRefusedError:
        return False
"""
DEBUGPY = """
def listen(address):
    print("listens on", *address)
def wait_for_client():
    print("waits")
"""
PROGRAM = "import os, subprocess, sys; print('runs', os.environ.get('PYTHONPATH'), flush=True)\n"
PARENT = PROGRAM + "subprocess.run([sys.executable, __file__.replace('parent', 'child')])\n"


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """The folder as containers have it, and programs beside it."""
    shutil.copytree(programs.startup_folder("debugger"), tmp_path / "startup")
    (tmp_path / "libraries" / "debugpy").mkdir(parents=True)
    (tmp_path / "libraries" / "debugpy" / "__init__.py").write_text(DEBUGPY)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('own')")
    for name, text in {"parent.py": PARENT, "child.py": PROGRAM, "pip3.11": PROGRAM, "pipeline": PROGRAM}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, *arguments: str, port: int = 25678, mode: str = "wait") -> list[str]:
    setting = f"{port},{folder},{mode}"
    path = os.pathsep.join(str(folder / name) for name in ("startup", "own"))
    environment = {**os.environ, "PYTHONPATH": path, "VERTEX_EMULATOR_DEBUGGER": setting, "COVERAGE_PROCESS_START": ""}
    done = subprocess.run([sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).splitlines()


def test_program_is_debugged_and_its_environment_restored(mounted: Path) -> None:
    runs = f"runs {mounted}/own"
    lines = run(mounted, "parent.py")
    assert lines == ["own", "listens on 127.0.0.1 25678", "waits", runs, "own", runs]
    assert run(mounted, "-u", "pipeline", "-m", "pip", port=1, mode="") == ["own", "listens on 127.0.0.1 1", runs]


@pytest.mark.parametrize("command", [["pip3.11"], ["-u", "-m", "pip", "--version"]])
def test_pip_takes_no_debugger_from_program(mounted: Path, command: list[str]) -> None:
    assert not any("listens" in line for line in run(mounted, *command))


def test_program_runs_also_if_it_cannot_be_debugged(mounted: Path) -> None:
    (mounted / "libraries" / "debugpy" / "__init__.py").write_text("def listen(_): raise RuntimeError('port in use')")
    *_, complaint = run(mounted, "child.py")
    assert complaint == "vertex-emulator: this Python process is not debugged: port in use"


def test_emulator_may_connect_once_debugpy_listens(mounted: Path) -> None:
    listen = f"{IS_READY}def listen(_): print('before', is_ready())\n"
    (mounted / "libraries" / "debugpy" / "__init__.py").write_text(listen)
    (mounted / "child.py").write_text(f"{IS_READY}print('replaced', is_ready())\n")
    (mounted / "parent.py").write_text(
        f"{IS_READY}import sys\nprint('after', is_ready(), flush=True)\n"
        "os.execv(sys.executable, [sys.executable, 'child.py'])\n"
    )
    assert run(mounted, "-u", "parent.py", mode="") == ["own", "before False", "after True", "own", "replaced True"]
