"""Cloud Storage as folders: `gs://bucket/object` is `<data>/gcs/bucket/object`, mounted at `/gcs`."""

import os
import re
from pathlib import Path

from vertex_emulator.errors import InvalidBucketUri

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")  # Google's page on bucket names
_MAX_NAME_BYTES = 255  # bytes, Linux's limit for a file name


def resolve_gs_uri(buckets_folder: Path, uri: str) -> Path:
    """Return the folder of a gs:// URI below `buckets_folder`. Raises InvalidBucketUri."""
    if not uri.startswith("gs://"):
        raise InvalidBucketUri(f'"{uri}" is not a Cloud Storage URI: it must start with gs://')
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        rule = 'bucket names are 3 to 222 lowercase letters, digits, ".", "_", "-"'
        raise InvalidBucketUri(f'"{uri}" names no bucket: {rule}')
    parts = name.strip("/").split("/") if name.strip("/") else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise InvalidBucketUri(f'"{uri}" has an empty, "." or ".." part, which is not a valid folder name')
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in parts):
        rule = f"has a part of more than {_MAX_NAME_BYTES} bytes, which is more than a file name can have here"
        raise InvalidBucketUri(f'"{uri}" {rule}')
    path = buckets_folder.joinpath(bucket, *parts)
    # A container may have created a symbolic link in a bucket that leads elsewhere.
    if not path.resolve().is_relative_to(buckets_folder.resolve()):
        raise InvalidBucketUri(f'"{uri}" leaves the bucket folder through a symbolic link')
    return path


def make_writable_folder(buckets_folder: Path, uri: str) -> Path:
    """Create the folder of a gs:// URI and return it. Raises InvalidBucketUri, also if a file has its name.

    It and its parents in the bucket become writable for every user, because containers run as any user; each time,
    because a process may have been killed between creating a folder and changing its mode.
    """
    path = resolve_gs_uri(buckets_folder, uri)
    parents = [parent for parent in path.parents if buckets_folder in parent.parents]
    for created in [*reversed(parents), path]:
        try:
            created.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise InvalidBucketUri(f'"{uri}" cannot be a folder: {created} is a file') from error
        if created.stat().st_uid == os.geteuid():
            created.chmod(0o777)
    return path
