"""Uploads on their way: a partial file and what it is to become, both on disk, so that a restart loses nothing."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.checksums import checksums
from vertex_emulator.gcs.objects import Objects, StoredObject

EXPIRY_SECONDS = 7 * 24 * 3600  # Cloud Storage, "Resumable uploads": a session lives for a week
_RECORD = ".json"
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Upload:
    """A file that is being sent; `expected` holds the checksums and preconditions that the sender named."""

    partial: Path
    bucket: str
    name: str
    expected: Mapping[str, str]

    @property
    def record(self) -> Path:
        """What the file is to become."""
        return self.partial.with_suffix(_RECORD)

    @property
    def id(self) -> str:
        """What the sender continues it by."""
        return self.partial.stem

    @property
    def received(self) -> int | None:
        """Bytes that are here; None once the file has become the object."""
        try:
            return self.partial.stat().st_size
        except FileNotFoundError:
            return None

    def write(self, data: bytes) -> None:
        """Append bytes. Raises OSError."""
        with self.partial.open("ab") as file:
            file.write(data)

    def truncate(self, size: int) -> None:
        """Forget bytes from `size` on: the sender sends them again."""
        with self.partial.open("r+b") as file:
            file.truncate(size)


@dataclass(frozen=True)
class Uploads:
    """Uploads to `objects`, in a `folder` of the same file system, so that becoming an object is one step."""

    folder: Path
    objects: Objects

    def begin(self, bucket: str, name: str, expected: Mapping[str, str]) -> Upload:
        """Start an upload. Raises ApiError for a name that no object can have, OSError."""
        if not name:
            raise ApiError("INVALID_ARGUMENT", "The upload names no object: set `name` in the query or the metadata.")
        self.objects.path(bucket, name)
        upload = Upload(self.folder / f"{secrets.token_hex(16)}.partial", bucket, name, dict(expected))
        upload.record.write_text(json.dumps([bucket, name, upload.expected]))
        upload.partial.touch()
        return upload

    def find(self, id_: str) -> Upload:
        """An upload by its id. Raises ApiError NOT_FOUND."""
        partial = self.folder / f"{id_}.partial"
        try:
            if not _ID.fullmatch(id_):
                raise FileNotFoundError(id_)
            return Upload(partial, *json.loads(partial.with_suffix(_RECORD).read_text()))
        except (FileNotFoundError, ValueError) as error:
            raise ApiError("NOT_FOUND", f"There is no upload {id_!r} here, or it has expired.") from error

    def finish(self, upload: Upload, expected: Mapping[str, str]) -> tuple[StoredObject, dict[str, str]]:
        """Make the object, with its checksums; an upload that is finished already gives it again.

        `expected` are checksums that came with the last bytes. Raises ApiError, then the upload is gone; OSError.
        """
        if upload.received is None:
            found = self.objects.get(upload.bucket, upload.name)
            return found, checksums(found.path)
        try:
            sums = checksums(upload.partial)
            for field, value in {**upload.expected, **expected}.items():
                if field in sums and value != sums[field]:
                    message = f"Provided {field} {value!r} doesn't match the calculated {sums[field]!r}: send it again."
                    raise ApiError("INVALID_ARGUMENT", message)
            check_preconditions(upload.expected, self.objects.find(upload.bucket, upload.name))
            return self.objects.put(upload.bucket, upload.name, upload.partial), sums
        except (ApiError, OSError):
            self.discard(upload)
            raise

    def discard(self, upload: Upload) -> None:
        """Forget an upload."""
        upload.partial.unlink(missing_ok=True)
        upload.record.unlink(missing_ok=True)

    def expire(self) -> None:
        """Forget all uploads that began too long ago."""
        for path in self.folder.iterdir():
            if time.time() - path.stat().st_mtime > EXPIRY_SECONDS:
                path.unlink()


def check_preconditions(query: Mapping[str, str], found: StoredObject | None) -> None:
    """Cloud Storage, "Request preconditions": generation 0 means that there is no object. Raises ApiError (412)."""
    generation = str(found.generation) if found else "0"
    for name, holds in (
        ("ifGenerationMatch", query.get("ifGenerationMatch", generation) == generation),
        ("ifGenerationNotMatch", query.get("ifGenerationNotMatch") != generation),
    ):
        if not holds:
            message = f"At least one of the pre-conditions you specified did not hold: {name}."
            raise ApiError("FAILED_PRECONDITION", message, http=412)
