"""Buckets as folders and objects as files: what there is, and how clients change it."""

import base64
import contextlib
import hashlib
import mimetypes
import os
import stat
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from vertex_emulator.errors import ApiError, InvalidBucketName, InvalidBucketUri
from vertex_emulator.gcs.files import ROOT, BucketTree, NotRegularFile, join_uri
from vertex_emulator.gcs.metadata import NO_METADATA, Metadata, MetadataDatabase
from vertex_emulator.times import now_ns

_CONDITIONS = ("GenerationMatch", "GenerationNotMatch", "MetagenerationMatch", "MetagenerationNotMatch")
PRECONDITIONS = frozenset(f"if{condition}" for condition in _CONDITIONS)
SOURCE_PRECONDITIONS = frozenset(f"ifSource{condition}" for condition in _CONDITIONS)
NO_FIELDS: Mapping[str, Any] = {}
_SECOND_NS = 10**9
_SCAN_ENTRIES = 10_000
_MAX_SHOWN = 300


@dataclass(frozen=True)
class StoredObject:
    """A file of a bucket; `generation` is its modification time in nanoseconds, `size` its bytes."""

    bucket: str
    name: str
    generation: int
    size: int
    metadata: Metadata = NO_METADATA

    @property
    def content_type(self) -> str:
        """The media type that a client has set, or the one that the name's ending suggests."""
        return str(self.metadata.fields.get("contentType") or _guess_type(self.name))

    @property
    def fields_of_copy(self) -> Mapping[str, Any]:
        """The metadata of an object that becomes a copy of this one, under any name."""
        return {**self.metadata.fields, "contentType": self.content_type}

    def require_generation(self, generation: str | None) -> None:
        """Raise ApiError NOT_FOUND if a request names another generation of the object than the one there is."""
        if generation is not None and generation != str(self.generation):
            raise ApiError("NOT_FOUND", f"No such object: {self.bucket}/{self.name}#{generation}")


def _guess_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def check_preconditions(preconditions: Mapping[str, str], stored: StoredObject | None, prefix: str = "if") -> None:
    """Raise ApiError (412) for a precondition that does not hold; generation 0 means that there is no object.

    `prefix` is `ifSource` for the conditions on the source of a copy (Cloud Storage, "Request preconditions").
    """
    actual = {
        "Generation": str(stored.generation) if stored else "0",
        "Metageneration": str(stored.metadata.metageneration) if stored else "0",
    }
    for each, value in actual.items():
        for name, holds in (
            (f"{prefix}{each}Match", preconditions.get(f"{prefix}{each}Match", value) == value),
            (f"{prefix}{each}NotMatch", preconditions.get(f"{prefix}{each}NotMatch") != value),
        ):
            if not holds:
                message = f"At least one of the pre-conditions you specified did not hold: {name}."
                raise ApiError("FAILED_PRECONDITION", message, http=412)


def invalid_bucket(name: str) -> ApiError:
    """Return the service's error for the name of no bucket."""
    return ApiError("INVALID_ARGUMENT", f"Invalid bucket name: '{name[:_MAX_SHOWN]}'")


@contextlib.contextmanager
def _invalid_uris_refused() -> Iterator[None]:
    """Raise InvalidBucketUri as ApiError: for the name of a bucket in the service's words (docs/fidelity.md)."""
    try:
        yield
    except InvalidBucketName as error:
        raise invalid_bucket(error.name) from error
    except InvalidBucketUri as error:
        raise ApiError("INVALID_ARGUMENT", f"{error}.") from error


