"""Buckets and objects as folders and files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs.buckets import make_folder, resolve_folder


@dataclass(frozen=True)
class StoredObject:
    """A file of a bucket; `generation` is its modification time in nanoseconds, `size` its bytes."""

    bucket: str
    name: str
    path: Path
    generation: int
    size: int


@dataclass(frozen=True)
class Objects:
    """The objects below `root`, a folder per bucket. Files are objects, folders are not; symbolic links are nothing."""

    root: Path

    def buckets(self) -> list[str]:
        """Names of all buckets, in order."""
        return sorted(path.name for path in self.root.iterdir() if self.has_bucket(path.name))

    def has_bucket(self, bucket: str) -> bool:
        """Whether there is a bucket; no name that cannot be one is."""
        try:
            return self.path(bucket, "").is_dir()
        except ApiError:
            return False

    def make_bucket(self, bucket: str) -> None:
        """Make a bucket. Raises ApiError where there is one or the name is none."""
        if self.path(bucket, "").is_dir():
            raise ApiError("ALREADY_EXISTS", f"A bucket named {bucket} already exists on this emulator.", http=409)
        make_folder(self.root, f"gs://{bucket}")

    def remove_bucket(self, bucket: str) -> None:
        """Remove a bucket without objects, with the folders in it. Raises ApiError."""
        path = self.bucket(bucket)
        for below, _, files in os.walk(path, topdown=False):
            if files:
                raise _not_empty(bucket)
            try:
                Path(below).rmdir()
            except OSError as error:
                raise _not_empty(bucket) from error

    def bucket(self, bucket: str) -> Path:
        """The folder of a bucket. Raises ApiError NOT_FOUND."""
        path = self.path(bucket, "")
        if not path.is_dir():
            raise ApiError("NOT_FOUND", f"The specified bucket does not exist: {bucket}.")
        return path

    def path(self, bucket: str, name: str) -> Path:
        """Where an object lies or would lie, always below its bucket. Raises ApiError for a name that no file has."""
        uri = f"gs://{bucket}/{name}"
        try:
            if name.startswith("/") or name.endswith("//") or "/" in bucket:
                raise InvalidBucketUri(f'"{uri}" has an empty part, which cannot be a folder')
            path = resolve_folder(self.root, uri)
            if path.resolve() != self.root.resolve() / path.relative_to(self.root):
                raise InvalidBucketUri(f'"{uri}" goes through a symbolic link, which is no object')
        except InvalidBucketUri as error:
            raise ApiError("INVALID_ARGUMENT", f"{error}.") from error
        return path

    def get(self, bucket: str, name: str) -> StoredObject:
        """An object; a name that ends with "/" is a folder's. Raises ApiError NOT_FOUND."""
        path = self.path(bucket, name)
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            status = None
        if not name or status is None or path.is_dir() != name.endswith("/"):
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}")
        return StoredObject(bucket, name, path, status.st_mtime_ns, 0 if name.endswith("/") else status.st_size)

    def find(self, bucket: str, name: str) -> StoredObject | None:
        """An object, or None."""
        try:
            return self.get(bucket, name)
        except ApiError as error:
            if error.status != "NOT_FOUND":
                raise
            return None

    def put(self, bucket: str, name: str, file: Path) -> StoredObject:
        """Move a file to where the object lies, in one step; makes the bucket if need be. Raises ApiError, OSError."""
        path = self.path(bucket, name)
        if not name.endswith("/"):
            make_folder(self.root, f"gs://{bucket}/{name.rpartition('/')[0]}")
            file.chmod(0o666)  # training code runs as any user
            file.replace(path)
        elif file.stat().st_size:
            raise ApiError("INVALID_ARGUMENT", f"{bucket}/{name} is a folder here, which has no content of its own.")
        else:
            make_folder(self.root, f"gs://{bucket}/{name}")
            file.unlink()
        return self.get(bucket, name)

    def remove(self, found: StoredObject) -> None:
        """Remove an object, or an empty folder. Raises OSError."""
        if found.name.endswith("/"):
            found.path.rmdir()
        else:
            found.path.unlink()

    def names(self, bucket: str, prefix: str = "", after: str = "") -> Iterator[str]:
        """Names of objects that start with `prefix` and come after `after`, in order. Raises ApiError."""
        root = self.bucket(bucket)
        yield from _names(root, "", prefix, after)


def _names(path: Path, above: str, prefix: str, after: str) -> Iterator[str]:
    entries = []
    # A container may remove a folder while it is listed.
    with contextlib.suppress(FileNotFoundError), os.scandir(path) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                entries.append(f"{above}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                entries.append(above + entry.name)
    # A folder sorts as its name with "/", so that all names below it come in the order of whole names.
    for name in sorted(entries):
        if not _is_text(name):
            continue
        if not name.endswith("/"):
            if name.startswith(prefix) and name > after:
                yield name
        elif (name.startswith(prefix) or prefix.startswith(name)) and (name > after or after.startswith(name)):
            yield from _names(path / name.removeprefix(above).rstrip("/"), name, prefix, after)


def _is_text(name: str) -> bool:
    """Object names are UTF-8; a container can make files whose names are not."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_empty(bucket: str) -> ApiError:
    return ApiError("FAILED_PRECONDITION", f"The bucket you tried to delete is not empty: {bucket}.", http=409)
