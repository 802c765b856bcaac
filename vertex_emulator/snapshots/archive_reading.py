"""Reading an archive that may come from a stranger: every member is checked, and none is unpacked by its own path."""

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
_MAX_HEADER_BYTES = 64 << 10  # tarfile reads extended headers, with names and times, into memory
_MAX_LINE_BYTES = 64 << 20
_TIME = re.compile(r"(-?[0-9]{1,11})\.([0-9]{9})")
_HEADER_TYPES = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class _LimitedTarInfo(tarfile.TarInfo):
    # The method that the standard library names for subclasses.
    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        if self.type in _HEADER_TYPES and self.size > _MAX_HEADER_BYTES:
            raise tarfile.ReadError("a header is too long")
        try:
            return super()._proc_member(tar)  # type: ignore[misc]
        except ValueError as error:  # tarfile's own, for a number in an extended header
            raise tarfile.ReadError(f"a header is not valid: {error}") from error


Member = tuple[tarfile.TarInfo, IO[bytes] | None]


@contextmanager
def open_manifest_and_members(archive: Path, report: ReportProgress) -> Iterator[tuple[Manifest, Iterator[Member]]]:
    """Yield the manifest of an archive and its other members, each with its file, `None` for a folder or a link.

    Raises EmulatorError if the file cannot be read and SnapshotInvalid if it is no snapshot.
    """
    try:
        with archive.open("rb") as file, tarfile.open(fileobj=file, mode="r|gz", tarinfo=_LimitedTarInfo) as tar:
            members = _iterate_members_with_content(tar, archive.name)
            first, content = next(members, (None, None))
            if first is None or first.name != MANIFEST or content is None or first.size > _MAX_MANIFEST_BYTES:
                raise SnapshotInvalid(f"{archive.name} is no snapshot: it does not begin with {MANIFEST}")
            manifest = Manifest.parse(content.read(), archive.name)
            yield manifest, _iterate_members_and_validate_totals(manifest, members, archive.name, report)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise SnapshotInvalid(f"{archive.name} is no snapshot, or it is damaged: {error}") from error
    except FileNotFoundError as error:
        raise EmulatorError(f"{error.filename or archive} does not exist") from error


def iterate_length_limited_lines(content: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file. Raises SnapshotInvalid for one without a reasonable length."""
    while line := content.readline(_MAX_LINE_BYTES + 1):
        if len(line) > _MAX_LINE_BYTES:
            raise SnapshotInvalid(f"a line of the archive has more than {_MAX_LINE_BYTES >> 20} MiB")
        yield line


def require_modification_time_ns(member: tarfile.TarInfo) -> int:
    """Return the time of a member in ns since 1970. Raises SnapshotInvalid."""
    match = _TIME.fullmatch(member.pax_headers.get("mtime", ""))
    if match is None:
        raise SnapshotInvalid(f"{member.name!a} of the archive has no time in nanoseconds")
    return int(match[1]) * 10**9 + int(match[2])


def _iterate_members_with_content(tar: tarfile.TarFile, archive_name: str) -> Iterator[Member]:
    while (member := tar.next()) is not None:
        if member.isdir() or member.issym():
            yield member, None
        elif member.type == tarfile.REGTYPE and not member.issparse():
            yield member, tar.extractfile(member)
        else:
            raise SnapshotInvalid(f"{archive_name} has {member.name!a}, which is no file, folder or symbolic link")
        tar.members = []  # type: ignore[attr-defined] # a stream's members cannot be read again, and would fill the memory


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
