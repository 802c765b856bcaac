"""The archive of a snapshot: a tar file, compressed by gzip, whose first member is a manifest.

    manifest.json               format, versions, and the number and size of all other files
    database/TABLE.jsonl        the rows of a table, a JSON object in each line
    objects.jsonl               the metadata of objects in buckets
    logs/JOB/TASK.ATTEMPT.jsonl a saved log
    gcs/BUCKET/                 a bucket, and each folder in it
    gcs/BUCKET/NAME             its objects, with their times to the nanosecond (extended header `mtime`), and
                                symbolic links that lead nowhere but to their own bucket

Rows instead of the SQLite file: a file from a stranger could bring triggers and views, which SQLite would run.

An archive that is read may come from a stranger: every member is checked, and none is unpacked by its own path. An
export writes plain members, each behind at most one extended header of four fields. Headers are read here, one block
at a time, because `tarfile` obeys whatever else they say (sparse maps, chains of extended headers), in memory and time
that only the archive limits, before it tells anybody a member's name or size.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from vertex_api import __version__
from vertex_emulator.database import SNAPSHOT_SCHEMA_VERSION
from vertex_emulator.errors import EmulatorError, SnapshotInvalid

FORMAT = 3
_READABLE_FORMATS = (1, 2, FORMAT)  # 1 has no folders below buckets, and no links; 2 no tensorboards and experiments
MANIFEST = "manifest.json"
DATABASE_PREFIX, OBJECTS, LOGS_PREFIX, BUCKETS_PREFIX = "database/", "objects.jsonl", "logs/", "gcs/"
JOB_ID = re.compile(r"[0-9]{1,19}")
LOG_NAME = re.compile(r"logs/([0-9]{1,19})/workerpool[0-9]{1,4}-[0-9]{1,6}\.[0-9]{1,6}\.jsonl")

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much it is in all, 0 if that is unknown."""
_BYTES_PER_MEMBER = 6 << 10  # which take as long as the smallest member, so that many small files count too
_BUFFER_BYTES = 1 << 16
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


@dataclass(frozen=True)
class Manifest:
    """What an archive is: its format, who wrote it, and the `files` that follow, with their `size` (bytes) in all."""

    files: int
    size: int
    format: int = FORMAT
    database_schema: int = SNAPSHOT_SCHEMA_VERSION
    emulator_version: str = __version__

    def dump(self) -> bytes:
        """Return the content of `manifest.json`."""
        return json.dumps(asdict(self), indent=2).encode() + b"\n"

    @classmethod
    def parse(cls, text: bytes, archive_name: str) -> Manifest:
        """Parse `manifest.json`. Raises SnapshotInvalid, also for a format that this version does not read."""
        try:
            fields = json.loads(text)
            version = str(fields["emulator_version"])[:40]
            formats = (fields["format"], fields["database_schema"])
            files, size = fields["files"], fields["size"]
            if not all(type(number) is int and 0 <= number < 1 << 63 for number in (*formats, files, size)):
                raise ValueError("a number is none")
            if formats[0] in _READABLE_FORMATS and formats[1] == SNAPSHOT_SCHEMA_VERSION:
                return cls(files, size)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise SnapshotInvalid(f"{archive_name} is no snapshot: its {MANIFEST} is not valid") from error
        raise SnapshotInvalid(
            f"{archive_name} was written by version {version!a} (format {formats[0]}, database {formats[1]}), and "
            f"this is version {__version__} (format {FORMAT}, database {SNAPSHOT_SCHEMA_VERSION}): import it with "
            "that version"
        )


