"""How a running emulator is found: endpoint.json in its data folder, true as long as the folder's lock is held."""

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from vertex_emulator.errors import EmulatorNotRunning, StartError

EXIT_ALREADY_RUNNING = 3


@dataclass(frozen=True)
class Endpoint:
    """Where an emulator listens, and which process it is."""

    pid: int
    host: str
    port: int
    url: str
    version: str

    def write(self, path: Path) -> None:
        """Write the file, all of it or nothing. Raises StartError."""
        partial = path.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(asdict(self)) + "\n")
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise StartError(f"{path} cannot be written: {error.strerror}") from error


def find_running_emulator(data: Path) -> Endpoint:
    """The emulator that serves a data folder. Raises NotRunning."""
    nobody = EmulatorNotRunning(
        f"no emulator is running on {data}; start one with: python -m vertex_emulator serve --data {data}"
    )
    try:
        held = acquire_lock(data / "lock")
    except StartError:
        pass
    except FileNotFoundError:
        raise nobody from None
    else:
        held.close()
        raise nobody
    try:
        return Endpoint(**json.loads((data / "endpoint.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise EmulatorNotRunning(f"the emulator on {data} is just starting or stopping; try again") from error


def acquire_lock(lock: Path) -> IO[str]:
    """Hold the data folder's lock for as long as the file is open: a process that is killed lets go of it.

    Raises StartError when someone else holds it, FileNotFoundError without a data folder.
    """
    try:
        file = os.fdopen(os.open(lock, os.O_RDWR | (os.O_CREAT if lock.parent.is_dir() else 0), 0o644), "r+")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StartError(f"the lock {lock} cannot be held: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if not isinstance(error, BlockingIOError):
            raise StartError(f"the lock {lock} cannot be held: {error.strerror}") from error
        message = f"an emulator is already running on {lock.parent}; stop it with: python -m vertex_emulator stop"
        raise StartError(message, EXIT_ALREADY_RUNNING) from error
    return file
