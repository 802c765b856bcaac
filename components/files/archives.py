"""Archives of files that are equal for equal files, on every machine."""

import tarfile
from pathlib import Path


def add_file(tar: tarfile.TarFile, file: Path, path: str) -> None:
    """Add a file to an archive under `path`, without times, owners or umask; a link stays a link."""
    tar.inodes.clear()  # type: ignore[attr-defined]  # or files that share their bytes become links
    tar.add(file, path, recursive=False, filter=_without_metadata)


def _without_metadata(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = 0
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    if entry.isfile():
        entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry
