"""The metadata of objects on disk: one SQLite file beside the buckets.

Not extended attributes or files beside the object: containers see both, not every file system has the former, and the
latter would be objects. A row belongs to one generation of an object, so that the metadata of a file ends when a
container writes another one in its place, as it does on Cloud Storage.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from vertex_emulator.errors import StartError
from vertex_emulator.gcs.object_records import NO_METADATA, ObjectMetadata

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


class ObjectMetadataDatabase:
    """The SQLite file; it has no row for an object whose metadata nobody has set. Raises StartError.

    A new file gets its table when an object is first read or written, as most starts of an emulator need none.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._opened: sqlite3.Connection | None = None
        if path.exists() and path.stat().st_size:
            try:
                self._get_or_open_connection()
            except sqlite3.Error as error:
                remedy = "delete it, and a start makes another"
                raise StartError(f"the metadata of objects in {path} cannot be read: {error}; {remedy}") from error

    def _get_or_open_connection(self) -> sqlite3.Connection:
        if self._opened is None:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=10)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
            self._opened = connection
        return self._opened

    def get_or_empty(self, bucket: str, name: str, generation: int) -> ObjectMetadata:
        """Return the metadata of a generation of an object."""
        query = f"SELECT fields, metageneration, updated FROM object_metadata WHERE {_KEY}"
        with self._lock:
            row = self._get_or_open_connection().execute(query, (bucket, name, str(generation))).fetchone()
        return ObjectMetadata(json.loads(row[0]), row[1], row[2]) if row else NO_METADATA

    def set(self, bucket: str, name: str, generation: int, metadata: ObjectMetadata) -> None:
        """Set the metadata of a generation of an object."""
        key = (bucket, name, str(generation))
        if metadata == NO_METADATA:
            self.delete_generation(bucket, name, generation)
        else:
            values = (json.dumps(metadata.fields), metadata.metageneration, metadata.updated)
            self._execute_write("REPLACE INTO object_metadata VALUES (?, ?, ?, ?, ?, ?)", *key, *values)

    def iterate_all(self) -> Iterator[tuple[str, str, int, ObjectMetadata]]:
        """Yield bucket, name, generation and metadata of every generation that has some, in order."""
        query = "SELECT * FROM object_metadata ORDER BY bucket, name, generation"
        with self._lock:
            rows = self._get_or_open_connection().execute(query).fetchall()
        for bucket, name, generation, fields, metageneration, updated in rows:
            yield bucket, name, int(generation), ObjectMetadata(json.loads(fields), metageneration, updated)

    def close(self) -> None:
        """Close the file; nothing may use the metadata afterwards."""
        with self._lock:
            if self._opened:
                self._opened.close()

    def delete_generation(self, bucket: str, name: str, generation: int) -> None:
        """Delete the metadata of a generation of an object."""
        self._execute_write(f"DELETE FROM object_metadata WHERE {_KEY}", bucket, name, str(generation))

    def delete_all_generations(self, bucket: str, name: str, except_generation: int | None = None) -> None:
        """Delete the metadata of all generations of an object, perhaps except one."""
        kept = "" if except_generation is None else str(except_generation)
        statement = "DELETE FROM object_metadata WHERE bucket = ? AND name = ? AND generation != ?"
        self._execute_write(statement, bucket, name, kept)

    def delete_bucket(self, bucket: str) -> None:
        """Delete the metadata of all objects of a bucket."""
        self._execute_write("DELETE FROM object_metadata WHERE bucket = ?", bucket)

    def _execute_write(self, statement: str, *values: str | int | None) -> None:
        with self._lock:
            self._get_or_open_connection().execute(statement, values)
