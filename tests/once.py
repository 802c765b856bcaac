"""What is made once in a run of the tests, by whichever of its processes needs it first."""

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

VARIABLE = "VERTEX_TESTS_FOLDER"
"""The temporary folder of the run: tests/conftest.py names it."""


def once(name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder that `make` has filled; nobody changes it. What fails leaves none, and is tried again."""
    run = Path(os.environ[VARIABLE])
    folder = run / name
    with (run / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = Path(tempfile.mkdtemp(dir=run))
            make(unfinished)
            unfinished.rename(folder)
    return folder
