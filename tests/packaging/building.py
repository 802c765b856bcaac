"""Builds the distribution from a clean copy of this checkout, with the setuptools of its environment."""

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
ROOMS = {"components": "vertex_training", "vertex_api": "vertex_api", "vertex_emulator": "vertex_emulator"}
"""The folders that the wheel holds, and the names that they are installed under."""
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
OFFLINE = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")


def source_files() -> list[str]:
    """Return the files of this checkout that git tracks or would track, relative to it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    return [file for file in listed.splitlines() if (CHECKOUT / file).is_file()]


def copy_sources(folder: Path) -> None:
    """Copy the files of this checkout into a new folder, without what lies around in it."""
    for file in source_files():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / file, folder / file)


@functools.cache
def wheel() -> Path:
    """Return the wheel of this checkout, built once in each test process."""
    folder = Path(tempfile.mkdtemp(prefix="vertex-training-wheel-"))
    atexit.register(shutil.rmtree, folder)
    copy_sources(folder / "sources")
    subprocess.run([*PIP, "wheel", *OFFLINE, f"--wheel-dir={folder}", str(folder / "sources")], check=True, timeout=120)
    shutil.rmtree(folder / "sources")
    (built,) = folder.glob("*.whl")
    return built
