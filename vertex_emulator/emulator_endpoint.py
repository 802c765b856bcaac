"""The address of a running emulator: endpoint.json in its data folder, valid while the folder's lock is held.

components/runtime/emulator_discovery.py reads it by the same rule.
"""

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from vertex_emulator.errors import EmulatorNotRunning, StartError

EXIT_ALREADY_RUNNING = 3
_PROBE_SECONDS = 0.2
"""Longer than any probe holds the lock."""


@dataclass(frozen=True)
class Endpoint:
    """Where an emulator listens, and which process it is.

    `token_file` is the file with the token that requests need, `None` where the kernel identifies the user.
    """

    pid: int
    host: str
    port: int
    url: str
    version: str
    token_file: str | None = None

    def read_token_or_empty(self) -> str:
        """Return the token that requests need, "" if they need none. Raises EmulatorNotRunning."""
        if self.token_file is None:
            return ""
        try:
            return Path(self.token_file).read_text().strip()
        except OSError as error:
            raise EmulatorNotRunning(f"the token {self.token_file} cannot be read: {error.strerror}") from error

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
    if not is_lock_held(data_path / "lock"):
        raise not_running
    try:
        return Endpoint(**json.loads((data_path / "endpoint.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise EmulatorNotRunning(f"the emulator on {data_path} is just starting or stopping; try again") from error


def find_running_endpoint(data_path: Path) -> Endpoint | None:
    """Return the endpoint of the emulator that serves a data folder, `None` without one that is ready."""
    try:
        return require_running_endpoint(data_path)
    except EmulatorNotRunning:
        return None


def is_lock_held(lock_path: Path) -> bool:
    """Return whether an emulator holds the data folder's lock. Raises StartError if the lock cannot be probed."""
    try:
        with lock_path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that two probes do not meet
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError as error:
        raise _build_lock_error(lock_path, error) from error
    return False


def open_locked_file_or_raise(lock_path: Path) -> IO[str]:
    """Open the data folder's lock file and lock it, until the file is closed or the process ends.

    Raises StartError if another process holds it, and FileNotFoundError without a data folder.
    """
    try:
        # Whoever can open it can hold it, and so pretend to be an emulator.
        number = os.open(lock_path, os.O_RDWR | (os.O_CREAT if lock_path.parent.is_dir() else 0), 0o600)
        file = os.fdopen(number, "r+")
        try:
            os.fchmod(number, 0o600)
            _lock_retrying_briefly(file)
        except OSError:
            file.close()
            raise
    except FileNotFoundError:
        raise
    except BlockingIOError as error:
        message = f"an emulator is already running on {lock_path.parent}; stop it with: vertex-emulator stop"
        raise StartError(message, EXIT_ALREADY_RUNNING) from error
    except OSError as error:
        raise _build_lock_error(lock_path, error) from error
    return file


def _lock_retrying_briefly(file: IO[str]) -> None:
    deadline = time.monotonic() + _PROBE_SECONDS
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _build_lock_error(lock_path: Path, error: OSError) -> StartError:
    return StartError(f"the lock {lock_path} cannot be acquired: {error.strerror}")