def stays_in_bucket(name: str, target: str) -> bool:
    """Return whether a link with an object's name leads to its own bucket, wherever the data folder is.

    Its target climbs no higher than the bucket, and does so at its beginning: behind another link, `..` would lead
    from where that one leads.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = next((place for place, part in enumerate(parts) if part != ".."), len(parts))
    is_relative = target != "" and not target.startswith("/")
    return (
        name != "" and is_relative and climbs <= name.count("/") and ".." not in parts[climbs:] and "\0" not in target
    )


@dataclass(frozen=True)
class Entry:
    """A file of an archive; a symbolic link if it has a `link_target`, else a folder if it has no `open_file`.

    `nanoseconds` is the time of a file since 1970.
    """

    name: str
    size: int = 0
    open_file: Callable[[], IO[bytes]] | None = None
    nanoseconds: int = 0
    link_target: str | None = None


def write(archive: Path, entries: Sequence[Entry], report: Report) -> None:
    """Write a manifest and the entries to a file for its owner only, which is there once it is complete.

    Raises OSError, and leaves no part of a file.
    """
    manifest = Manifest(len(entries), sum(entry.size for entry in entries))
    content = manifest.dump()
    progress = Progress(report, "writing the archive", manifest)
    partial = archive.with_name(f"{archive.name}.partial")
    try:
        number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with (
            os.fdopen(number, "wb") as file,
            gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            _add_entry(tar, Entry(MANIFEST, len(content), lambda: io.BytesIO(content)), None)
            for entry in entries:
                _add_entry(tar, entry, progress)
        partial.replace(archive)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _add_entry(tar: tarfile.TarFile, entry: Entry, progress: Progress | None) -> None:
    member = tarfile.TarInfo(entry.name)
    member.mode, member.mtime = 0o644, entry.nanoseconds // 10**9
    if progress is not None:
        progress.add_member()
    if entry.nanoseconds:
        # The time is the object's generation, and a float has no nanoseconds.
        member.pax_headers = {"mtime": f"{entry.nanoseconds // 10**9}.{entry.nanoseconds % 10**9:09d}"}
    if entry.link_target is not None:
        member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, entry.link_target
        tar.addfile(member)
        return
    if entry.open_file is None:
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(member)
        return
    try:
        with entry.open_file() as file:
            member.size = entry.size
            tar.addfile(member, file if progress is None else progress.wrap(file))
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), entry.name) from error


@contextmanager
def read(archive: Path, report: Report) -> Iterator[tuple[Manifest, Iterator[Member]]]:
    """Yield the manifest of an archive and its other members, each with its file, `None` for a folder or a link.

    Raises EmulatorError if the file cannot be read and SnapshotInvalid if it is no snapshot.
    """
    try:
        with archive.open("rb") as file:
            members = _members(io.BufferedReader(_Decompressed(file), _CHUNK_BYTES), archive.name)
            first, content = next(members, (None, None))
            if first is None or first.name != MANIFEST or content is None or first.size > _MAX_MANIFEST_BYTES:
                raise SnapshotInvalid(f"{archive.name} is no snapshot: it does not begin with {MANIFEST}")
            manifest = Manifest.parse(content.read(), archive.name)
            yield manifest, _checked(manifest, members, archive.name, report)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise SnapshotInvalid(f"{archive.name} is no snapshot, or it is damaged: {error}") from error
    except FileNotFoundError as error:
        raise EmulatorError(f"{error.filename or archive} does not exist") from error


def rows(content: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the lines of a file. Raises SnapshotInvalid for one beyond reason, and ValueError."""
    while line := content.readline(_MAX_LINE_BYTES + 1):
        if len(line) > _MAX_LINE_BYTES:
            raise SnapshotInvalid(f"a line of the archive has more than {_MAX_LINE_BYTES >> 20} MiB")
        text = line.decode()
        _limit_values(text)
        row = json.loads(text)
        if not isinstance(row, dict):
            raise SnapshotInvalid("a line of the archive is no JSON object")
        for value in row.values():
            if isinstance(value, str):  # a column that holds JSON
                _limit_values(value)
        yield row


def _limit_values(text: str) -> None:
    """Raise SnapshotInvalid for JSON of more values than any emulator writes, each of which takes some 70 bytes."""
    if len(text) > _MAX_LINE_VALUES and sum(map(text.count, ",[{")) > _MAX_LINE_VALUES:
        structure = _JSON_STRING.sub("", text)
        if sum(map(structure.count, ",[{")) > _MAX_LINE_VALUES:
            raise SnapshotInvalid(f"a line of the archive has more than {_MAX_LINE_VALUES} values")


def modified_ns(member: tarfile.TarInfo) -> int:
    """The time of a member in ns since 1970. Raises SnapshotInvalid."""
    match = _TIME.fullmatch(member.pax_headers.get("mtime", ""))
    if match is None:
        raise SnapshotInvalid(f"{member.name!a} of the archive has no time in nanoseconds")
    return int(match[1]) * 10**9 + int(match[2])


