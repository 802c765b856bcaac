"""Writing an archive: its members in their order, to a file that is there only once it is complete."""

import gzip
import os
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

from vertex_emulator.snapshots.archive_format import MANIFEST, Manifest
from vertex_emulator.snapshots.progress import Progress, ReportProgress


@dataclass(frozen=True)
class ArchiveEntry:
    """A file of an archive; a symbolic link if it has a `link_target`, else a folder if it has no `open_file`.

    `nanoseconds` is the time of a file since 1970.
    """

    name: str
    size: int = 0
    open_file: Callable[[], IO[bytes]] | None = None
    nanoseconds: int = 0
    link_target: str | None = None


def write_manifest_and_entries_atomically(
    archive: Path, entries: Sequence[ArchiveEntry], report: ReportProgress
) -> None:
    """Write a manifest and the entries to a file for its owner only. Raises OSError, and leaves no part of a file."""
    content = Manifest(len(entries), sum(entry.size for entry in entries))
    manifest = content.to_json_bytes()
    progress = Progress(report, "writing the archive", content.files, content.size)
    partial = archive.with_name(f"{archive.name}.partial")
    try:
        number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with (
            os.fdopen(number, "wb") as file,
            gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            _add_entry(tar, ArchiveEntry(MANIFEST, len(manifest), lambda: BytesIO(manifest)), None)
            for entry in entries:
                _add_entry(tar, entry, progress)
        partial.replace(archive)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _add_entry(tar: tarfile.TarFile, entry: ArchiveEntry, progress: Progress | None) -> None:
    member = tarfile.TarInfo(entry.name)
    member.mode, member.mtime = 0o644, entry.nanoseconds // 10**9
    if progress is not None:
        progress.add_member_and_report()
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
            tar.addfile(member, file if progress is None else progress.wrap_to_count_reads(file))
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), entry.name) from error