@dataclass(frozen=True)
class BucketStore:
    """The buckets in `tree`, and the `metadata` of their objects."""

    tree: BucketTree
    metadata: MetadataDatabase

    def names(self) -> list[str]:
        """The names of all buckets in order."""
        with self.tree.scan(ROOT) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted(name for name in names if self.find(name) is not None)

    def find(self, bucket: str) -> os.stat_result | None:
        """The status of a bucket's folder; None if there is none, also for an invalid name."""
        try:
            status = self.tree.stat(join_uri(bucket, ""))
        except InvalidBucketUri:
            return None
        return status if status is not None and stat.S_ISDIR(status.st_mode) else None

    def require(self, bucket: str) -> os.stat_result:
        """The status of a bucket's folder. Raises ApiError NOT_FOUND, or INVALID_ARGUMENT for its name."""
        self.check_name(bucket)
        status = self.find(bucket)
        if status is None:
            raise ApiError("NOT_FOUND", f"The specified bucket does not exist: {bucket}.")
        return status

    def create(self, bucket: str) -> None:
        """Create a bucket. Raises ApiError if it exists or its name is invalid."""
        self.check_name(bucket)
        if self.find(bucket) is not None:
            raise ApiError("ALREADY_EXISTS", f"A bucket named {bucket} already exists on this emulator.", http=409)
        with _invalid_uris_refused():
            self.tree.mkdir(join_uri(bucket, ""))

    def delete(self, bucket: str) -> None:
        """Delete a bucket without objects, with the folders in it. Raises ApiError."""
        self.require(bucket)
        try:
            self._remove_folders(join_uri(bucket, "").rstrip("/"))
        except (OSError, InvalidBucketUri) as error:
            message = f"The bucket you tried to delete is not empty: {bucket}."
            raise ApiError("FAILED_PRECONDITION", message, http=409) from error
        self.metadata.delete_bucket(bucket)

    def _remove_folders(self, uri: str) -> None:
        """Remove a folder and all folders in it. Raises OSError at the first file, and InvalidBucketUri."""
        while True:
            with self.tree.scan(uri) as entries:
                names = [entry.name for entry in islice(entries, _SCAN_ENTRIES)]
            for name in names:
                self._remove_folders(f"{uri}/{name}")
            if len(names) < _SCAN_ENTRIES:
                break
        self.tree.rmdir(uri)

    def check_name(self, bucket: str, name: str = "") -> None:
        """Raise ApiError for a bucket's name, or an object's, that none can have: it is invalid or leads to a link."""
        with _invalid_uris_refused():
            self.tree.check(join_uri(bucket, name))


@dataclass(frozen=True)
class ObjectStore:
    """The objects in `buckets`. Regular files are objects; folders, symbolic links and special files are not.

    A name that ends with "/" is a folder's. Clients change objects one at a time, so that a precondition still holds
    when its object is replaced. Methods raise ApiError and OSError.
    """

    buckets: BucketStore
    _changes: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def find(self, bucket: str, name: str) -> StoredObject | None:
        """Return an object or a folder; None if it does not exist."""
        with _invalid_uris_refused():
            return self._build(bucket, name, self.buckets.tree.stat(join_uri(bucket, name)))

    def require(self, bucket: str, name: str) -> StoredObject:
        """Return an object or a folder. Raises ApiError NOT_FOUND, of the bucket if that does not exist."""
        stored = self.find(bucket, name)
        if stored is None:
            self.buckets.require(bucket)
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}")
        return stored

    def existing(self, bucket: str, names: list[str]) -> list[StoredObject]:
        """Return the objects with these names, except those that a container has removed or replaced meanwhile."""
        found = []
        for name in names:
            with contextlib.suppress(ApiError):
                found.append(self.find(bucket, name))
        return [stored for stored in found if stored is not None]

    def names(self, bucket: str, prefix: str = "", after: str = "", folders_as_prefixes: bool = False) -> Iterator[str]:
        """Yield names of objects in order, as `BucketTree.names` does. Raises ApiError without the bucket."""
        self.buckets.require(bucket)
        yield from self.buckets.tree.names(bucket, prefix, after, folders_as_prefixes)

    def open(self, bucket: str, name: str) -> tuple[StoredObject, FileIO | None]:
        """Return an object and its file, open for reading; None for a folder. Raises ApiError NOT_FOUND."""
        if not name or name.endswith("/"):  # without a name, the bucket, which a container may have made a file
            return self.require(bucket, name), None
        try:
            with _invalid_uris_refused():
                file = self.buckets.tree.open(join_uri(bucket, name))
        except NotRegularFile as error:
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}: {error.strerror}.") from error
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}") from error
        stored = self._build(bucket, name, os.fstat(file.fileno()))
        assert stored is not None
        return stored, file

    def put(
        self,
        bucket: str,
        name: str,
        source_file: Path,
        fields: Mapping[str, Any] = NO_FIELDS,
        preconditions: Mapping[str, str] = NO_FIELDS,
    ) -> StoredObject:
        """Move a file into the place of an object, atomically, with these metadata; create the bucket if needed."""
        self.buckets.check_name(bucket, name)
        uri = join_uri(bucket, name)
        with self._changes, _invalid_uris_refused():
            former = self.find(bucket, name)
            check_preconditions(preconditions, former)
            if not name.endswith("/"):
                source_file.chmod(0o666)  # training code runs as any user
                with self._describing(bucket, name, _make_newer(source_file, former), fields):
                    self.buckets.tree.move_in(source_file, uri)
            elif source_file.stat().st_size:
                message = f"{bucket}/{name} is a folder here, which has no content of its own."
                raise ApiError("INVALID_ARGUMENT", message)
            else:
                self.buckets.tree.mkdir(uri)
                source_file.unlink()
            return self.require(bucket, name)

    def move(
        self,
        bucket: str,
        source_name: str,
        name: str,
        preconditions: Mapping[str, str],
        check_source: Callable[[StoredObject], None],
    ) -> StoredObject:
        """Give an object another name in its bucket, atomically, unless `check_source` raises."""
        self.buckets.check_name(bucket, name)
        if source_name.endswith("/") or name.endswith("/") or source_name == name:
            raise ApiError("INVALID_ARGUMENT", "A move has two names, and both are of objects, not of folders.")
        with self._changes, _invalid_uris_refused():
            source = self.require(bucket, source_name)
            check_source(source)
            check_preconditions(preconditions, self.find(bucket, name))
            with self._describing(bucket, name, source.generation, source.fields_of_copy):
                self.buckets.tree.move(join_uri(bucket, source_name), join_uri(bucket, name))
            self.buckets.metadata.delete(bucket, source_name)
            return self.require(bucket, name)

    def set_metadata(
        self, bucket: str, name: str, build_fields: Callable[[StoredObject], Mapping[str, Any]]
    ) -> StoredObject:
        """Set the metadata of an object to those that `build_fields` returns, which may raise."""
        with self._changes:
            stored = self.require(bucket, name)
            changed = Metadata(build_fields(stored), stored.metadata.metageneration + 1, now_ns())
            self.buckets.metadata.set(bucket, name, stored.generation, changed)
            return self.require(bucket, name)

    def delete(self, bucket: str, name: str, check: Callable[[StoredObject], None]) -> None:
        """Delete an object or an empty folder unless `check` raises."""
        with self._changes, _invalid_uris_refused():
            check(self.require(bucket, name))
            tree = self.buckets.tree
            remove = tree.rmdir if name.endswith("/") else tree.unlink
            remove(join_uri(bucket, name))
            self.buckets.metadata.delete(bucket, name)

    @contextlib.contextmanager
    def _describing(self, bucket: str, name: str, generation: int, fields: Mapping[str, Any]) -> Iterator[None]:
        """Set metadata before the file gets its name, and delete those of former generations after it."""
        own = {key: value for key, value in fields.items() if (key, value) != ("contentType", _guess_type(name))}
        self.buckets.metadata.set(bucket, name, generation, Metadata(own))
        try:
            yield
        except (OSError, InvalidBucketUri):
            self.buckets.metadata.set(bucket, name, generation, NO_METADATA)
            raise
        self.buckets.metadata.delete(bucket, name, keep=generation)

    def _build(self, bucket: str, name: str, status: os.stat_result | None) -> StoredObject | None:
        is_expected = stat.S_ISDIR if name.endswith("/") else stat.S_ISREG
        if status is None or not name or not is_expected(status.st_mode):
            return None
        size = 0 if name.endswith("/") else status.st_size
        generation = status.st_mtime_ns
        return StoredObject(bucket, name, generation, size, self.buckets.metadata.get(bucket, name, generation))


