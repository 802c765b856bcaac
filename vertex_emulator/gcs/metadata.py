"""The metadata of objects that clients set: their rules, and the SQLite file beside the buckets that holds them.

Not extended attributes or files beside the object: containers see both, not every file system has the former, and the
latter would be objects. A row belongs to one generation of an object, so that the metadata of a file ends when a
container writes another one in its place, as it does on Cloud Storage.

Source of names and rules: Cloud Storage, Objects resource, and "Object metadata".
"""

import json
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vertex_emulator.errors import ApiError, StartError

MAX_CUSTOM_BYTES = 8 << 10  # Cloud Storage, "Quotas and limits"
_TEXT_FIELDS = ("contentType", "cacheControl", "contentDisposition", "contentLanguage")
_SERVICE_FIELDS = frozenset(
    {"kind", "id", "name", "bucket", "selfLink", "mediaLink", "generation", "metageneration", "storageClass", "size"}
    | {"md5Hash", "crc32c", "etag", "timeCreated", "updated", "componentCount"}
)
# They become headers of replies, and are printed by clients.
_TEXT = re.compile(r"[\x20-\x7e]{0,1024}")


@dataclass(frozen=True)
class Metadata:
    """The metadata of one generation of an object.

    `fields` are those of the Objects resource that clients set; `updated` is the time of the last change of them in ns,
    None if they are as they were when the object was created.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    metageneration: int = 1
    updated: int | None = None


NO_METADATA = Metadata()


def parse(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an Objects resource that are stored, without those that the service sets.

    Raises ApiError that names every field that is not stored or has an invalid value.
    """
    return patch({}, {name: value for name, value in resource.items() if value})


def patch(fields: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields after a PATCH: null removes a field or a key of `metadata`, what is left out stays.

    Raises ApiError as `parse`.
    """
    violations = list(_violations(change))
    if violations:
        message = "; ".join(f"{name}: {text}" for name, text in violations)
        raise ApiError("INVALID_ARGUMENT", f"{message}.", violations)
    stored = {name: value for name, value in change.items() if name not in _SERVICE_FIELDS}
    if stored.get("metadata"):
        stored["metadata"] = {**fields.get("metadata", {}), **stored["metadata"]}
        stored["metadata"] = {key: value for key, value in stored["metadata"].items() if value is not None}
    patched = {name: value for name, value in {**fields, **stored}.items() if value}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in patched.get("metadata", {}).items())
    if size > MAX_CUSTOM_BYTES:
        text = f"has {size} bytes of keys and values; at most {MAX_CUSTOM_BYTES} are allowed"
        raise ApiError("INVALID_ARGUMENT", f"metadata: {text}.", [("metadata", text)])
    return patched


def _violations(change: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in change.items():
        if name in _SERVICE_FIELDS or value is None:
            continue
        if name in _TEXT_FIELDS:
            if not isinstance(value, str) or not _TEXT.fullmatch(value):
                yield name, "must be a text of at most 1024 printable ASCII characters"
        elif name == "metadata":
            if not isinstance(value, Mapping) or not all(isinstance(each, str | None) for each in value.values()):
                yield name, "must be an object whose values are texts"
        elif value:
            yield name, "is not stored: objects are files here (`vertex-training docs fidelity`); leave it out"


# A file's time in ns, which is its generation, may be longer than SQLite's integers.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS object_metadata (
  bucket TEXT NOT NULL,
  name TEXT NOT NULL,
  generation TEXT NOT NULL,
  fields TEXT NOT NULL,
  metageneration INTEGER NOT NULL,
  updated INTEGER,
  PRIMARY KEY (bucket, name, generation)
) WITHOUT ROWID
"""
_KEY = "(bucket, name, generation) = (?, ?, ?)"


class MetadataDatabase:
    """The SQLite file; it has no row for an object whose metadata nobody has set. Raises StartError.

    A new file gets its table when an object is first read or written, as most starts of an emulator need none.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._opened: sqlite3.Connection | None = None
        if path.exists() and path.stat().st_size:
            try:
                self._connection()
            except sqlite3.Error as error:
                remedy = "delete it, and a start makes another"
                raise StartError(f"the metadata of objects in {path} cannot be read: {error}; {remedy}") from error

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=10)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
            self._opened = connection
        return self._opened

    def get(self, bucket: str, name: str, generation: int) -> Metadata:
        """The metadata of a generation of an object; `NO_METADATA` if nobody has set any."""
        query = f"SELECT fields, metageneration, updated FROM object_metadata WHERE {_KEY}"
        with self._lock:
            row = self._connection().execute(query, (bucket, name, str(generation))).fetchone()
        return Metadata(json.loads(row[0]), row[1], row[2]) if row else NO_METADATA

    def set(self, bucket: str, name: str, generation: int, metadata: Metadata) -> None:
        """Set the metadata of a generation of an object."""
        if metadata == NO_METADATA:
            self._write(f"DELETE FROM object_metadata WHERE {_KEY}", bucket, name, str(generation))
        else:
            values = (json.dumps(metadata.fields), metadata.metageneration, metadata.updated)
            statement = "REPLACE INTO object_metadata VALUES (?, ?, ?, ?, ?, ?)"
            self._write(statement, bucket, name, str(generation), *values)

    def delete(self, bucket: str, name: str, keep: int | None = None) -> None:
        """Delete the metadata of all generations of an object, except of the one to `keep`."""
        statement = "DELETE FROM object_metadata WHERE bucket = ? AND name = ? AND generation != ?"
        self._write(statement, bucket, name, "" if keep is None else str(keep))

    def delete_bucket(self, bucket: str) -> None:
        """Delete the metadata of all objects of a bucket."""
        self._write("DELETE FROM object_metadata WHERE bucket = ?", bucket)

    def rows(self) -> Iterator[tuple[str, str, int, Metadata]]:
        """Yield bucket, name, generation and metadata of every generation that has some, in order."""
        query = "SELECT * FROM object_metadata ORDER BY bucket, name, generation"
        with self._lock:
            rows = self._connection().execute(query).fetchall()
        for bucket, name, generation, fields, metageneration, updated in rows:
            yield bucket, name, int(generation), Metadata(json.loads(fields), metageneration, updated)

    def close(self) -> None:
        """Close the file; nothing may use the metadata afterwards."""
        with self._lock:
            if self._opened:
                self._opened.close()

    def _write(self, statement: str, *values: str | int | None) -> None:
        with self._lock:
            self._connection().execute(statement, values)
