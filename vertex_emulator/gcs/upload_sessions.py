"""Unfinished uploads: a partial file and a record of its target, both on disk, so that a restart loses nothing."""

import json
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from anyio import to_thread

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.checksums import compute_checksums
from vertex_emulator.gcs.object_records import StoredObject
from vertex_emulator.gcs.object_store import ObjectStore

EXPIRY_SECONDS = 7 * 24 * 3600  # Cloud Storage, "Resumable uploads": a session lives for a week
MAX_UPLOADS = 1000  # finished ones too, whose last answer is repeated
IDLE_SECONDS = 600
_BATCH_BYTES = 1 << 20
_RECORD = ".json"
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Upload:
    """An upload; `expected` holds the checksums and preconditions that the client sent, `fields` the metadata."""

    partial: Path
    bucket: str
    name: str
    expected: Mapping[str, str]
    fields: Mapping[str, Any] = field(default_factory=dict)  # checkouts before the first release recorded none

    @property
    def record_path(self) -> Path:
        """The file that records the target of the upload."""
        return self.partial.with_suffix(_RECORD)

    @property
    def id(self) -> str:
        """The id with which the client continues the upload."""
        return self.partial.stem

    @property
    def received_byte_count_unless_finished(self) -> int | None:
        """The number of bytes that have arrived; None once the upload has become the object."""
        try:
            return self.partial.stat().st_size
        except FileNotFoundError:
            return None

    def append(self, data: bytes) -> None:
        """Append bytes. Raises OSError."""
        with self.partial.open("ab") as file:
            file.write(data)

    async def append_stream(self, media: AsyncIterator[bytes]) -> None:
        """Append bytes as they arrive, a MiB at a time. Raises OSError."""
        batch = bytearray()
        async for part in media:
            batch += part
            if len(batch) >= _BATCH_BYTES:
                await to_thread.run_sync(self.append, bytes(batch))
                batch.clear()
        await to_thread.run_sync(self.append, bytes(batch))

    def truncate(self, size: int) -> None:
        """Drop the bytes after the first `size`: the client sends them again."""
        with self.partial.open("r+b") as file:
            file.truncate(size)


