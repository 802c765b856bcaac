"""The bucket folders, for reading."""

from __future__ import annotations

import heapq
import os
from pathlib import Path
from typing import Any

from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs import buckets
from vertex_emulator.times import format_time

ROOT = "gs://"
MOST_LISTED = 1000


def listing(root: Path, uri: str) -> dict[str, Any]:
    """What is in the folder of a gs:// URI (`gs://` lists the buckets), folders first. Raises ApiError.

    `uri`, the local `path`, `entries` (`name`, `uri`, `kind`: folder, file or link, `size` in bytes, `modified`),
    and how many entries were `left_out` because there are too many.
    """
    path = _path(root, uri)
    try:
        with os.scandir(path) as found:
            entries = [(not entry.is_dir(follow_symlinks=False), entry.name, entry) for entry in found]
    except OSError as error:
        raise ApiError("NOT_FOUND", f"There is no folder {uri} ({path}): {error.strerror}.") from error
    shown = heapq.nsmallest(MOST_LISTED, entries)
    base = uri if uri == ROOT else f"{uri.rstrip('/')}/"
    return {
        "uri": uri,
        "path": str(path),
        "entries": [row for _, name, entry in shown if (row := _row(f"{base}{name}", entry)) is not None],
        "left_out": len(entries) - len(shown),
    }


def file(root: Path, uri: str) -> Path:
    """The file of a gs:// URI. Raises ApiError."""
    path = _path(root, uri)
    if not path.is_file():
        raise ApiError("NOT_FOUND", f"There is no file {uri} ({path}).")
    return path


def _path(root: Path, uri: str) -> Path:
    try:
        return root if uri == ROOT else buckets.resolve_folder(root, uri)
    except InvalidBucketUri as error:
        raise ApiError("INVALID_ARGUMENT", str(error), [("uri", str(error))]) from error


def _row(uri: str, entry: os.DirEntry[str]) -> dict[str, Any] | None:
    """One entry; None for one that has just gone."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    kind = "link" if entry.is_symlink() else "folder" if entry.is_dir() else "file"
    modified = format_time(status.st_mtime_ns)
    return {"name": entry.name, "uri": uri, "kind": kind, "size": status.st_size, "modified": modified}
