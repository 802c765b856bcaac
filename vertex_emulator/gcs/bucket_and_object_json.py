"""Buckets and objects in the form of Cloud Storage's JSON API."""

import mimetypes
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from vertex_emulator.gcs.object_store import StoredObject
from vertex_emulator.timestamps import format_time


def serialize_bucket(base_url: str, bucket: str, status: os.stat_result) -> dict[str, Any]:
    """Return a Buckets resource; `base_url` is the URL of the emulator, `status` that of the bucket's folder."""
    return {
        "kind": "storage#bucket",
        "id": bucket,
        "name": bucket,
        "selfLink": f"{base_url}/storage/v1/b/{bucket}",
        "metageneration": "1",
        "storageClass": "STANDARD",
        "timeCreated": format_time(status.st_ctime_ns),
        "updated": format_time(status.st_mtime_ns),
        "etag": f"{status.st_mtime_ns:x}",
    }


def serialize_object(base_url: str, stored: StoredObject, checksums: Mapping[str, str]) -> dict[str, Any]:
    """Return an Objects resource with these checksums; `base_url` is the URL of the emulator."""
    place = f"storage/v1/b/{stored.bucket}/o/{quote(stored.name, safe='')}"
    moment = format_time(stored.generation)
    return {
        "kind": "storage#object",
        "id": f"{stored.bucket}/{stored.name}/{stored.generation}",
        "name": stored.name,
        "bucket": stored.bucket,
        "selfLink": f"{base_url}/{place}",
        "mediaLink": f"{base_url}/download/{place}?generation={stored.generation}&alt=media",
        "generation": str(stored.generation),
        "metageneration": "1",
        "contentType": guess_content_type(stored.name),
        "storageClass": "STANDARD",
        "size": str(stored.size),
        "timeCreated": moment,
        "updated": moment,
        "etag": f"{stored.generation:x}",
        **checksums,
    }


def guess_content_type(name: str) -> str:
    """Return the media type that a file name's ending suggests."""
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
