"""The form of gs:// URIs: `gs://bucket/object` is the file `gcs/bucket/object` of the data folder."""

import contextlib
import re
from collections.abc import Iterator

from vertex_emulator.errors import ApiError, InvalidBucketUri

MAX_OBJECT_NAME_BYTES = 1024  # Cloud Storage, "About Cloud Storage objects"
MAX_PARTS = 100  # the work on a path grows with them, and a container can nest folders without end
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")  # Google's page on bucket names
_MAX_PART_BYTES = 255  # Linux's limit for a file name


def parse_gs_uri_parts(uri: str) -> tuple[str, ...]:
    """Return the bucket and the parts of the object's name, each a valid file name. Raises InvalidBucketUri."""
    if not uri.startswith("gs://"):
        raise InvalidBucketUri(f'"{uri}" is not a Cloud Storage URI: it must start with gs://')
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        rule = 'bucket names are 3 to 222 lowercase letters, digits, ".", "_", "-"'
        raise InvalidBucketUri(f'"{uri}" names no bucket: {rule}')
    if not is_utf8_encodable(name):
        raise InvalidBucketUri(f"{uri!a} is not UTF-8, which the names of objects are")
    parts = name.strip("/").split("/") if name.strip("/") else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise InvalidBucketUri(f'"{uri}" has an empty, "." or ".." part, which is not a valid folder name')
    if any(len(part.encode()) > _MAX_PART_BYTES for part in parts):
        rule = f"has a part of more than {_MAX_PART_BYTES} bytes, which is more than a file name can have here"
        raise InvalidBucketUri(f'"{uri}" {rule}')
    if len(parts) > MAX_PARTS:
        raise InvalidBucketUri(f'"{uri[:80]}…" has more than {MAX_PARTS} parts, more than the emulator serves')
    if len(name.encode()) > MAX_OBJECT_NAME_BYTES:
        message = f"its object name is longer than Cloud Storage's limit of {MAX_OBJECT_NAME_BYTES} bytes; shorten it"
        raise InvalidBucketUri(f'"{uri[:80]}…": {message}')
    return (bucket, *parts)


def build_object_uri(bucket: str, name: str) -> str:
    """Return the URI of an object. Raises InvalidBucketUri for a name that would be another one as a path."""
    uri = f"gs://{bucket}/{name}"
    if name.startswith("/") or name.endswith("//") or "/" in bucket:
        raise InvalidBucketUri(f'"{uri}" has an empty part, which is not a valid folder name')
    return uri


@contextlib.contextmanager
def translate_invalid_uri_errors() -> Iterator[None]:
    """Raise InvalidBucketUri as ApiError."""
    try:
        yield
    except InvalidBucketUri as error:
        raise ApiError("INVALID_ARGUMENT", f"{error}.") from error


def is_utf8_encodable(name: str) -> bool:
    """Return whether a name is UTF-8, as object names are: containers can create files with other names."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
