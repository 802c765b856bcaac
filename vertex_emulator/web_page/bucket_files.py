"""The folders and files of buckets, as the page lists and downloads them."""

import heapq
import os
from pathlib import Path
from typing import Any

from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs import bucket_folders
from vertex_emulator.timestamps import format_time

ROOT = "gs://"
MAX_LISTED = 1000


def build_folder_view(buckets_folder: Path, uri: str) -> dict[str, Any]:
    """Return the content of the folder of a gs:// URI (`gs://` for the buckets), folders first. Raises ApiError.

    The fields are `uri`, the local `path`, `entries` (`name`, `uri`, `kind`: folder, file or link, `size` in bytes,
    `modified`), and `left_out`, how many entries were omitted beyond `MAX_LISTED`.
    """
    path = _resolve_uri_or_root(buckets_folder, uri)
    try:
        with os.scandir(path) as scanned:
            entries = [(not entry.is_dir(follow_symlinks=False), entry.name, entry) for entry in scanned]
    except OSError as error:
        raise ApiError("NOT_FOUND", f"There is no folder {uri} ({path}): {error.strerror}.") from error
    shown = heapq.nsmallest(MAX_LISTED, entries)
    base = uri if uri == ROOT else f"{uri.rstrip('/')}/"
    rows = (_serialize_entry_unless_deleted(f"{base}{name}", entry) for _, name, entry in shown)
    return {
        "uri": uri,
        "path": str(path),
        "entries": [row for row in rows if row is not None],
        "left_out": len(entries) - len(shown),
    }


def require_file_path(buckets_folder: Path, uri: str) -> Path:
    """Return the file of a gs:// URI. Raises ApiError."""
    path = _resolve_uri_or_root(buckets_folder, uri)
    if not path.is_file():
        raise ApiError("NOT_FOUND", f"There is no file {uri} ({path}).")
    return path


def _resolve_uri_or_root(buckets_folder: Path, uri: str) -> Path:
    try:
        return buckets_folder if uri == ROOT else bucket_folders.resolve_gs_uri(buckets_folder, uri)
    except InvalidBucketUri as error:
        raise ApiError("INVALID_ARGUMENT", str(error), [("uri", str(error))]) from error


def _serialize_entry_unless_deleted(uri: str, entry: os.DirEntry[str]) -> dict[str, Any] | None:
    """Return an entry of a folder, None if it was deleted meanwhile."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    kind = "link" if entry.is_symlink() else "folder" if entry.is_dir() else "file"
    modified = format_time(status.st_mtime_ns)
    return {"name": entry.name, "uri": uri, "kind": kind, "size": status.st_size, "modified": modified}
