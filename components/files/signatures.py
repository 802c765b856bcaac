"""By what a file is known to be unchanged without reading it: size, times, inode and mode, as in git's index.

Every file is looked at every time. A folder's own times tell of names that come and go, not of bytes that are written.
"""

import os
import struct
from collections.abc import Collection
from itertools import starmap
from operator import attrgetter

SETTLED_NS = 2_000_000_000
"""How old a change must be to be told from a later one by its time; FAT keeps times to two seconds."""

_fields = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode")
_SIGNATURE = struct.Struct("=qqqQI")
_POSITIVE = (1 << 63) - 1


def signature(status: os.stat_result) -> bytes:
    """The signature of one file, always as long."""
    fields = _fields(status)
    try:
        return _SIGNATURE.pack(*fields)
    except struct.error:  # a time before 1678 or after 2261
        return _SIGNATURE.pack(*(field & _POSITIVE for field in fields))


def signatures(root: str, paths: Collection[str]) -> bytes:
    """Those of all files at `root + path`, one after the other; a link's is its own. Raises OSError."""
    files = [root + path for path in paths]
    try:
        # No line of Python for each of them: this is most of what it costs to see that nothing has changed.
        return b"".join(starmap(_SIGNATURE.pack, map(_fields, map(os.lstat, files))))
    except struct.error:
        return b"".join(signature(os.lstat(file)) for file in files)


def parted(many: bytes) -> list[bytes]:
    """One for each file."""
    return [many[at : at + _SIGNATURE.size] for at in range(0, len(many), _SIGNATURE.size)]


def size(many: bytes) -> int:
    """The bytes that the files hold."""
    return sum(fields[0] for fields in _SIGNATURE.iter_unpack(many))


def settled(many: bytes, now: int) -> bool:
    """Whether a change after `now` (nanoseconds) will tell, as no file changed shortly before.

    As git says, a file is racily clean otherwise: its next change may bear the same times.
    """
    return all(max(fields[1:3]) < now - SETTLED_NS for fields in _SIGNATURE.iter_unpack(many))
