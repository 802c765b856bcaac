"""Buckets that show what those of a stack's emulator hold, and keep apart what is written, overwritten and deleted.

Where this process may mount, Linux lays a folder over them, and nothing is copied. Elsewhere all is copied, and not
linked: docs/decisions/0019-a-run-reads-the-buckets-of-its-stack.md says why. Containers write to the buckets, and a
branch may have brought them, so each folder is reached from the one above it, and no link is followed.
"""

import ctypes
import errno
import os
import shutil
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path
from urllib.parse import urlsplit

from ..rehearsal_file import size

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_SETUID_NO_DEVICES, _DETACH, _NO_FOLLOW = 2 | 4, 2, 8  # man 2 mount, man 2 umount
# With these, a change of a time copies no content, nothing waits for the disk, and folders can be renamed.
_OPTIONS = "metacopy=on,redirect_dir=on,index=off,volatile"
_MAX_MARKED, _MIN_MARKED = 2_000, 20
"""Of the files of all buckets, and of one."""
_MAX_DEPTH = 100
"""Of the names of objects (vertex_emulator/gcs/files.py): containers nest folders without end."""
_CHUNK = 64 << 20
_TOLD_BYTES = 256 << 20
"""From where on a copy takes long enough to be told of."""


def show(held: Path, buckets: Path, say: Callable[[str], None]) -> None:
    """Let `buckets`, an empty folder, show what there is in the folder `held`, if there is one. Raises OSError."""
    try:
        lower = os.open(held, _FOLDER)
    except FileNotFoundError:
        return
    try:
        if not _mounted(lower, buckets):
            _Copy(lower, buckets).run(f"{held}", say)
    finally:
        os.close(lower)


def hide(buckets: Path) -> None:
    """Undo `show`, which leaves what was copied."""
    if os.path.ismount(buckets):
        _libc().umount2(os.fsencode(buckets), _DETACH | _NO_FOLLOW)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _mounted(lower: int, buckets: Path) -> bool:
    """Mount buckets over the open folder `lower`; return False if that is impossible, or Docker would not see it."""
    if sys.platform != "linux" or os.geteuid() != 0 or not _docker_sees_mounts():
        return False
    with ExitStack() as opened:
        layers = {"lowerdir": lower}
        for key in ("upperdir", "workdir"):
            folder = buckets.with_name(f"{buckets.name}-{key}")
            folder.mkdir(exist_ok=True)
            layers[key] = os.open(folder, _FOLDER)
            opened.callback(os.close, layers[key])
        # By descriptors: a path may have the commas and colons that separate options.
        options = ",".join(f"{key}=/proc/self/fd/{number}" for key, number in layers.items())
        for more in (f",{_OPTIONS}", ""):
            made = _libc().mount(
                b"overlay", os.fsencode(buckets), b"overlay", _NO_SETUID_NO_DEVICES, f"{options}{more}".encode()
            )
            if made == 0:
                break
        else:
            return False
    if more:
        _mark_unread(buckets)
    return True


def _docker_sees_mounts() -> bool:
    """Whether Docker's daemon has the mounts of this process: it may be on another machine, or in another container."""
    address = urlsplit(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
    with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.connect(address.path if address.scheme == "unix" else "")
        process, _, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return os.path.samestat(Path(f"/proc/{process}/ns/mnt").stat(), Path("/proc/self/ns/mnt").stat())
    return False


def _mark_unread(buckets: Path) -> None:
    """Give files a time of reading that the next one changes: the time of one that only shows through never does.

    That takes 0.1 ms and more for each, so of many it is some of each bucket: who reads a bucket mostly reads many.
    """
    with os.scandir(buckets) as entries:
        folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    for bucket in folders:
        left = max(_MIN_MARKED, _MAX_MARKED // len(folders))
        for _, _, files, folder in os.fwalk(bucket):
            for name in files[:left]:
                with suppress(OSError):
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode):
                        os.utime(name, ns=(found.st_mtime_ns,) * 2, dir_fd=folder, follow_symlinks=False)
            left -= len(files[:left])
            if not left:
                break


class _Copy:
    """A copy of all that is below an open folder, links as links; file systems that can share the content do so."""

    def __init__(self, source: int, place: Path) -> None:
        self._source, self._place = source, place
        self._unread = 0

    def run(self, name: str, say: Callable[[str], None]) -> None:
        """Copy; say what takes long, and what cannot be read. Raises OSError, also where the disk has no room."""
        sizes = [status.st_size for _, _, _, status in self._entries() if stat.S_ISREG(status.st_mode)]
        total, free = sum(sizes), shutil.disk_usage(self._place).free
        if total > free:
            raise OSError(errno.ENOSPC, f"has {size(total)}, and there is room for {size(free)}", name)
        if total >= _TOLD_BYTES:
            say(f"copying {size(total)} of {name}; --no-inputs leaves them out")
        self._unread = 0
        for place, entry, folder, status in self._entries():
            try:
                if stat.S_ISDIR(status.st_mode):
                    place.mkdir()
                    place.chmod(0o777)  # containers run as any user, and may have made it
                elif stat.S_ISLNK(status.st_mode):
                    place.symlink_to(os.readlink(entry, dir_fd=folder))
                elif stat.S_ISREG(status.st_mode):
                    _copy_file(entry, folder, place)
            except PermissionError:
                self._unread += 1
        if self._unread:
            say(f"{self._unread:,} files of {name} cannot be read, and are left out")

    def _entries(self) -> Iterator[tuple[Path, str, int, os.stat_result]]:
        """Yield the place of each copy with the entry's name, the folder that it is in, and its status."""

        def count(_: OSError) -> None:
            self._unread += 1

        for parent, folders, names, folder in os.fwalk(".", onerror=count, dir_fd=self._source):
            if len(Path(parent).parts) >= _MAX_DEPTH:
                folders.clear()
            for entry in (*folders, *names):
                with suppress(FileNotFoundError):  # the stack's own jobs may go on
                    status = os.stat(entry, dir_fd=folder, follow_symlinks=False)
                    yield self._place / parent / entry, entry, folder, status


def _copy_file(name: str, folder: int, place: Path) -> None:
    """Copy a file of an open folder, to where nobody else writes. Raises OSError."""
    with suppress(FileNotFoundError), os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb", buffering=0) as source:
        status = os.fstat(source.fileno())
        if not stat.S_ISREG(status.st_mode):
            return
        with place.open("xb", buffering=0) as target:
            os.fchmod(target.fileno(), 0o777 if status.st_mode & 0o100 else 0o666)
            left = status.st_size  # a container may append to it without end
            while left > 0 and (copied := _copy_some(source, target, min(left, _CHUNK))):
                left -= copied
            os.utime(target.fileno(), ns=(status.st_mtime_ns, status.st_mtime_ns))


def _copy_some(source: FileIO, target: FileIO, count: int) -> int:
    if hasattr(os, "copy_file_range"):
        with suppress(OSError):  # between file systems, for one
            return os.copy_file_range(source.fileno(), target.fileno(), count)
    return target.write(source.read(min(count, 1 << 20)))
