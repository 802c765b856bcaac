"""Locks between the processes of one machine, which end with whoever holds them: `flock(2)` on a file or folder."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def open_lock(path: Path) -> IO[str]:
    """Open a file to lock, and make it for its owner only if there is none. Raises OSError, for a link as well."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "r+")


def take(file: int | IO[str], *, shared: bool = False) -> None:
    """Lock an open file as soon as nobody holds it; many may hold it `shared`. It is free again once it is closed."""
    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def try_take(file: int | IO[str], *, shared: bool = False) -> bool:
    """Lock an open file if nobody holds it, and return whether it is locked."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def free(file: int | IO[str]) -> None:
    """Free an open file, which stays open."""
    fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def held(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a file for the block; if another process has it, call `on_wait` first. Raises OSError, as `open_lock`."""
    with open_lock(path) as file:
        if not try_take(file):
            if on_wait:
                on_wait()
            take(file)
        yield
