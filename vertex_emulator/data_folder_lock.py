"""The lock of a data folder, which the emulator that serves it holds while it runs."""

import fcntl
import os
import time
from pathlib import Path
from typing import IO

from vertex_emulator.errors import StartError

EXIT_ALREADY_RUNNING = 3
_PROBE_SECONDS = 0.2
"""Longer than any probe holds the lock."""


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


def open_and_lock_file_or_raise(lock_path: Path) -> IO[str]:
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
