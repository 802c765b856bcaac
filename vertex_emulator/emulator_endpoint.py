"""The address of a running emulator: endpoint.json in its data folder, valid while the folder's lock is held."""

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
        """Write endpoint.json atomically. Raises StartError."""
        partial = path.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(asdict(self)) + "\n")
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise StartError(f"{path} cannot be written: {error.strerror}") from error


def require_running_endpoint(data_path: Path) -> Endpoint:
    """Return the endpoint of the emulator that serves a data folder. Raises EmulatorNotRunning."""
    not_running = EmulatorNotRunning(
        f"no emulator is running on {data_path}; start one with: vertex-emulator serve --data {data_path}"
    )
    try:
        acquire_lock_without_waiting(data_path / "lock").close()
    except StartError:
        pass
    except FileNotFoundError:
        raise not_running from None
    else:
        raise not_running
    try:
        return Endpoint(**json.loads((data_path / "endpoint.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise EmulatorNotRunning(f"the emulator on {data_path} is just starting or stopping; try again") from error


def acquire_lock_without_waiting(lock_path: Path) -> IO[str]:
    """Acquire the data folder's lock, held until the returned file is closed or the process ends.

    Raises StartError if another process holds it, and FileNotFoundError without a data folder.
    """
    try:
        file = os.fdopen(os.open(lock_path, os.O_RDWR | (os.O_CREAT if lock_path.parent.is_dir() else 0), 0o644), "r+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise
    except FileNotFoundError:
        raise
    except BlockingIOError as error:
        message = f"an emulator is already running on {lock_path.parent}; stop it with: vertex-emulator stop"
        raise StartError(message, EXIT_ALREADY_RUNNING) from error
    except OSError as error:
        raise StartError(f"the lock {lock_path} cannot be acquired: {error.strerror}") from error
    return file
