"""Reading an archive that may come from a stranger: every member is checked, and none is unpacked by its own path.

An export writes plain members, each behind at most one extended header of four fields. Headers are read here, one block
at a time, because `tarfile` obeys whatever else they say (sparse maps, chains of extended headers), in memory and time
that only the archive limits, before it tells anybody a member's name or size.
"""

import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from vertex_emulator.errors import EmulatorError, SnapshotInvalid
from vertex_emulator.snapshots.archive_format import MANIFEST, Manifest
from vertex_emulator.snapshots.progress import Progress, ReportProgress

_MAX_MANIFEST_BYTES = 64 << 10
_MAX_EXTENDED_HEADER_BYTES = 8 << 10  # a name has 1,250 bytes or fewer, the target of a link 4,095
_MAX_LINE_BYTES = 64 << 20
_MAX_LINE_VALUES = 1_000_000  # ten for each of the 10,000 measurements that a trial keeps, and ten times that
_CHUNK_BYTES = 64 << 10
_BLOCK = tarfile.BLOCKSIZE
_EXTENDED_FIELD = re.compile(rb"([0-9]{1,5}) (path|linkpath|size|mtime)=")
_EXTENDED_SIZE = re.compile("[0-9]{1,19}")
_TIME = re.compile(r"(-?[0-9]{1,11})\.([0-9]{9})")
_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)


Member = tuple[tarfile.TarInfo, IO[bytes] | None]


@contextmanager
def open_manifest_and_members(archive: Path, report: ReportProgress) -> Iterator[tuple[Manifest, Iterator[Member]]]:
    """Yield the manifest of an archive and its other members, each with its file, `None` for a folder or a link.

    Raises EmulatorError if the file cannot be read and SnapshotInvalid if it is no snapshot.
    """
    try:
        with archive.open("rb") as file:
            members = _iterate_members_with_content(io.BufferedReader(_Decompressed(file), _CHUNK_BYTES), archive.name)
            first, content = next(members, (None, None))
            if first is None or first.name != MANIFEST or content is None or first.size > _MAX_MANIFEST_BYTES:
                raise SnapshotInvalid(f"{archive.name} is no snapshot: it does not begin with {MANIFEST}")
            manifest = Manifest.parse(content.read(), archive.name)
            yield manifest, _iterate_members_and_validate_totals(manifest, members, archive.name, report)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise SnapshotInvalid(f"{archive.name} is no snapshot, or it is damaged: {error}") from error
    except FileNotFoundError as error:
        raise EmulatorError(f"{error.filename or archive} does not exist") from error


