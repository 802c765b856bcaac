"""Cloud Storage as folders: `gs://bucket/object` is `<data>/gcs/bucket/object`, mounted at `/gcs`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vertex_emulator.errors import InvalidBucketUri

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")  # Google's page on bucket names
_LONGEST_NAME = 255  # bytes, Linux's limit for a file name


def resolve_folder(root: Path, uri: str) -> Path:
    """The folder on disk of a gs:// URI, which never lies outside `root`. Raises BadUri."""
    if not uri.startswith("gs://"):
        raise InvalidBucketUri(f'"{uri}" is not a Cloud Storage URI: it must start with gs://')
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise InvalidBucketUri(
            f'"{uri}" names no bucket: bucket names are 3 to 222 lowercase letters, digits, ".", "_", "-"'
        )
    parts = name.strip("/").split("/") if name.strip("/") else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise InvalidBucketUri(f'"{uri}" has an empty, "." or ".." part, which cannot be a folder')
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        raise InvalidBucketUri(
            f'"{uri}" has a part of more than {_LONGEST_NAME} bytes, which no file system of this machine takes'
        )
    path = root.joinpath(bucket, *parts)
    # A symbolic link that a container left in a bucket must not lead anywhere else.
    if not path.resolve().is_relative_to(root.resolve()):
        raise InvalidBucketUri(f'"{uri}" leaves the bucket folder through a symbolic link')
    return path


def make_folder(root: Path, uri: str) -> Path:
    """Make the folder of a gs:// URI. Raises BadUri, also where a file is in its way.

    It and those above it in the bucket are opened to every user, because containers run as any user; each time, because
    a process may have been killed after it made a folder.
    """
    path = resolve_folder(root, uri)
    for each in [*reversed([above for above in path.parents if above.is_relative_to(root) and above != root]), path]:
        try:
            each.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise InvalidBucketUri(f'"{uri}" cannot be a folder: {each} is a file') from error
        if each.stat().st_uid == os.geteuid():
            each.chmod(0o777)
    return path
