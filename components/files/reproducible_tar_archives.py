"""Archives of files and texts: equal bytes for equal content, on every machine."""

import hashlib
import io
import posixpath
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from gzip import GzipFile
from pathlib import Path
from typing import IO

from .cached_digests import get_cached_or_compute_file_digests


@dataclass(frozen=True)
class ArchiveEntries:
    """What an archive holds by path: `files` are paths in `folder`, `texts` are the content itself."""

    folder: Path
    files: Mapping[str, str]
    texts: Mapping[str, str]

    @cached_property
    def digests_by_path(self) -> dict[str, str]:
        """The digest of each entry by its path in the archive, in the order of the paths. Raises OSError."""
        by_file = get_cached_or_compute_file_digests(self.folder, self.files.values())
        file_digests = {path: by_file[file] for path, file in self.files.items()}
        text_digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in self.texts.items()}
        return dict(sorted((file_digests | text_digests).items()))

    def write_tar(self, stream: IO[bytes] | GzipFile, top_folder: str = "") -> None:
        """Write all entries as a tar archive, below `top_folder`, without times, owners or umask; links stay links."""
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for path in self.digests_by_path:
                name = posixpath.join(top_folder, path)
                if path in self.texts:
                    add_text_file(tar, name, self.texts[path])
                else:
                    tar.inodes.clear()  # type: ignore[attr-defined]  # or files that share their bytes become links
                    tar.add(self.folder / self.files[path], name, recursive=False, filter=_strip_metadata)


def add_text_file(tar: tarfile.TarFile, name: str, text: str) -> None:
    """Add a text to an archive as a file of this name."""
    entry, content = tarfile.TarInfo(name), text.encode()
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _strip_metadata(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    if entry.isfile():
        entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry
