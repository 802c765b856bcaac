"""A throw-away local target: an emulator on a folder of its own, which is gone with all its containers at the end.

Where a run is killed, the next one removes what it has left: a run holds a lock on its folder for as long as it lives.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import EmulatorFailed

_PREFIX = "vertex-training-run-"
_LOCK = "owner.lock"
_VARIABLE = "VERTEX_EMULATOR_DATA"
_START_SECONDS = 60
"""How long an emulator may take that a killed run was starting."""
_PAUSE_SECONDS = 0.3


@contextmanager
def throw_away() -> Iterator[Path]:
    """Yield the data folder of an emulator that the block uses, which `runtime.target` starts when it is called.

    Raises EmulatorFailed if something stays.
    """
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    before = os.environ.get(_VARIABLE)
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.environ[_VARIABLE] = str(folder)
        try:
            yield folder
        finally:
            os.environ.pop(_VARIABLE)
            if before is not None:
                os.environ[_VARIABLE] = before
            _remove(folder)


def _remove_abandoned() -> None:
    """Remove the folders of runs that live no more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            with (folder / _LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
        except OSError:  # its run lives, or it is another user's
            continue


def _remove(folder: Path) -> None:
    """Stop the emulator of a folder, and remove its containers and the folder. Raises EmulatorFailed."""
    deadline = time.monotonic() + _START_SECONDS
    while (refusal := _command("stop", folder) or _command("reset", folder, "--yes")) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
    if refusal:
        raise EmulatorFailed(f"the emulator on {folder} is not removed: {refusal}")
    shutil.rmtree(folder, ignore_errors=True)


def _command(verb: str, folder: Path, *options: str) -> str:
    """Run a command of the emulator on a folder, and return why it refuses, "" if it does not."""
    command = [sys.executable, "-m", "vertex_emulator", verb, f"--data={folder}", *options]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, errors="replace", check=False)
    lines = done.stderr.strip().splitlines() or ["it says nothing"]
    return lines[-1].removeprefix("vertex-emulator: ") if done.returncode else ""


def follow(folder: Path, job_id: str) -> None:
    """Print the log of a job until it ends."""
    command = [sys.executable, "-m", "vertex_emulator", "logs", "--follow", f"--data={folder}", job_id]
    subprocess.run(command, cwd="/", stderr=subprocess.DEVNULL, check=False)
