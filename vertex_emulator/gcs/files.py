"""The files of all buckets, reached so that nothing a container creates leads elsewhere or blocks.

`gs://bucket/object` is the file `gcs/bucket/object` of the data folder. Containers write to buckets while the emulator
reads them, and may replace a folder by a symbolic link between any two system calls. So each access descends from the
buckets folder part by part, by descriptors that follow no link, and what it has reached is judged by its descriptor.
Nothing else in the emulator opens, lists, creates or deletes in buckets.
"""

import contextlib
import errno
import heapq
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from vertex_emulator.errors import ApiError, InvalidBucketName, InvalidBucketUri

ROOT = "gs://"
MAX_NAME_BYTES = 1024  # Cloud Storage, "About Cloud Storage objects"
MAX_PARTS = 100  # the work on a path grows with them, and a container can nest folders without end
_MAX_PART_BYTES = 255  # Linux's limit for a file name
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")  # Google's page on bucket names
# Opening a device or a named pipe can have effects or block. On Linux, O_PATH finds it without opening it.
_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITABLE = 0o777
_MAX_ATTEMPTS = 100
# The first holds a page of names, so that a folder is read once for it; the last bounds the memory of longer walks.
_FIRST_BATCH, _MAX_BATCH = 2_000, 100_000
_COPY_BYTES = 1 << 20
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


def split_uri(uri: str) -> tuple[str, ...]:
    """Return the bucket and the parts of the object's name, each a valid file name. Raises InvalidBucketUri."""
    if not uri.startswith(ROOT):
        raise InvalidBucketUri(f'"{uri}" is not a Cloud Storage URI: it must start with gs://')
    bucket, _, name = uri.removeprefix(ROOT).partition("/")
    if not is_bucket(bucket):
        raise InvalidBucketName(uri, bucket)
    if not is_utf8(name):
        raise InvalidBucketUri(f"{uri!a} is not UTF-8, which the names of objects are")
    parts = name.strip("/").split("/") if name.strip("/") else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise InvalidBucketUri(f'"{uri}" has an empty, "." or ".." part, which is not a valid folder name')
    if any(len(part.encode()) > _MAX_PART_BYTES for part in parts):
        rule = f"has a part of more than {_MAX_PART_BYTES} bytes, which is more than a file name can have here"
        raise InvalidBucketUri(f'"{uri}" {rule}')
    if len(parts) > MAX_PARTS:
        raise InvalidBucketUri(f'"{uri[:80]}…" has more than {MAX_PARTS} parts, more than the emulator serves')
    if len(name.encode()) > MAX_NAME_BYTES:
        message = f"its object name is longer than Cloud Storage's limit of {MAX_NAME_BYTES} bytes; shorten it"
        raise InvalidBucketUri(f'"{uri[:80]}…": {message}')
    return (bucket, *parts)


def is_bucket(name: str) -> bool:
    """Return whether a bucket can have this name."""
    return _BUCKET.fullmatch(name) is not None and ".." not in name


def join_uri(bucket: str, name: str) -> str:
    """Return the URI of an object. Raises InvalidBucketUri for a name that would be another one as a path."""
    uri = f"{ROOT}{bucket}/{name}"
    if not is_bucket(bucket):
        raise InvalidBucketName(uri, bucket)
    if name.startswith("/") or name.endswith("//"):
        raise InvalidBucketUri(f'"{uri}" has an empty part, which is not a valid folder name')
    return uri


