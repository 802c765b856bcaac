"""Buckets and objects as folders and files."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs.bucket_folders import make_writable_folder, resolve_gs_uri


@dataclass(frozen=True)
class StoredObject:
    """A file of a bucket; `generation` is its modification time in nanoseconds, `size` its bytes."""

    bucket: str
    name: str
    path: Path
    generation: int
    size: int


@dataclass(frozen=True)
class ObjectStore:
    """The objects below `root`, a folder per bucket. Files are objects; folders and symbolic links are not."""

    root: Path

    def list_buckets(self) -> list[str]:
        """Return the names of all buckets in order."""
        return sorted(path.name for path in self.root.iterdir() if self.has_bucket(path.name))

    def has_bucket(self, bucket: str) -> bool:
        """Return whether a bucket exists; False for an invalid name."""
        try:
            return self.resolve_object_path(bucket, "").is_dir()
        except ApiError:
            return False

    def create_new_bucket(self, bucket: str) -> None:
        """Create a bucket. Raises ApiError if it exists or its name is invalid."""
        if self.resolve_object_path(bucket, "").is_dir():
            raise ApiError("ALREADY_EXISTS", f"A bucket named {bucket} already exists on this emulator.", http=409)
        make_writable_folder(self.root, f"gs://{bucket}")

    def delete_bucket(self, bucket: str) -> None:
        """Delete a bucket without objects, with the folders in it. Raises ApiError."""
        path = self.require_bucket_folder(bucket)
        for folder, _, files in os.walk(path, topdown=False):
            if files:
                raise _build_bucket_not_empty_error(bucket)
            try:
                Path(folder).rmdir()
            except OSError as error:
                raise _build_bucket_not_empty_error(bucket) from error

    def require_bucket_folder(self, bucket: str) -> Path:
        """Return the folder of a bucket. Raises ApiError NOT_FOUND."""
        path = self.resolve_object_path(bucket, "")
        if not path.is_dir():
            raise ApiError("NOT_FOUND", f"The specified bucket does not exist: {bucket}.")
        return path

    def resolve_object_path(self, bucket: str, name: str) -> Path:
        """Return the path of an object, whether it exists or not. Raises ApiError for a name that no file can have."""
        uri = f"gs://{bucket}/{name}"
        try:
            if name.startswith("/") or name.endswith("//") or "/" in bucket:
                raise InvalidBucketUri(f'"{uri}" has an empty part, which is not a valid folder name')
            path = resolve_gs_uri(self.root, uri)
            if path.resolve() != self.root.resolve() / path.relative_to(self.root):
                raise InvalidBucketUri(f'"{uri}" goes through a symbolic link, which is not an object')
        except InvalidBucketUri as error:
            raise ApiError("INVALID_ARGUMENT", f"{error}.") from error
        return path

    def require_object(self, bucket: str, name: str) -> StoredObject:
        """Return an object, or a folder if the name ends with "/". Raises ApiError NOT_FOUND."""
        stored = self.find_object_or_folder(bucket, name)
        if stored is None:
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}")
        return stored

    def find_object_or_folder(self, bucket: str, name: str) -> StoredObject | None:
        """Return an object, or a folder if the name ends with "/"; None if it does not exist. Raises ApiError."""
        path, is_folder = self.resolve_object_path(bucket, name), name.endswith("/")
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not name or path.is_dir() != is_folder:
            return None
        return StoredObject(bucket, name, path, status.st_mtime_ns, 0 if is_folder else status.st_size)

    def put_object_by_moving_file(self, bucket: str, name: str, source_file: Path) -> StoredObject:
        """Make a file the content of an object, atomically; creates the bucket if needed. Raises ApiError, OSError."""
        path = self.resolve_object_path(bucket, name)
        if not name.endswith("/"):
            make_writable_folder(self.root, f"gs://{bucket}/{name.rpartition('/')[0]}")
            source_file.chmod(0o666)  # training code runs as any user
            source_file.replace(path)
        elif source_file.stat().st_size:
            raise ApiError("INVALID_ARGUMENT", f"{bucket}/{name} is a folder here, which has no content of its own.")
        else:
            make_writable_folder(self.root, f"gs://{bucket}/{name}")
            source_file.unlink()
        return self.require_object(bucket, name)

    def delete_object(self, stored: StoredObject) -> None:
        """Delete an object or an empty folder. Raises OSError."""
        if stored.name.endswith("/"):
            stored.path.rmdir()
        else:
            stored.path.unlink()

    def iterate_object_names(self, bucket: str, prefix: str = "", after: str = "") -> Iterator[str]:
        """Yield the names of objects that start with `prefix` and sort after `after`, in order. Raises ApiError."""
        yield from _walk_object_names(self.require_bucket_folder(bucket), "", prefix, after)


def check_preconditions(preconditions: Mapping[str, str], stored: StoredObject | None) -> None:
    """Raise ApiError (412) for a precondition that does not hold; generation 0 means that there is no object.

    Source: Cloud Storage, "Request preconditions".
    """
    generation = str(stored.generation) if stored else "0"
    for name, holds in (
        ("ifGenerationMatch", preconditions.get("ifGenerationMatch", generation) == generation),
        ("ifGenerationNotMatch", preconditions.get("ifGenerationNotMatch") != generation),
    ):
        if not holds:
            message = f"At least one of the pre-conditions you specified did not hold: {name}."
            raise ApiError("FAILED_PRECONDITION", message, http=412)


def _walk_object_names(path: Path, parent: str, prefix: str, after: str) -> Iterator[str]:
    entries = []
    # A container may delete a folder while it is listed.
    with contextlib.suppress(FileNotFoundError), os.scandir(path) as scanned:
        for entry in scanned:
            if entry.is_dir(follow_symlinks=False):
                entries.append(f"{parent}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                entries.append(parent + entry.name)
    # A folder sorts as its name with "/", so that all names below it come in the order of whole names.
    for name in sorted(entries):
        if not _is_utf8(name):
            continue
        if not name.endswith("/"):
            if name.startswith(prefix) and name > after:
                yield name
        elif (name.startswith(prefix) or prefix.startswith(name)) and (name > after or after.startswith(name)):
            yield from _walk_object_names(path / name.removeprefix(parent).rstrip("/"), name, prefix, after)


def _is_utf8(name: str) -> bool:
    """Return whether a name is UTF-8, as object names are: containers can create files with other names."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _build_bucket_not_empty_error(bucket: str) -> ApiError:
    return ApiError("FAILED_PRECONDITION", f"The bucket you tried to delete is not empty: {bucket}.", http=409)
