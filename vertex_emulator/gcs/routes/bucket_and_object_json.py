"""Buckets, objects and lists of them in the form of Cloud Storage's JSON API."""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from vertex_emulator.gcs.object_records import StoredObject
from vertex_emulator.times import format_time


def get_base_url(request: Request) -> str:
    """Return the emulator's URL as the client wrote it."""
    return str(request.base_url).rstrip("/")


def serialize_bucket(base_url: str, bucket: str, folder_stat: os.stat_result) -> dict[str, Any]:
    """Return a Buckets resource; `base_url` is the URL of the emulator, `folder_stat` of the bucket's folder."""
    return {
        "kind": "storage#bucket",
        "id": bucket,
        "name": bucket,
        "selfLink": f"{base_url}/storage/v1/b/{bucket}",
        "metageneration": "1",
        "storageClass": "STANDARD",
        "timeCreated": format_time(folder_stat.st_ctime_ns),
        "updated": format_time(folder_stat.st_mtime_ns),
        "etag": f"{folder_stat.st_mtime_ns:x}",
    }


def serialize_object(base_url: str, stored: StoredObject, checksums: Mapping[str, str]) -> dict[str, Any]:
    """Return an Objects resource with these checksums; `base_url` is the URL of the emulator."""
    place = f"storage/v1/b/{stored.bucket}/o/{quote(stored.name, safe='')}"
    moment, updated = format_time(stored.generation), stored.metadata.updated
    return {
        "kind": "storage#object",
        "id": f"{stored.bucket}/{stored.name}/{stored.generation}",
        "name": stored.name,
        "bucket": stored.bucket,
        "selfLink": f"{base_url}/{place}",
        "mediaLink": f"{base_url}/download/{place}?generation={stored.generation}&alt=media",
        "generation": str(stored.generation),
        "metageneration": str(stored.metadata.metageneration),
        **stored.metadata.fields,
        "contentType": stored.content_type,
        "storageClass": "STANDARD",
        "size": str(stored.size),
        "timeCreated": moment,
        "updated": moment if updated is None else format_time(updated),
        "etag": f"{stored.generation:x}-{stored.metadata.metageneration}",
        **checksums,
    }


def serialize_list_without_empty_fields(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a list with the fields that are not empty."""
    return {"kind": kind, **{name: value for name, value in fields.items() if value}}