@dataclass(frozen=True)
class Uploads:
    """The uploads to `objects`, in a `folder` on the same file system, so that a rename completes an upload."""

    folder: Path
    objects: ObjectStore

    @classmethod
    def open_and_delete_expired(cls, folder: Path, objects: ObjectStore) -> "Uploads":
        """Open the uploads of a folder, and delete those that are older than `EXPIRY_SECONDS`."""
        for path in folder.iterdir():
            if time.time() - path.stat().st_mtime > EXPIRY_SECONDS:
                path.unlink()
        return cls(folder, objects)

    def create(self, bucket: str, name: str, expected: Mapping[str, str], fields: Mapping[str, Any]) -> Upload:
        """Start an upload. Raises ApiError for a name that no object can have or if too many are open, or OSError."""
        if not name:
            raise ApiError("INVALID_ARGUMENT", "The upload names no object: set `name` in the query or the metadata.")
        self.objects.buckets.validate_object_name(bucket, name)
        self._make_room()
        upload = Upload(self.folder / f"{secrets.token_hex(16)}.partial", bucket, name, expected, fields)
        upload.record_path.write_text(json.dumps([bucket, name, expected, fields]))
        upload.partial.touch()
        return upload

    def _make_room(self) -> None:
        """Delete the finished uploads and those nobody continues, the oldest first, that are too many or too large.

        Together, idle uploads hold no more bytes than the disk has left. Their clients begin them again: the answer is
        404, as for an expired one. Those that bytes still arrive for stay. Raises ApiError if there are too many.
        """
        ids = {path.stem for path in self.folder.iterdir() if _ID.fullmatch(path.stem)}
        surplus = len(ids) - MAX_UPLOADS + 1
        now = time.time()
        open_uploads = {id_: status for id_ in ids if (status := _find_status(self.folder / f"{id_}.partial"))}
        idle = [(status.st_mtime, id_) for id_, status in open_uploads.items() if now - status.st_mtime > IDLE_SECONDS]
        held = sum(open_uploads[id_].st_size for _, id_ in idle)
        free = self._get_free_bytes()
        finished: list[tuple[float, str]] = []
        if surplus > 0:
            records = ((id_, _find_status(self.folder / f"{id_}{_RECORD}")) for id_ in ids - open_uploads.keys())
            finished = [(status.st_mtime, id_) for id_, status in records if status]
        for at, id_ in [*sorted(finished), *sorted(idle)]:
            size = open_uploads[id_].st_size if id_ in open_uploads else 0
            if surplus <= 0 and (held <= free or not size) and now - at <= EXPIRY_SECONDS:
                continue
            surplus, held, free = surplus - 1, held - size, free + size
            self.discard(Upload(self.folder / f"{id_}.partial", "", "", {}))
        if surplus > 0:
            message = (
                f"{MAX_UPLOADS} uploads are open. Finish or cancel some, or wait until one has been idle for "
                f"{IDLE_SECONDS // 60} minutes."
            )
            raise ApiError("RESOURCE_EXHAUSTED", message)

    def _get_free_bytes(self) -> int:
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize

    def raise_unless_disk_has_free_bytes(self, size: int) -> None:
        """Raise ApiError if the disk has less space than a content of `size` bytes needs."""
        free = self._get_free_bytes()
        if size > free:
            message = f"The disk has {free} bytes left, and this needs {size}; nothing was stored."
            raise ApiError("RESOURCE_EXHAUSTED", message, http=413)

    def require(self, upload_id: str) -> Upload:
        """Return an upload by its id. Raises ApiError NOT_FOUND."""
        partial = self.folder / f"{upload_id}.partial"
        try:
            if not _ID.fullmatch(upload_id):
                raise FileNotFoundError(upload_id)
            return Upload(partial, *json.loads(partial.with_suffix(_RECORD).read_text()))
        except (FileNotFoundError, ValueError) as error:
            raise ApiError("NOT_FOUND", f"There is no upload {upload_id!r} here, or it has expired.") from error

    async def complete_and_get_object_with_checksums(
        self, upload: Upload, expected_checksums: Mapping[str, str]
    ) -> tuple[StoredObject, dict[str, str]]:
        """Store the object of an unfinished upload; return it with its checksums.

        `expected_checksums` came with the last bytes. Raises ApiError or OSError and discards the upload.
        """
        try:
            with FileIO(upload.partial) as file:
                checksums = await compute_checksums(file)
            for field, value in {**upload.expected, **expected_checksums}.items():
                actual = checksums.get(field, value)
                if value != actual:
                    message = f"Provided {field} {value!r} doesn't match the calculated {actual!r}: send it again."
                    raise ApiError("INVALID_ARGUMENT", message)
            put = self.objects.put_object_by_moving_file
            arguments = (upload.bucket, upload.name, upload.partial, upload.fields, upload.expected)
            return await to_thread.run_sync(put, *arguments), checksums
        except (ApiError, OSError):
            self.discard(upload)
            raise

    async def require_current_object_and_checksums_of_finished_upload(
        self, upload: Upload, raise_if_disconnected: Callable[[], Awaitable[None]]
    ) -> tuple[StoredObject, dict[str, str]]:
        """Return the object that now has the name of a finished upload, and its checksums.

        It may be another, endless one by now, so reading it ends when `raise_if_disconnected` raises. Raises ApiError
        or OSError.
        """
        stored, file = await to_thread.run_sync(
            self.objects.require_object_and_open_unless_folder, upload.bucket, upload.name
        )
        if file is None:
            return stored, {}
        with file:
            return stored, await compute_checksums(file, raise_if_disconnected)

    def discard(self, upload: Upload) -> None:
        """Delete an upload."""
        upload.partial.unlink(missing_ok=True)
        upload.record_path.unlink(missing_ok=True)


def _find_status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