def _make_newer(source_file: Path, replaced: StoredObject | None) -> int:
    """Make a file newer than the object that it replaces; return its modification time in ns."""
    status = source_file.stat()
    # Linux gives files that are written within the same few milliseconds the same time.
    if replaced is None or not 0 <= replaced.generation - status.st_mtime_ns < _SECOND_NS:
        return status.st_mtime_ns
    os.utime(source_file, ns=(status.st_atime_ns, replaced.generation + 1))
    return source_file.stat().st_mtime_ns


_CHUNK_BYTES = 1 << 20
_TURN_BYTES = 4 << 20
_MAX_THREADS = 4
_limiter: RunVar[CapacityLimiter] = RunVar("threads that compute checksums")


async def checksums(file: FileIO, check_connection: Callable[[], Awaitable[None]] | None = None) -> dict[str, str]:
    """Return `md5Hash` and `crc32c` of a file in base64 (Cloud Storage, Objects resource). Raises OSError.

    A large file is read in many turns, in few threads, so that it keeps none from other requests, ends with the
    request's task, and ends when `check_connection` raises after a turn.
    """
    from google_crc32c import Checksum

    md5, crc32c = hashlib.md5(usedforsecurity=False), Checksum()

    def hash_turn(position: int) -> int:
        end = position + _TURN_BYTES
        # The position of the file itself stays at its start, for its next reader.
        while position < end and (chunk := os.pread(file.fileno(), _CHUNK_BYTES, position)):
            md5.update(chunk)
            crc32c.update(chunk)
            position += len(chunk)
        return position

    try:
        limiter = _limiter.get()
    except LookupError:
        _limiter.set(limiter := CapacityLimiter(_MAX_THREADS))
    position, end = 0, _TURN_BYTES
    while True:
        position = await to_thread.run_sync(hash_turn, position, limiter=limiter)
        if position < end:
            break
        end = position + _TURN_BYTES
        if check_connection is not None:
            await check_connection()
    return {"md5Hash": base64.b64encode(md5.digest()).decode(), "crc32c": base64.b64encode(crc32c.digest()).decode()}
