"""Objects as files."""

import contextlib
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs import object_name_listing
from vertex_emulator.gcs.bucket_store import BucketStore
from vertex_emulator.gcs.gs_uri import build_object_uri, translate_invalid_uri_errors
from vertex_emulator.gcs.object_records import ObjectMetadata, StoredObject, guess_content_type_or_default
from vertex_emulator.gcs.preconditions import raise_unless_preconditions_hold
from vertex_emulator.gcs.symlink_safe_bucket_files import NotRegularFile
from vertex_emulator.times import now_ns

NO_FIELDS: Mapping[str, Any] = {}
_SECOND_NS = 10**9


@dataclass(frozen=True)
class ObjectStore:
    """The objects in `buckets`. Regular files are objects; folders, symbolic links and special files are not.

    Clients change objects one at a time, so that a precondition still holds when its object is replaced.
    """

    buckets: BucketStore
    _changes: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def require_object_or_folder(self, bucket: str, name: str) -> StoredObject:
        """Return an object, or a folder if the name ends with "/". Raises ApiError NOT_FOUND."""
        stored = self.find_object_or_folder(bucket, name)
        if stored is None:
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}")
        return stored

    def find_object_or_folder(self, bucket: str, name: str) -> StoredObject | None:
        """Return an object, or a folder if the name ends with "/"; None if it does not exist. Raises ApiError."""
        with translate_invalid_uri_errors():
            return self._build_object_or_none(
                bucket, name, self.buckets.tree.find_file_or_folder_stat(build_object_uri(bucket, name))
            )

    def list_existing_objects(self, bucket: str, names: list[str]) -> list[StoredObject]:
        """Return the objects with these names, except those that a container has removed or replaced meanwhile."""
        found = []
        for name in names:
            with contextlib.suppress(ApiError):
                found.append(self.find_object_or_folder(bucket, name))
        return [stored for stored in found if stored is not None]

    def require_object_and_open_unless_folder(self, bucket: str, name: str) -> tuple[StoredObject, FileIO | None]:
        """Return an object and its file, open for reading; None for a folder. Raises ApiError and OSError."""
        if not name or name.endswith("/"):  # without a name, the bucket, which a container may have made a file
            return self.require_object_or_folder(bucket, name), None
        try:
            with translate_invalid_uri_errors():
                file = self.buckets.tree.open_regular_file(build_object_uri(bucket, name))
        except NotRegularFile as error:
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}: {error.strerror}.") from error
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}") from error
        stored = self._build_object_or_none(bucket, name, os.fstat(file.fileno()))
        assert stored is not None
        return stored, file

    def put_object_by_moving_file(
        self,
        bucket: str,
        name: str,
        source_file: Path,
        fields: Mapping[str, Any] = NO_FIELDS,
        preconditions: Mapping[str, str] = NO_FIELDS,
    ) -> StoredObject:
        """Make a file the content of an object, atomically, with these metadata; create the bucket if needed.

        Raises ApiError, also for a precondition, and OSError.
        """
        self.buckets.validate_object_name(bucket, name)
        uri = build_object_uri(bucket, name)
        with self._changes, translate_invalid_uri_errors():
            former = self.find_object_or_folder(bucket, name)
            raise_unless_preconditions_hold(preconditions, former)
            if not name.endswith("/"):
                source_file.chmod(0o666)  # training code runs as any user
                generation = _ensure_newer_mtime_and_get_ns(source_file, former)
                with self._set_metadata_around_file_move(bucket, name, generation, fields):
                    self.buckets.tree.move_file_in(source_file, uri)
            elif source_file.stat().st_size:
                raise ApiError(
                    "INVALID_ARGUMENT", f"{bucket}/{name} is a folder here, which has no content of its own."
                )
            else:
                self.buckets.tree.make_writable_folder(uri)
                source_file.unlink()
            return self.require_object_or_folder(bucket, name)

    def move_object(
        self,
        bucket: str,
        source_name: str,
        name: str,
        preconditions: Mapping[str, str],
        raise_unless_source_is_movable: Callable[[StoredObject], None],
    ) -> StoredObject:
        """Give an object another name in its bucket, atomically, unless `raise_unless_source_is_movable` raises.

        Raises ApiError, also for a precondition, and OSError.
        """
        self.buckets.validate_object_name(bucket, name)
        if source_name.endswith("/") or name.endswith("/") or source_name == name:
            raise ApiError("INVALID_ARGUMENT", "A move has two names, and both are of objects, not of folders.")
        with self._changes, translate_invalid_uri_errors():
            source = self.require_object_or_folder(bucket, source_name)
            raise_unless_source_is_movable(source)
            raise_unless_preconditions_hold(preconditions, self.find_object_or_folder(bucket, name))
            fields = source.fields_of_copy
            with self._set_metadata_around_file_move(bucket, name, source.generation, fields):
                self.buckets.tree.move_file(build_object_uri(bucket, source_name), build_object_uri(bucket, name))
            self.buckets.metadata.delete_all_generations(bucket, source_name)
            return self.require_object_or_folder(bucket, name)

    def set_metadata(
        self, bucket: str, name: str, build_fields: Callable[[StoredObject], Mapping[str, Any]]
    ) -> StoredObject:
        """Set the metadata of an object to those that `build_fields` returns, which may raise. Raises ApiError."""
        with self._changes:
            stored = self.require_object_or_folder(bucket, name)
            fields, metageneration = build_fields(stored), stored.metadata.metageneration + 1
            self.buckets.metadata.set(bucket, name, stored.generation, ObjectMetadata(fields, metageneration, now_ns()))
            return self.require_object_or_folder(bucket, name)

    def delete_object(self, bucket: str, name: str, raise_unless_deletable: Callable[[StoredObject], None]) -> None:
        """Delete an object or an empty folder unless `raise_unless_deletable` raises. Raises ApiError and OSError."""
        with self._changes, translate_invalid_uri_errors():
            stored = self.require_object_or_folder(bucket, name)
            raise_unless_deletable(stored)
            remove = self.buckets.tree.remove_empty_folder if name.endswith("/") else self.buckets.tree.remove_file
            remove(build_object_uri(bucket, name))
            self.buckets.metadata.delete_all_generations(bucket, name)

    def iterate_object_names(
        self, bucket: str, prefix: str = "", after: str = "", folders_as_prefixes: bool = False
    ) -> Iterator[str]:
        """Yield names of objects in order, as `object_name_listing.iterate_object_names` does. Raises ApiError."""
        self.buckets.require_bucket_folder_stat(bucket)
        yield from object_name_listing.iterate_object_names(
            self.buckets.tree, bucket, prefix, after, folders_as_prefixes
        )

    @contextlib.contextmanager
    def _set_metadata_around_file_move(
        self, bucket: str, name: str, generation: int, fields: Mapping[str, Any]
    ) -> Iterator[None]:
        """Set metadata before the file gets its name, and delete those of former generations after it."""
        own = {
            key: value
            for key, value in fields.items()
            if (key, value) != ("contentType", guess_content_type_or_default(name))
        }
        self.buckets.metadata.set(bucket, name, generation, ObjectMetadata(own))
        try:
            yield
        except (OSError, InvalidBucketUri):
            self.buckets.metadata.delete_generation(bucket, name, generation)
            raise
        self.buckets.metadata.delete_all_generations(bucket, name, except_generation=generation)

    def _build_object_or_none(self, bucket: str, name: str, entry_stat: os.stat_result | None) -> StoredObject | None:
        is_expected_kind = stat.S_ISDIR if name.endswith("/") else stat.S_ISREG
        if entry_stat is None or not name or not is_expected_kind(entry_stat.st_mode):
            return None
        size = 0 if name.endswith("/") else entry_stat.st_size
        generation = entry_stat.st_mtime_ns
        metadata = self.buckets.metadata.get_or_empty(bucket, name, generation)
        return StoredObject(bucket, name, generation, size, metadata)


def _ensure_newer_mtime_and_get_ns(source_file: Path, replaced_object: StoredObject | None) -> int:
    """Make a file newer than the object that it replaces; return its modification time in ns."""
    status = source_file.stat()
    # Linux gives files that are written within the same few milliseconds the same time.
    if replaced_object is None or not 0 <= replaced_object.generation - status.st_mtime_ns < _SECOND_NS:
        return status.st_mtime_ns
    os.utime(source_file, ns=(status.st_atime_ns, replaced_object.generation + 1))
    return source_file.stat().st_mtime_ns
