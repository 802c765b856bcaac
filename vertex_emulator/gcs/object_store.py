"""Buckets and objects as folders and files."""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from itertools import islice
from pathlib import Path

from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs import object_name_listing
from vertex_emulator.gcs.bucket_tree import ROOT, BucketTree, NotRegularFile

_BATCH = 10_000


@dataclass(frozen=True)
class StoredObject:
    """A file of a bucket; `generation` is its modification time in nanoseconds, `size` its bytes."""

    bucket: str
    name: str
    generation: int
    size: int


@dataclass(frozen=True)
class ObjectStore:
    """The objects in `tree`. Regular files are objects; folders, symbolic links and special files are not."""

    tree: BucketTree

    def list_bucket_names(self) -> list[str]:
        """Return the names of all buckets in order."""
        with self.tree.open_folder_scan(ROOT) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted(name for name in names if self.find_bucket_folder_stat(name) is not None)

    def find_bucket_folder_stat(self, bucket: str) -> os.stat_result | None:
        """Return the status of a bucket's folder; None if there is none, also for an invalid name."""
        try:
            status = self.tree.find_file_or_folder_stat(_build_uri(bucket, ""))
        except InvalidBucketUri:
            return None
        return status if status is not None and stat.S_ISDIR(status.st_mode) else None

    def require_bucket_folder_stat(self, bucket: str) -> os.stat_result:
        """Return the status of a bucket's folder. Raises ApiError NOT_FOUND, or INVALID_ARGUMENT for its name."""
        self.validate_name(bucket, "")
        status = self.find_bucket_folder_stat(bucket)
        if status is None:
            raise ApiError("NOT_FOUND", f"The specified bucket does not exist: {bucket}.")
        return status

    def create_new_bucket(self, bucket: str) -> None:
        """Create a bucket. Raises ApiError if it exists or its name is invalid."""
        self.validate_name(bucket, "")
        if self.find_bucket_folder_stat(bucket) is not None:
            raise ApiError("ALREADY_EXISTS", f"A bucket named {bucket} already exists on this emulator.", http=409)
        with _reject_invalid_uris():
            self.tree.make_writable_folder(_build_uri(bucket, ""))

    def delete_bucket(self, bucket: str) -> None:
        """Delete a bucket without objects, with the folders in it. Raises ApiError."""
        self.require_bucket_folder_stat(bucket)
        try:
            self._remove_folders_without_files(_build_uri(bucket, "").rstrip("/"))
        except (OSError, InvalidBucketUri) as error:
            message = f"The bucket you tried to delete is not empty: {bucket}."
            raise ApiError("FAILED_PRECONDITION", message, http=409) from error

    def validate_name(self, bucket: str, name: str) -> None:
        """Raise ApiError for a name that no object can have: an invalid one, or one that leads through a link."""
        with _reject_invalid_uris():
            self.tree.validate_uri(_build_uri(bucket, name))

    def require_object_or_folder(self, bucket: str, name: str) -> StoredObject:
        """Return an object, or a folder if the name ends with "/". Raises ApiError NOT_FOUND."""
        stored = self.find_object_or_folder(bucket, name)
        if stored is None:
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}")
        return stored

    def find_object_or_folder(self, bucket: str, name: str) -> StoredObject | None:
        """Return an object, or a folder if the name ends with "/"; None if it does not exist. Raises ApiError."""
        with _reject_invalid_uris():
            return _build_object_or_none(bucket, name, self.tree.find_file_or_folder_stat(_build_uri(bucket, name)))

    def list_existing_objects(self, bucket: str, names: list[str]) -> list[StoredObject]:
        """Return the objects with these names, except those that a container has removed or replaced meanwhile."""
        found = []
        for name in names:
            with contextlib.suppress(ApiError):
                found.append(self.find_object_or_folder(bucket, name))
        return [stored for stored in found if stored is not None]

    def require_object_and_open_file(self, bucket: str, name: str) -> tuple[StoredObject, FileIO | None]:
        """Return an object and its file, open for reading; a folder has none. Raises ApiError and OSError."""
        if not name or name.endswith("/"):  # without a name, the bucket, which a container may have made a file
            return self.require_object_or_folder(bucket, name), None
        try:
            with _reject_invalid_uris():
                file = self.tree.open_file(_build_uri(bucket, name))
        except NotRegularFile as error:
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}: {error.strerror}.") from error
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}") from error
        stored = _build_object_or_none(bucket, name, os.fstat(file.fileno()))
        assert stored is not None
        return stored, file

    def put_object_by_moving_file(self, bucket: str, name: str, source_file: Path) -> StoredObject:
        """Make a file the content of an object, atomically; creates the bucket if needed. Raises ApiError, OSError."""
        self.validate_name(bucket, name)
        uri = _build_uri(bucket, name)
        with _reject_invalid_uris():
            if not name.endswith("/"):
                source_file.chmod(0o666)  # training code runs as any user
                self.tree.move_file_in(source_file, uri)
            elif source_file.stat().st_size:
                raise ApiError(
                    "INVALID_ARGUMENT", f"{bucket}/{name} is a folder here, which has no content of its own."
                )
            else:
                self.tree.make_writable_folder(uri)
                source_file.unlink()
        return self.require_object_or_folder(bucket, name)

    def delete_object(self, stored: StoredObject) -> None:
        """Delete an object or an empty folder. Raises ApiError and OSError."""
        uri = _build_uri(stored.bucket, stored.name)
        with _reject_invalid_uris():
            if stored.name.endswith("/"):
                self.tree.remove_folder(uri)
            else:
                self.tree.remove_file(uri)

    def iterate_object_names(
        self, bucket: str, prefix: str = "", after: str = "", folders_as_prefixes: bool = False
    ) -> Iterator[str]:
        """Yield names of objects in order, as `object_name_listing.iterate_object_names` does. Raises ApiError."""
        self.require_bucket_folder_stat(bucket)
        yield from object_name_listing.iterate_object_names(self.tree, bucket, prefix, after, folders_as_prefixes)

    def _remove_folders_without_files(self, uri: str) -> None:
        """Remove a folder and all folders in it. Raises OSError at the first file, and InvalidBucketUri."""
        while True:
            with self.tree.open_folder_scan(uri) as entries:
                names = [entry.name for entry in islice(entries, _BATCH)]
            for name in names:
                self._remove_folders_without_files(f"{uri}/{name}")
            if len(names) < _BATCH:
                break
        self.tree.remove_folder(uri)


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


def _build_uri(bucket: str, name: str) -> str:
    """Return the URI of an object. Raises InvalidBucketUri for a name that would be another one as a path."""
    uri = f"gs://{bucket}/{name}"
    if name.startswith("/") or name.endswith("//") or "/" in bucket:
        raise InvalidBucketUri(f'"{uri}" has an empty part, which is not a valid folder name')
    return uri


def _build_object_or_none(bucket: str, name: str, status: os.stat_result | None) -> StoredObject | None:
    is_expected_kind = stat.S_ISDIR if name.endswith("/") else stat.S_ISREG
    if status is None or not name or not is_expected_kind(status.st_mode):
        return None
    return StoredObject(bucket, name, status.st_mtime_ns, 0 if name.endswith("/") else status.st_size)


@contextlib.contextmanager
def _reject_invalid_uris() -> Iterator[None]:
    try:
        yield
    except InvalidBucketUri as error:
        raise ApiError("INVALID_ARGUMENT", f"{error}.") from error
