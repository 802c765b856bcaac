"""Signatures of files: size, times, inode and mode, which change with the content, as in git's index.

The signature of every file is read every time. A folder's own times change with the names in it, not with their bytes.
"""

import os
import struct
from collections.abc import Collection
from itertools import starmap
from operator import attrgetter

STABLE_AFTER_NS = 2_000_000_000
"""Age of a change, in nanoseconds, from which a later one has another time; FAT stores times in steps of 2 seconds."""

_get_fields = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode")
_SIGNATURE = struct.Struct("=qqqQI")
_POSITIVE = (1 << 63) - 1


def pack_signature(stat_result: os.stat_result) -> bytes:
    """Return the signature of one file; all signatures have the same length."""
    fields = _get_fields(stat_result)
    try:
        return _SIGNATURE.pack(*fields)
    except struct.error:  # a time before 1678 or after 2261
        return _SIGNATURE.pack(*(field & _POSITIVE for field in fields))


def read_packed_signatures(path_prefix: str, paths: Collection[str]) -> bytes:
    """Return the signatures of the files or links at `path_prefix + path`, one after the other. Raises OSError."""
    files = [path_prefix + path for path in paths]
    try:
        # Without a line of Python per file: this takes most of the time of a preview without changes.
        return b"".join(starmap(_SIGNATURE.pack, map(_get_fields, map(os.lstat, files))))
    except struct.error:
        return b"".join(pack_signature(os.lstat(file)) for file in files)


def split_packed_signatures(packed_signatures: bytes) -> list[bytes]:
    """Split what `read_packed_signatures` returned into one signature per file."""
    return [signature for (signature,) in struct.iter_unpack(f"{_SIGNATURE.size}s", packed_signatures)]


def sum_file_sizes(packed_signatures: bytes) -> int:
    """Return the total size in bytes of the files with these signatures."""
    return sum(fields[0] for fields in _SIGNATURE.iter_unpack(packed_signatures))


def is_stable(packed_signatures: bytes, now_ns: int) -> bool:
    """Whether any change after `now_ns` changes the signatures, because no file changed shortly before.

    Git calls a file "racily clean" otherwise: its next change may have the same times.
    """
    return all(max(fields[1:3]) < now_ns - STABLE_AFTER_NS for fields in _SIGNATURE.iter_unpack(packed_signatures))
