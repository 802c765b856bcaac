"""The URIs of objects, and the API's error for those that no file can have."""

import contextlib
from collections.abc import Iterator

from vertex_emulator.errors import ApiError, InvalidBucketUri


def build_object_uri(bucket: str, name: str) -> str:
    """Return the URI of an object. Raises InvalidBucketUri for a name that would be another one as a path."""
    uri = f"gs://{bucket}/{name}"
    if name.startswith("/") or name.endswith("//") or "/" in bucket:
        raise InvalidBucketUri(f'"{uri}" has an empty part, which is not a valid folder name')
    return uri


@contextlib.contextmanager
def reject_invalid_uris() -> Iterator[None]:
    """Raise ApiError for InvalidBucketUri."""
    try:
        yield
    except InvalidBucketUri as error:
        raise ApiError("INVALID_ARGUMENT", f"{error}.") from error
