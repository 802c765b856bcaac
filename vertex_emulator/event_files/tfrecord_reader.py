"""TFRecord files, which event files are: records of a length, its checksum, the data, and the data's checksum.

TensorBoard's own reader takes a path, which would follow links that containers make, has no start offset, and computes
checksums in Python, which takes 11 s for a million records. So records are read here, from open files.
"""

import os
import struct
from io import FileIO
from typing import NamedTuple

import google_crc32c

_NEVER = 1 << 64  # no file has this size
MAX_RECORD_BYTES = 1 << 20  # images, graphs and audio are longer; scalars are not
_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
_OVERHEAD_BYTES = _HEADER.size + _CHECKSUM.size


class RecordBatch(NamedTuple):
    """Records, the offset after them, and what is wrong with the file there, empty if nothing is.

    There is more to read once the file has `next_size`: a file that lies about its lengths is not read again and again.
    `read_bytes` is how much was read to find the records.
    """

    records: list[bytes]
    end_offset: int
    next_size: int
    read_bytes: int
    problem: str = ""


def read_complete_records(file: FileIO, offset: int, max_bytes: int) -> RecordBatch:
    """Read the complete records from an offset on, as far as `max_bytes` go, but one at least.

    A record that is still being written is left for the next time. Records of more than `MAX_RECORD_BYTES` are skipped.
    Nothing is read after a damaged one. Raises OSError.
    """
    size = os.fstat(file.fileno()).st_size
    data = os.pread(file.fileno(), max(max_bytes, MAX_RECORD_BYTES + _OVERHEAD_BYTES), offset)
    records: list[bytes] = []
    at = 0
    while at + _HEADER.size <= len(data):
        length, checksum = _HEADER.unpack_from(data, at)
        if _compute_masked_checksum(data[at : at + 8]) != checksum:
            return RecordBatch(records, offset + at, _NEVER, len(data), f"is damaged at byte {offset + at}")
        start, end = at + _HEADER.size, at + length + _OVERHEAD_BYTES
        if offset + end > size or (length <= MAX_RECORD_BYTES and end > len(data)):
            return RecordBatch(records, offset + at, offset + end, len(data))
        if length <= MAX_RECORD_BYTES:
            record = data[start : start + length]
            if _compute_masked_checksum(record) != _CHECKSUM.unpack_from(data, start + length)[0]:
                return RecordBatch(records, offset + at, _NEVER, len(data), f"is damaged at byte {offset + at}")
            records.append(record)
        at = end
    return RecordBatch(records, offset + at, offset + at + _HEADER.size, len(data))


def _compute_masked_checksum(data: bytes) -> int:
    checksum: int = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
