"""The tree of all buckets' files and folders, reached so that nothing a container creates leads elsewhere or blocks.

Containers write to buckets while the emulator reads them, and may replace a folder by a symbolic link between any two
system calls. So each access descends from the buckets folder part by part, by descriptors that follow no link, and what
it has reached is judged by its descriptor. Nothing else in the emulator opens, lists, creates or deletes in buckets.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.gs_uri import parse_gs_uri_parts

ROOT = "gs://"
# Opening a device or a named pipe can have effects or block. On Linux, O_PATH finds it without opening it.
_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITABLE = 0o777
_MAX_ATTEMPTS = 100
_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotRegularFile(FileNotFoundError):
    """There is something else under the name of a file; `strerror` says what."""

    def __init__(self, mode: int, uri: str) -> None:
        kind = _KINDS.get(stat.S_IFMT(mode), "a special file")
        super().__init__(errno.ENOENT, f"it is {kind}, not a regular file", uri)


@dataclass(frozen=True)
class BucketFileTree:
    """The folder `root` with a folder per bucket; methods take gs:// URIs and raise InvalidBucketUri for links."""

    root: Path

    def build_local_path(self, uri: str) -> Path:
        """Return the path of a URI as people see it; opening it is not safe. Raises InvalidBucketUri."""
        return self.root.joinpath(*_parse_uri_or_root(uri))

    def raise_unless_uri_is_storable(self, uri: str) -> None:
        """Raise InvalidBucketUri if nothing can be stored at a URI because of its form or because of a link."""
        with contextlib.suppress(PermissionError):
            self.find_file_or_folder_stat(uri)

    def find_file_or_folder_stat(self, uri: str) -> os.stat_result | None:
        """Return the status of what a URI names, None if there is nothing. Raises InvalidBucketUri and OSError."""
        try:
            with self._open_path_descriptor(parse_gs_uri_parts(uri)) as path_descriptor:
                return os.fstat(path_descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open_regular_file(self, uri: str) -> FileIO:
        """Open a regular file for reading. Raises InvalidBucketUri, and OSError, whose `strerror` says the reason."""
        with self._open_path_descriptor(parse_gs_uri_parts(uri)) as path_descriptor:
            mode = os.fstat(path_descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise NotRegularFile(mode, uri)
            # A container that has a lease on its file would keep whoever opens it waiting for 45 s (`man 2 fcntl`).
            return FileIO(os.open(f"/dev/fd/{path_descriptor}", os.O_RDONLY | os.O_NONBLOCK), "rb")

    @contextlib.contextmanager
    def open_folder_scan(self, uri: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Yield the entries of a folder, to be used while it is open. Raises InvalidBucketUri and OSError."""
        located = self._open_path_descriptor(_parse_uri_or_root(uri))
        with (
            located as path_descriptor,
            _keep_readable_folder_open(path_descriptor) as folder,
            os.scandir(folder) as entries,
        ):
            yield entries

    def read_link_target(self, uri: str) -> str:
        """Return where a symbolic link leads, without going there. Raises InvalidBucketUri and OSError."""
        *parents, name = parse_gs_uri_parts(uri)
        with self._open_path_descriptor(parents) as folder:
            return os.readlink(name, dir_fd=folder)

    def make_writable_folder(self, uri: str) -> None:
        """Create the folder of a URI. Raises InvalidBucketUri, also if a file has its name, and OSError.

        It and its parents in the bucket become writable for every user, because containers run as any user; each time,
        because a process may have been killed between creating a folder and changing its mode.
        """
        self.make_writable_folder_at_path_parts(parse_gs_uri_parts(uri))

    def make_writable_folder_at_path_parts(self, parts: Sequence[str]) -> None:
        """Create the folder with these parts, each a valid file name, as `make_writable_folder` does."""

        def make() -> None:
            with self._open_path_descriptor(parts, makes_folders=True):
                pass

        _retry_while_folders_vanish(make, ROOT + "/".join(parts))

    def move_file_in(self, outside_file: Path, uri: str) -> None:
        """Move a file from outside of the buckets to a URI, atomically, and create its folder if needed.

        Raises InvalidBucketUri and OSError.
        """
        *parents, name = parse_gs_uri_parts(uri)

        def move() -> None:
            with self._open_path_descriptor(parents, makes_folders=True) as folder:
                os.replace(outside_file, name, dst_dir_fd=folder)

        _retry_while_folders_vanish(move, uri)

    def move_file(self, source_uri: str, destination_uri: str) -> None:
        """Give a file another URI, atomically, and create its folder if needed. Raises InvalidBucketUri and OSError."""
        *source_parents, source_name = parse_gs_uri_parts(source_uri)
        *parents, name = parse_gs_uri_parts(destination_uri)
        with (
            self._open_path_descriptor(source_parents) as source_folder,
            self._open_path_descriptor(parents, makes_folders=True) as folder,
        ):
            os.replace(source_name, name, src_dir_fd=source_folder, dst_dir_fd=folder)

    def remove_file(self, uri: str) -> None:
        """Remove a file. Raises InvalidBucketUri and OSError."""
        *parents, name = parse_gs_uri_parts(uri)
        with self._open_path_descriptor(parents) as folder:
            os.unlink(name, dir_fd=folder)

    def remove_empty_folder(self, uri: str) -> None:
        """Remove an empty folder. Raises InvalidBucketUri and OSError."""
        *parents, name = parse_gs_uri_parts(uri)
        with self._open_path_descriptor(parents) as folder:
            os.rmdir(name, dir_fd=folder)

    @contextlib.contextmanager
    def _open_path_descriptor(self, parts: Sequence[str], makes_folders: bool = False) -> Iterator[int]:
        """Yield a descriptor of what has this path, whatever it is. Raises InvalidBucketUri and OSError."""
        # The root itself is outside of all containers, and a user may have made it a link.
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for depth, part in enumerate(parts, 1):
                if makes_folders:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                entry = _open_path_descriptor_or_raise_if_link(descriptor, part, parts)
                os.close(descriptor)
                descriptor = entry
                if makes_folders:
                    _make_folder_writable_or_raise_if_file(descriptor, parts[:depth], parts)
            yield descriptor
        finally:
            os.close(descriptor)


def _parse_uri_or_root(uri: str) -> tuple[str, ...]:
    return () if uri == ROOT else parse_gs_uri_parts(uri)


def _retry_while_folders_vanish(create: Callable[[], None], uri: str) -> None:
    """Create something, again if a container removes its folders meanwhile. Raises InvalidBucketUri and OSError."""
    for _ in range(_MAX_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            return create()
    raise InvalidBucketUri(f'"{uri}" cannot be created: its folders are removed as soon as they are made')


def _open_path_descriptor_or_raise_if_link(folder_descriptor: int, name: str, uri_parts: Sequence[str]) -> int:
    uri = ROOT + "/".join(uri_parts)
    link = InvalidBucketUri(f'"{uri}" goes through a symbolic link ("{name}"), which is not an object; use its target')
    try:
        entry = os.open(name, _PATH_ONLY, dir_fd=folder_descriptor)
    except OSError as error:
        # Without O_PATH, a link cannot be opened.
        if error.errno == errno.ELOOP:
            raise link from error
        raise
    if stat.S_ISLNK(os.fstat(entry).st_mode):
        os.close(entry)
        raise link
    return entry


def _make_folder_writable_or_raise_if_file(
    path_descriptor: int, folder_parts: Sequence[str], uri_parts: Sequence[str]
) -> None:
    """Make a folder writable for every user, unless it is another user's. Raises InvalidBucketUri if it is none."""
    status = os.fstat(path_descriptor)
    if not stat.S_ISDIR(status.st_mode):
        uri, here = (ROOT + "/".join(each) for each in (uri_parts, folder_parts))
        raise InvalidBucketUri(f'"{uri}" cannot be a folder: {here} is a file')
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != _WRITABLE:
        with _keep_readable_folder_open(path_descriptor) as folder:
            os.fchmod(folder, _WRITABLE)


@contextlib.contextmanager
def _keep_readable_folder_open(path_descriptor: int) -> Iterator[int]:
    """Open the folder of a path descriptor, to list it or to change its mode. Raises OSError."""
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=path_descriptor)
    try:
        yield folder
    finally:
        os.close(folder)