def is_utf8(name: str) -> bool:
    """Return whether a name is UTF-8, as object names are: containers can create files with other names."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class BucketTree:
    """The folder `root` with a folder per bucket.

    Methods take gs:// URIs, and raise InvalidBucketUri for one that is none or leads through a link, and OSError.
    """

    root: Path

    def path(self, uri: str) -> Path:
        """The path of a URI as people see it; opening it is not safe."""
        return self.root.joinpath(*_split_or_root(uri))

    def check(self, uri: str) -> None:
        """Raise InvalidBucketUri if nothing can be stored at a URI because of its form or because of a link."""
        with contextlib.suppress(PermissionError):
            self.stat(uri)

    def stat(self, uri: str) -> os.stat_result | None:
        """The status of what a URI names, None if there is nothing."""
        try:
            with self._descend(split_uri(uri)) as descriptor:
                return os.fstat(descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, uri: str) -> FileIO:
        """Open a regular file for reading; the `strerror` of an OSError says why it cannot be."""
        with self._descend(split_uri(uri)) as descriptor:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise NotRegularFile(mode, uri)
            # A container that has a lease on its file would keep whoever opens it waiting for 45 s (`man 2 fcntl`).
            return FileIO(os.open(f"/dev/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK), "rb")

    @contextlib.contextmanager
    def scan(self, uri: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Yield the entries of a folder, to be used while it is open."""
        with (
            self._descend(_split_or_root(uri)) as descriptor,
            _readable(descriptor) as folder,
            os.scandir(folder) as entries,
        ):
            yield entries

    def readlink(self, uri: str) -> str:
        """Return where a symbolic link leads, without going there."""
        *parents, name = split_uri(uri)
        with self._descend(parents) as folder:
            return os.readlink(name, dir_fd=folder)

    def mkdir(self, uri: str) -> None:
        """Create the folder of a URI. Raises InvalidBucketUri also if a file has its name.

        It and its parents in the bucket become writable for every user, because containers run as any user; each time,
        because a process may have been killed between creating a folder and changing its mode.
        """
        self.mkdir_parts(split_uri(uri))

    def mkdir_parts(self, parts: Sequence[str]) -> None:
        """Create the folder with these parts, each a valid file name, as `mkdir` does."""

        def make() -> None:
            with self._descend(parts, makes_folders=True):
                pass

        _persist(make, ROOT + "/".join(parts))

    def move_in(self, outside_file: Path, uri: str) -> None:
        """Move a file from outside of the buckets to a URI, atomically, and create its folder if needed."""
        *parents, name = split_uri(uri)

        def move() -> None:
            with self._descend(parents, makes_folders=True) as folder:
                try:
                    os.replace(outside_file, name, dst_dir_fd=folder)
                except OSError as error:
                    if error.errno != errno.EXDEV:
                        raise
                    self._copy_in(outside_file, name, folder)

        _persist(move, uri)

    def _copy_in(self, outside_file: Path, name: str, folder: int) -> None:
        """Move a file from another file system to an open folder, atomically all the same."""
        # In the root, where containers write nothing, and under a name that no bucket has.
        number, path = tempfile.mkstemp(prefix=".", suffix=".partial", dir=self.root)
        partial = Path(path)
        try:
            with os.fdopen(number, "wb") as target, outside_file.open("rb") as source:
                status = os.fstat(source.fileno())
                shutil.copyfileobj(source, target, _COPY_BYTES)
                target.flush()
                os.fchmod(number, stat.S_IMODE(status.st_mode))
                os.utime(number, ns=(status.st_atime_ns, status.st_mtime_ns))  # an object's generation
            os.replace(partial, name, dst_dir_fd=folder)
        finally:
            partial.unlink(missing_ok=True)
        outside_file.unlink()

    def move(self, source_uri: str, destination_uri: str) -> None:
        """Give a file another URI, atomically, and create its folder if needed."""
        *source_parents, source_name = split_uri(source_uri)
        *parents, name = split_uri(destination_uri)
        with (
            self._descend(source_parents) as source_folder,
            self._descend(parents, makes_folders=True) as folder,
        ):
            os.replace(source_name, name, src_dir_fd=source_folder, dst_dir_fd=folder)

    def unlink(self, uri: str) -> None:
        """Remove a file."""
        *parents, name = split_uri(uri)
        with self._descend(parents) as folder:
            os.unlink(name, dir_fd=folder)

    def rmdir(self, uri: str) -> None:
        """Remove an empty folder."""
        *parents, name = split_uri(uri)
        with self._descend(parents) as folder:
            os.rmdir(name, dir_fd=folder)

    def names(self, bucket: str, prefix: str = "", after: str = "", folders_as_prefixes: bool = False) -> Iterator[str]:
        """Yield the names of objects that start with `prefix` and sort after `after`, in order.

        A limited number is read at a time, however many files a folder has. With `folders_as_prefixes`, a folder below
        `prefix` is yielded in place of the objects in it, as `name/`.
        """
        yield from self._names_below("", bucket, prefix, after, folders_as_prefixes)

    def _names_below(
        self, parent: str, bucket: str, prefix: str, after: str, folders_as_prefixes: bool
    ) -> Iterator[str]:
        def is_wanted(name: str) -> bool:
            if name.endswith("/"):
                has_prefix = name.startswith(prefix) or prefix.startswith(name)
                return has_prefix and (name > after or after.startswith(name))
            return name.startswith(prefix) and name > after

        last, size = "", _FIRST_BATCH
        while True:
            # A folder sorts as its name with "/", so that all names below it come in the order of whole names.
            found = (name for name in self._unsorted_names(bucket, parent) if name > last and is_wanted(name))
            batch = heapq.nsmallest(size, found)
            for name in batch:
                if not name.endswith("/"):
                    yield name
                elif not folders_as_prefixes or not name.startswith(prefix) or name == prefix:
                    yield from self._names_below(name, bucket, prefix, after, folders_as_prefixes)
                elif after.startswith(name):
                    if next(self._names_below(name, bucket, prefix, after, False), None) is not None:
                        yield name
                elif self._has_objects_below(bucket, name):
                    yield name
            if len(batch) < size:
                return
            last, size = batch[-1], min(10 * size, _MAX_BATCH)

    def has_objects(self, uri: str) -> bool:
        """Return whether there is an object below a URI."""
        bucket, *parts = split_uri(uri)
        return self._has_objects_below(bucket, "".join(f"{part}/" for part in parts))

    def _has_objects_below(self, bucket: str, parent: str) -> bool:
        subfolders = []
        try:
            for name in self._unsorted_names(bucket, parent):
                if not name.endswith("/"):
                    return True
                subfolders.append(name)
        except PermissionError:
            return True  # whoever closed the folder to the emulator's user keeps something in it
        return any(self._has_objects_below(bucket, name) for name in subfolders)

    def _unsorted_names(self, bucket: str, parent: str) -> Iterator[str]:
        """Yield the names of objects in a folder and, with "/", of its subfolders; none if a container has
        deleted or replaced it."""
        try:
            with self.scan(f"{ROOT}{bucket}/{parent}") as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        name = f"{parent}{entry.name}/"
                    elif entry.is_file(follow_symlinks=False):
                        name = parent + entry.name
                    else:
                        continue
                    if name.count("/") < MAX_PARTS and is_utf8(name) and len(name.encode()) <= MAX_NAME_BYTES:
                        yield name
        except (FileNotFoundError, NotADirectoryError, InvalidBucketUri):
            return

    @contextlib.contextmanager
    def _descend(self, parts: Sequence[str], makes_folders: bool = False) -> Iterator[int]:
        """Yield a path descriptor of what has these parts, whatever it is."""
        # The root itself is outside of all containers, and a user may have made it a link.
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for depth, part in enumerate(parts, 1):
                if makes_folders:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                entry = _open_part(descriptor, part, parts)
                os.close(descriptor)
                descriptor = entry
                if makes_folders:
                    _make_writable(descriptor, parts[:depth], parts)
            yield descriptor
        finally:
            os.close(descriptor)


