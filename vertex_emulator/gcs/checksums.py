"""The two checksums of an object, as Cloud Storage writes them."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

_CHUNK = 1 << 20


def checksums(path: Path) -> dict[str, str]:
    """`md5Hash` and `crc32c` of a file, base64 (Cloud Storage, Objects resource). Raises OSError."""
    from google_crc32c import Checksum

    md5, crc32c = hashlib.md5(usedforsecurity=False), Checksum()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            md5.update(chunk)
            crc32c.update(chunk)
    return {"md5Hash": _base64(md5.digest()), "crc32c": _base64(crc32c.digest())}


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
