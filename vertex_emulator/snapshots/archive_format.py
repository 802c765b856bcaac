"""The format of a snapshot: a tar archive, compressed by gzip, whose first member is a manifest.

    manifest.json               format, versions, and the number and size of all other files
    database/TABLE.jsonl        the rows of a table, a JSON object in each line
    objects.jsonl               the metadata of objects in buckets
    logs/JOB/TASK.ATTEMPT.jsonl a saved log
    gcs/BUCKET/                 a bucket, and each folder in it
    gcs/BUCKET/NAME             its objects, with their times to the nanosecond (extended header `mtime`), and
                                symbolic links that lead nowhere but to their own bucket

Rows instead of the SQLite file: a file from a stranger could bring triggers and views, which SQLite would run.
"""

import json
import re
from dataclasses import asdict, dataclass

from vertex_api import __version__
from vertex_emulator.database import SNAPSHOT_SCHEMA_VERSION
from vertex_emulator.errors import SnapshotInvalid

FORMAT = 2
_READABLE_FORMATS = (1, FORMAT)  # 1 has no folders below buckets, and no links
MANIFEST = "manifest.json"
DATABASE_PREFIX, OBJECTS, LOGS_PREFIX, BUCKETS_PREFIX = "database/", "objects.jsonl", "logs/", "gcs/"
JOB_ID = re.compile(r"[0-9]{1,19}")
LOG_NAME = re.compile(r"logs/([0-9]{1,19})/workerpool[0-9]{1,4}-[0-9]{1,6}\.[0-9]{1,6}\.jsonl")


def is_link_within_bucket(name: str, target: str) -> bool:
    """Return whether a link with an object's name leads to its own bucket, wherever the data folder is.

    Its target climbs no higher than the bucket, and does so at its beginning: behind another link, `..` would lead
    from where that one leads.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = next((place for place, part in enumerate(parts) if part != ".."), len(parts))
    is_relative = target != "" and not target.startswith("/")
    return (
        name != "" and is_relative and climbs <= name.count("/") and ".." not in parts[climbs:] and "\0" not in target
    )


@dataclass(frozen=True)
class Manifest:
    """What an archive is: its format, who wrote it, and the `files` that follow, with their `size` (bytes) in all."""

    files: int
    size: int
    format: int = FORMAT
    database_schema: int = SNAPSHOT_SCHEMA_VERSION
    emulator_version: str = __version__

    def to_json_bytes(self) -> bytes:
        """Return the content of `manifest.json`."""
        return json.dumps(asdict(self), indent=2).encode() + b"\n"

    @classmethod
    def parse(cls, text: bytes, archive_name: str) -> "Manifest":
        """Parse `manifest.json`. Raises SnapshotInvalid, also for a format that this version does not read."""
        try:
            fields = json.loads(text)
            version = str(fields["emulator_version"])[:40]
            formats = (fields["format"], fields["database_schema"])
            files, size = fields["files"], fields["size"]
            if not all(type(number) is int and 0 <= number < 1 << 63 for number in (*formats, files, size)):
                raise ValueError("a number is none")
            if formats[0] in _READABLE_FORMATS and formats[1] == SNAPSHOT_SCHEMA_VERSION:
                return cls(files, size)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise SnapshotInvalid(f"{archive_name} is no snapshot: its {MANIFEST} is not valid") from error
        raise SnapshotInvalid(
            f"{archive_name} was written by version {version!a} (format {formats[0]}, database {formats[1]}), and "
            f"this is version {__version__} (format {FORMAT}, database {SNAPSHOT_SCHEMA_VERSION}): import it with "
            "that version"
        )