def _split_or_root(uri: str) -> tuple[str, ...]:
    return () if uri == ROOT else split_uri(uri)


def _persist(create: Callable[[], None], uri: str) -> None:
    """Create something, again if a container removes its folders meanwhile. Raises InvalidBucketUri and OSError."""
    for _ in range(_MAX_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            return create()
    raise InvalidBucketUri(f'"{uri}" cannot be created: its folders are removed as soon as they are made')


def _open_part(folder: int, name: str, uri_parts: Sequence[str]) -> int:
    """Return a path descriptor of an entry of a folder. Raises InvalidBucketUri for a link, and OSError."""
    uri = ROOT + "/".join(uri_parts)
    link = InvalidBucketUri(f'"{uri}" goes through a symbolic link ("{name}"), which is not an object; use its target')
    try:
        entry = os.open(name, _PATH_ONLY, dir_fd=folder)
    except OSError as error:
        # Without O_PATH, a link cannot be opened.
        if error.errno == errno.ELOOP:
            raise link from error
        raise
    if stat.S_ISLNK(os.fstat(entry).st_mode):
        os.close(entry)
        raise link
    return entry


def _make_writable(descriptor: int, folder_parts: Sequence[str], uri_parts: Sequence[str]) -> None:
    """Make a folder writable for every user, unless it is another user's. Raises InvalidBucketUri if it is none."""
    status = os.fstat(descriptor)
    if not stat.S_ISDIR(status.st_mode):
        uri, here = (ROOT + "/".join(each) for each in (uri_parts, folder_parts))
        raise InvalidBucketUri(f'"{uri}" cannot be a folder: {here} is a file')
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != _WRITABLE:
        with _readable(descriptor) as folder:
            os.fchmod(folder, _WRITABLE)


@contextlib.contextmanager
def _readable(path_descriptor: int) -> Iterator[int]:
    """Open the folder of a path descriptor, to list it or to change its mode. Raises OSError."""
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=path_descriptor)
    try:
        yield folder
    finally:
        os.close(folder)


@dataclass(frozen=True)
class FolderCopier:
    """Copies folders within `tree`, as models need; `unfinished` is a folder on the same file system."""

    tree: BucketTree
    unfinished: Path

    def copy(self, source_uri: str, destination_uri: str) -> int:
        """Copy the files of one folder to another and return how many. Raises ApiError, InvalidBucketUri, OSError."""
        bucket, *parts = split_uri(source_uri)
        prefix = "".join(f"{part}/" for part in parts)
        # All names before the first copy, which may be in the same folder.
        names = list(self.tree.names(bucket, prefix))
        for name in names:
            with self.tree.open(f"{ROOT}{bucket}/{name}") as file:
                self._copy_file(file, f"{destination_uri.rstrip('/')}/{name.removeprefix(prefix)}")
        return len(names)

    def _copy_file(self, file: FileIO, uri: str) -> None:
        missing = os.fstat(file.fileno()).st_size
        free = shutil.disk_usage(self.unfinished).free
        if missing > free:
            message = f"The disk has {free} bytes left, and {uri} needs {missing}."
            raise ApiError("RESOURCE_EXHAUSTED", message, http=413)
        number, path = tempfile.mkstemp(suffix=".partial", dir=self.unfinished)
        try:
            with os.fdopen(number, "wb") as copy:
                # Not to the end, which a container may move on meanwhile.
                while missing and (data := file.read(min(missing, _COPY_BYTES))):
                    copy.write(data)
                    missing -= len(data)
            Path(path).chmod(0o666)  # training code runs as any user
            self.tree.move_in(Path(path), uri)
        finally:
            Path(path).unlink(missing_ok=True)