def _members(stream: IO[bytes], archive_name: str) -> Iterator[Member]:
    while (header := _read_exactly(stream, _BLOCK)).strip(b"\0"):
        fields: dict[str, str] = {}
        if header[156:157] == tarfile.XHDTYPE:
            fields = _parse_extended(stream, _parse_block(header).size)
            header = _read_exactly(stream, _BLOCK)
        if header[156:157] not in (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE):
            name = header[:100].rstrip(b"\0").decode("ascii", "backslashreplace")
            raise SnapshotInvalid(f"{archive_name} has {name!a}, which is no file, folder or symbolic link")
        member = _parse_block(header)
        member.pax_headers = fields
        member.name, member.linkname = fields.get("path", member.name), fields.get("linkpath", member.linkname)
        member.size = int(fields.get("size", member.size))
        if member.size < 0 or (member.size and not member.isreg()):
            raise tarfile.ReadError(f"a header is not valid: the size is {member.size}")
        content = _Content(stream, member.size)
        yield member, content if member.isreg() else None  # type: ignore[misc]
        content.skip()
        _read_exactly(stream, -member.size % _BLOCK)
    if stream.read(tarfile.RECORDSIZE).strip(b"\0") or stream.read(1):
        raise tarfile.ReadError("something follows its last file")


def _parse_block(header: bytes) -> tarfile.TarInfo:
    """Parse a block whose type is an extended header's or a member's. Raises tarfile.TarError."""
    try:
        return tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except (ValueError, IndexError, OverflowError) as error:
        raise tarfile.ReadError(f"a header is not valid: {error}") from error


def _parse_extended(stream: IO[bytes], size: int) -> dict[str, str]:
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


def _checked(manifest: Manifest, members: Iterator[Member], archive_name: str, report: Report) -> Iterator[Member]:
    """Yield the members, unless they are more or larger than the manifest says. Raises SnapshotInvalid."""
    files = size = 0
    progress = Progress(report, "unpacking the archive", manifest)
    for member, content in members:
        files, size = files + 1, size + member.size
        if files > manifest.files or size > manifest.size:
            break
        progress.add_member()
        yield member, content if content is None else progress.wrap(content)
    if (files, size) != (manifest.files, manifest.size):
        raise SnapshotInvalid(f"{archive_name} is damaged: it has not the files that its {MANIFEST} says")


class Progress:
    """Counts the members and bytes of an archive of a known number and size, and reports them."""

    def __init__(self, report: Report, action: str, manifest: Manifest) -> None:
        self._report, self._action = report, action
        self._done, self._total = 0, manifest.files * _BYTES_PER_MEMBER + manifest.size

    def add_member(self) -> None:
        """Count one more member, and report."""
        self._add(_BYTES_PER_MEMBER)

    def wrap(self, file: IO[bytes]) -> IO[bytes]:
        """Return a file to be read in place of another one, which counts and reports what is read."""
        return io.BufferedReader(_Counted(file, self._add), _BUFFER_BYTES)

    def _add(self, size: int) -> None:
        self._done += size
        self._report(self._action, self._done, self._total)


class _Stream(io.RawIOBase):
    """A file whose subclasses say what its next bytes are: at most `size`, none at the end."""

    def next_bytes(self, size: int) -> bytes:
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader calls it with
        data = self.next_bytes(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Decompressed(_Stream):
    """The content of a file that is compressed by gzip, once: a bomb of gzip members without content has no end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._gzip = file, zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    def next_bytes(self, size: int) -> bytes:
        while not self._gzip.eof:
            compressed = self._gzip.unconsumed_tail or self._file.read(_CHUNK_BYTES)
            if not compressed:
                raise EOFError("it ends too early")
            if data := self._gzip.decompress(compressed, size):
                return data
        if self._gzip.unused_data or self._file.read(1):
            raise tarfile.ReadError("something follows its end")
        return b""


class _Content(_Stream):
    """The bytes of one member, and nothing behind them."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._left = stream, size

    def next_bytes(self, size: int) -> bytes:
        data = self._stream.read(min(size, self._left))
        if not data and self._left and size:
            raise EOFError("it ends too early")
        self._left -= len(data)
        return data

    def skip(self) -> None:
        """Read what nobody has read."""
        while self.read(_CHUNK_BYTES):
            pass


class _Counted(_Stream):
    """Another file, of which each read is counted."""

    def __init__(self, file: IO[bytes], count: Callable[[int], None]) -> None:
        self._file, self._count = file, count

    def next_bytes(self, size: int) -> bytes:
        data = self._file.read(size)
        self._count(len(data))
        return data
