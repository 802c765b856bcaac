"""The MD5 and CRC32C checksums of an object in Cloud Storage's form."""

import base64
import hashlib
from pathlib import Path

_CHUNK = 1 << 20


def compute_checksums(path: Path) -> dict[str, str]:
    """Return `md5Hash` and `crc32c` of a file in base64 (Cloud Storage, Objects resource). Raises OSError."""
    from google_crc32c import Checksum

    md5, crc32c = hashlib.md5(usedforsecurity=False), Checksum()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            md5.update(chunk)
            crc32c.update(chunk)
    return {"md5Hash": base64.b64encode(md5.digest()).decode(), "crc32c": base64.b64encode(crc32c.digest()).decode()}
