"""A throw-away local target: an emulator on a folder of its own, which is gone with all its containers at the end.

Where a run is killed, the next one removes what it has left: a run holds a lock on its folder for as long as it lives.
"""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from vertex_api import locks

from ..errors import EmulatorFailed
from ..images import builders
from ..own import DATA_VARIABLE
from . import overlay

_PREFIX = "vertex-training-run-"
LOCK = "owner.lock"
"""The file of a run's folder that its process has locked."""
_START_SECONDS = 60
"""How long an emulator may take that a killed run was starting."""
_PAUSE_SECONDS = 0.3
_MAX_IMAGES = 20
"""How many images may be tried for one that can remove files."""


@contextmanager
def throw_away() -> Iterator[Path]:
    """Yield the data folder of an emulator that the block uses, which `runtime.target` starts when it is called.

    Raises DockerUnavailable, and EmulatorFailed if something stays.
    """
    builders.connect().close()
    _remove_abandoned()
    folder, lock = _make()
    before = os.environ.get(DATA_VARIABLE)
    os.environ[DATA_VARIABLE] = str(folder)
    with lock:
        try:
            yield folder
        finally:
            os.environ.pop(DATA_VARIABLE)
            if before is not None:
                os.environ[DATA_VARIABLE] = before
            with _uninterrupted():
                _remove(folder)


def _make() -> tuple[Path, IO[str]]:
    """Make a folder, and return it with its lock, which is held until it is closed."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            lock = locks.open_lock(folder / LOCK)
            locks.take(lock)
            if os.path.samestat((folder / LOCK).stat(), os.fstat(lock.fileno())):
                return folder, lock
            lock.close()
        except FileNotFoundError:  # another run has taken the folder for an abandoned one, before it was locked
            continue


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let neither a second Ctrl-C nor the end of a step of CI stop the block, nor the commands that it runs."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(each, signal.SIG_IGN) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


def _remove_abandoned() -> None:
    """Remove the folders of runs that live no more. Those of other users stay, whatever they have put there."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            with locks.open_lock(folder / LOCK) as lock:
                if locks.try_take(lock):  # no run lives in it
                    _remove(folder)
        except OSError:  # its run has just ended
            continue


def _remove(folder: Path) -> None:
    """Stop the emulator of a folder, and remove its containers and the folder. Raises EmulatorFailed.

    One that is being started when its starter is killed holds the folder a little later, and writes to it.
    """
    deadline = time.monotonic() + _START_SECONDS
    while True:
        refusal = _command("stop", folder) or _command("reset", folder, "--yes")
        if not refusal:
            overlay.hide(folder / "gcs")
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                return
            remove_as_root(folder)
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_SECONDS)
    if refusal:
        raise EmulatorFailed(f"the emulator on {folder} is not removed: {refusal}")
    raise EmulatorFailed(f"{folder} has files of another user that a container wrote; sudo rm -r {folder}")


def remove_as_root(folder: Path) -> None:
    """Empty a folder in a container: root in one of a job writes files that an ordinary user cannot remove.

    Any image with `rm` does. Nothing is pulled, and it sees nothing but the folder.
    """
    import docker

    with closing(builders.connect()) as client, builders.docker_errors():
        # Not by its `images`, which asks for each one, and fails if one goes meanwhile.
        for image in client.api.images()[:_MAX_IMAGES]:
            container = None
            try:
                container = client.containers.create(
                    image["Id"],
                    ["-rf", "--", *(f"/folder/{each.name}" for each in folder.iterdir())],
                    entrypoint="rm",
                    user="0",
                    network_mode="none",
                    mounts=[docker.types.Mount("/folder", str(folder), "bind")],
                )
                container.start()
                if container.wait()["StatusCode"] == 0:
                    return
            except docker.errors.APIError:  # it has no `rm`, or is gone
                continue
            finally:
                if container:
                    container.remove(force=True)


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
