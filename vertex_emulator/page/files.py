"""The folders and files of buckets, as the page lists and downloads them."""

import contextlib
import heapq
import os
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs.files import ROOT, BucketTree, is_utf8
from vertex_emulator.times import format_time

MAX_LISTED = 1000
_KINDS = {stat.S_IFLNK: "link", stat.S_IFDIR: "folder", stat.S_IFREG: "file"}


def list_folder(buckets: Path, uri: str) -> dict[str, Any]:
    """Return the content of the folder of a gs:// URI (`gs://` for the buckets), folders first. Raises ApiError.

    The fields are `uri`, the local `path`, `entries` (`name`, `uri`, `kind`: folder, file, link or special, `size` in
    bytes, `modified`), and `left_out`, how many entries were omitted beyond `MAX_LISTED`.
    """
    tree = BucketTree(buckets)
    number = 0
    with _errors_refused(tree, uri, "folder"), tree.scan(uri) as entries:

        def count_and_key(entry: os.DirEntry[str]) -> tuple[bool, str]:
            nonlocal number
            number += 1
            return not entry.is_dir(follow_symlinks=False), entry.name

        shown = heapq.nsmallest(MAX_LISTED, entries, key=count_and_key)
        base = uri if uri == ROOT else f"{uri.rstrip('/')}/"
        rows = [_entry_json(base, entry) for entry in shown]
        return {
            "uri": uri,
            "path": str(tree.path(uri)),
            "entries": [row for row in rows if row is not None],
            "left_out": number - len(shown),
        }


def _entry_json(base_uri: str, entry: os.DirEntry[str]) -> dict[str, Any] | None:
    """Return an entry of a folder, None if it was deleted meanwhile.

    A name that is not UTF-8 is escaped and has an empty `uri`: no URI can name it.
    """
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return {
        "name": os.fsencode(entry.name).decode(errors="backslashreplace"),
        "uri": f"{base_uri}{entry.name}" if is_utf8(entry.name) else "",
        "kind": _KINDS.get(stat.S_IFMT(status.st_mode), "special"),
        "size": status.st_size,
        "modified": format_time(status.st_mtime_ns),
    }


def open_file(buckets: Path, uri: str) -> FileIO:
    """Open the file of a gs:// URI. Raises ApiError."""
    tree = BucketTree(buckets)
    with _errors_refused(tree, uri, "file"):
        return tree.open(uri)


@contextlib.contextmanager
def _errors_refused(tree: BucketTree, uri: str, kind: str) -> Iterator[None]:
    """Raise ApiError for a URI that is invalid or names nothing of this kind."""
    try:
        yield
    except InvalidBucketUri as error:
        raise ApiError("INVALID_ARGUMENT", str(error), [("uri", str(error))]) from error
    except OSError as error:
        message = f"There is no {kind} {uri} ({tree.path(uri)}): {error.strerror}."
        raise ApiError("NOT_FOUND", message) from error