def iterate_rows(content: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the lines of a file. Raises SnapshotInvalid for one beyond reason, and ValueError."""
    while line := content.readline(_MAX_LINE_BYTES + 1):
        if len(line) > _MAX_LINE_BYTES:
            raise SnapshotInvalid(f"a line of the archive has more than {_MAX_LINE_BYTES >> 20} MiB")
        text = line.decode()
        _raise_if_too_many_values(text)
        row = json.loads(text)
        if not isinstance(row, dict):
            raise SnapshotInvalid("a line of the archive is no JSON object")
        for value in row.values():
            if isinstance(value, str):  # a column that holds JSON
                _raise_if_too_many_values(value)
        yield row


def _raise_if_too_many_values(text: str) -> None:
    """Raise SnapshotInvalid for JSON of more values than any emulator writes, each of which takes some 70 bytes."""
    if sum(map(text.count, ",[{")) > _MAX_LINE_VALUES:
        structure = _JSON_STRING.sub("", text)
        if sum(map(structure.count, ",[{")) > _MAX_LINE_VALUES:
            raise SnapshotInvalid(f"a line of the archive has more than {_MAX_LINE_VALUES} values")


def require_modification_time_ns(member: tarfile.TarInfo) -> int:
    """Return the time of a member in ns since 1970. Raises SnapshotInvalid."""
    match = _TIME.fullmatch(member.pax_headers.get("mtime", ""))
    if match is None:
        raise SnapshotInvalid(f"{member.name!a} of the archive has no time in nanoseconds")
    return int(match[1]) * 10**9 + int(match[2])


class _Decompressed(io.RawIOBase):
    """The content of a file that is compressed by gzip, once: a bomb of gzip members without content has no end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._gzip = file, zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader calls it with
        while not self._gzip.eof:
            compressed = self._gzip.unconsumed_tail or self._file.read(_CHUNK_BYTES)
            if not compressed:
                raise EOFError("it ends too early")
            if data := self._gzip.decompress(compressed, len(buffer)):
                buffer[: len(data)] = data
                return len(data)
        if self._gzip.unused_data or self._file.read(1):
            raise tarfile.ReadError("something follows its end")
        return 0


class _Content(io.RawIOBase):
    """The bytes of one member, and nothing behind them."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(min(len(buffer), self._left))
        if not data and self._left and len(buffer):
            raise EOFError("it ends too early")
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def skip_rest(self) -> None:
        """Read what nobody has read."""
        while self.read(_CHUNK_BYTES):
            pass


def _iterate_members_with_content(stream: IO[bytes], archive_name: str) -> Iterator[Member]:
    while (header := _read_exactly(stream, _BLOCK)).strip(b"\0"):
        fields: dict[str, str] = {}
        if header[156:157] == tarfile.XHDTYPE:
            fields = _parse_extended_header(stream, _parse_header(header).size)
            header = _read_exactly(stream, _BLOCK)
        if header[156:157] not in (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE):
            name = header[:100].rstrip(b"\0").decode("ascii", "backslashreplace")
            raise SnapshotInvalid(f"{archive_name} has {name!a}, which is no file, folder or symbolic link")
        member = _parse_header(header)
        member.pax_headers = fields
        member.name, member.linkname = fields.get("path", member.name), fields.get("linkpath", member.linkname)
        member.size = int(fields.get("size", member.size))
        if member.size < 0 or (member.size and not member.isreg()):
            raise tarfile.ReadError(f"a header is not valid: the size is {member.size}")
        content = _Content(stream, member.size)
        yield member, content if member.isreg() else None  # type: ignore[misc]
        content.skip_rest()
        _read_exactly(stream, -member.size % _BLOCK)
    if stream.read(tarfile.RECORDSIZE).strip(b"\0") or stream.read(1):
        raise tarfile.ReadError("something follows its last file")


def _parse_header(header: bytes) -> tarfile.TarInfo:
    """Parse a block whose type is an extended header's or a member's. Raises tarfile.TarError."""
    try:
        return tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except (ValueError, IndexError, OverflowError) as error:
        raise tarfile.ReadError(f"a header is not valid: {error}") from error


def _parse_extended_header(stream: IO[bytes], size: int) -> dict[str, str]:
    """Read what an extended header says of the member after it. Raises tarfile.TarError and EOFError."""
    if not 0 < size <= _MAX_EXTENDED_HEADER_BYTES:
        raise tarfile.ReadError(f"a header is not valid: it has {size} bytes")
    text = _read_exactly(stream, size + -size % _BLOCK)[:size]
    fields: dict[str, str] = {}
    start = 0
    while start < size:
        match = _EXTENDED_FIELD.match(text, start)
        end = start + int(match[1]) if match else 0
        if match is None or match[2].decode() in fields or text[end - 1 : end] != b"\n" or end <= match.end():
            raise tarfile.ReadError(f"a header is not valid: no export writes {text[start : start + 40]!a}")
        try:
            fields[match[2].decode()] = text[match.end() : end - 1].decode()
        except UnicodeDecodeError as error:
            raise tarfile.ReadError(f"a header is not valid: {error}") from error
        start = end
    if not _EXTENDED_SIZE.fullmatch(fields.get("size", "0")):
        raise tarfile.ReadError(f"a header is not valid: the size is {fields['size'][:40]!a}")
    return fields


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("it ends too early")
    return data


def _iterate_members_and_validate_totals(
    manifest: Manifest,
    members: Iterator[Member],
    archive_name: str,
    report: ReportProgress,
) -> Iterator[Member]:
    """Yield the members, unless they are more or larger than the manifest says. Raises SnapshotInvalid."""
    files = size = 0
    progress = Progress(report, "unpacking the archive", manifest.files, manifest.size)
    for member, content in members:
        files, size = files + 1, size + member.size
        if files > manifest.files or size > manifest.size:
            break
        progress.add_member_and_report()
        yield member, content if content is None else progress.wrap_to_count_reads(content)
    if (files, size) != (manifest.files, manifest.size):
        raise SnapshotInvalid(f"{archive_name} is damaged: it has not the files that its {MANIFEST} says")
