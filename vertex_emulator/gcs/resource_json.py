"""Buckets and objects as the JSON API writes them."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.objects import StoredObject
from vertex_emulator.times import format_time

# What a request may say of an object: its place, checksums, and the type, which the file's name says here.
_KNOWN_METADATA = frozenset(
    {"name", "bucket", "contentType", "md5Hash", "crc32c", "size", "kind", "id", "storageClass"}
)


def serialize_bucket(base: str, bucket: str, path: Path) -> dict[str, Any]:
    """A Buckets resource; `base` is the URL of the emulator."""
    status = path.stat()
    return {
        "kind": "storage#bucket",
        "id": bucket,
        "name": bucket,
        "selfLink": f"{base}/storage/v1/b/{bucket}",
        "metageneration": "1",
        "storageClass": "STANDARD",
        "timeCreated": format_time(status.st_ctime_ns),
        "updated": format_time(status.st_mtime_ns),
        "etag": _etag(status.st_mtime_ns),
    }


def serialize_object(base: str, found: StoredObject, sums: Mapping[str, str]) -> dict[str, Any]:
    """An Objects resource, with the checksums that are known."""
    place = f"storage/v1/b/{found.bucket}/o/{quote(found.name, safe='')}"
    moment = format_time(found.generation)
    return {
        "kind": "storage#object",
        "id": f"{found.bucket}/{found.name}/{found.generation}",
        "name": found.name,
        "bucket": found.bucket,
        "selfLink": f"{base}/{place}",
        "mediaLink": f"{base}/download/{place}?generation={found.generation}&alt=media",
        "generation": str(found.generation),
        "metageneration": "1",
        "contentType": content_type(found.name),
        "storageClass": "STANDARD",
        "size": str(found.size),
        "timeCreated": moment,
        "updated": moment,
        "etag": _etag(found.generation),
        **sums,
    }


def content_type(name: str) -> str:
    """The media type that a name's ending says."""
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """Refuse what a file cannot keep. Raises ApiError that names every such field."""
    lost = [field for field, value in metadata.items() if value and field not in _KNOWN_METADATA]
    if lost:
        text = "is not kept: objects are files here (docs/fidelity.md)"
        message = f"{', '.join(lost)}: {text}; leave it out."
        raise ApiError("INVALID_ARGUMENT", message, [(field, text) for field in lost])


def _etag(generation: int) -> str:
    return f"{generation:x}"
