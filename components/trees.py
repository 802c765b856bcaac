"""Files below a folder that others write to: authors of pull requests, and containers.

Only ordinary files are opened, none through a link that leads out of the folder, and no copy fills the disk.
"""

import errno
import os
import shutil
import stat
from collections.abc import Collection
from pathlib import Path
from typing import IO, NamedTuple

MAX_TEXT_BYTES = 64 << 20
"""More than any text that people write."""
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


class Tree(NamedTuple):
    """What is below a folder: ordinary `files`, and `others`, which are links, pipes and what cannot be read."""

    files: list[Path]
    others: list[Path]


def walk(top: Path) -> Tree:
    """Return what is below a folder, which need not be there, in order and through no link."""
    found = Tree([], [])

    def leave_out(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            found.others.append(Path(error.filename))

    for parent, folders, names in os.walk(top, onerror=leave_out):
        for path in (Path(parent, name) for name in (*folders, *names)):
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode):
                (found.files if stat.S_ISREG(mode) else found.others).append(path)
    return Tree(sorted(found.files), sorted(found.others))


def open_file(file: Path, top: Path) -> IO[bytes]:
    """Open an ordinary file below a folder, also through links that stay there. Raises OSError."""
    real = os.path.realpath(file, strict=True)
    if not Path(real).is_relative_to(os.path.realpath(top)):
        raise OSError(errno.EXDEV, f"is a link that leads out of {top}", str(file))
    # A device or a pipe that takes the file's place would block, and some do something when they are opened.
    descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no ordinary file", str(file))
    return os.fdopen(descriptor, "rb")


def read(file: Path, top: Path, most: int = MAX_TEXT_BYTES) -> bytes:
    """Return the content of such a file. Raises OSError, also for one of more than `most` bytes."""
    with open_file(file, top) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"has more than {most >> 20} MiB", str(file))
    return content


def copy_file(file: Path, top: Path, place: Path) -> None:
    """Copy such a file, with its time and whether it can be executed; no other bit of its mode. Raises OSError."""
    with open_file(file, top) as source:
        status = os.fstat(source.fileno())
        mode = 0o777 if status.st_mode & 0o100 else 0o666
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | _FLAGS, mode)
        with os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.utime(target.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def require_space(files: Collection[Path], place: Path) -> None:
    """Raise OSError unless the disk of an existing folder has room for copies of files, holes in them included."""
    needed, free = sum(file.stat().st_size for file in files), shutil.disk_usage(place).free
    if needed > free:
        raise OSError(errno.ENOSPC, f"has room for {free:,} bytes, and {needed:,} are to be copied", str(place))
