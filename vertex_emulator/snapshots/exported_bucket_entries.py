"""What buckets have, as entries of an archive: folders, objects, and links that lead to their own bucket."""

import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.files import ROOT, BucketTree, NotRegularFile, is_utf8, split_uri
from vertex_emulator.snapshots.archive_format import BUCKETS_PREFIX, is_link_within_bucket
from vertex_emulator.snapshots.archive_writing import ArchiveEntry
from vertex_emulator.snapshots.progress import ReportProgress


@dataclass
class BucketArchiveEntries:
    """The entries of all buckets; what has none is in `omitted` afterwards, each with its URI and the reason."""

    tree: BucketTree
    report: ReportProgress
    omitted: list[str] = field(default_factory=list)
    _found: int = 0

    def iterate_entries_and_record_omissions(self) -> Iterator[ArchiveEntry]:
        """Yield the entries, those of a folder in the order of their names. Raises OSError."""
        yield from self._iterate_entries_of_folder("")

    def _iterate_entries_of_folder(self, path: str) -> Iterator[ArchiveEntry]:
        with self.tree.scan(ROOT + path) as scan:
            found = sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in scan)
        for name, status in found:
            inner = f"{path}/{name}" if path else name
            self._found += 1
            self.report("listing buckets", self._found, 0)
            try:
                is_bucket = len(split_uri(ROOT + inner)) == 1
            except InvalidBucketUri:
                self._record_omission(inner, "no bucket or object can have this name")
                continue
            if stat.S_ISDIR(status.st_mode):
                yield ArchiveEntry(BUCKETS_PREFIX + inner)
                yield from self._iterate_entries_of_folder(inner)
            elif stat.S_ISLNK(status.st_mode):
                yield from self._iterate_link_entry_or_omit(inner)
            elif is_bucket or not stat.S_ISREG(status.st_mode):
                self._record_omission(
                    inner, "it is in no bucket" if is_bucket else str(NotRegularFile(status.st_mode, "").strerror)
                )
            else:
                yield ArchiveEntry(
                    BUCKETS_PREFIX + inner,
                    status.st_size,
                    lambda uri=ROOT + inner: self.tree.open(uri),  # type: ignore[misc]
                    status.st_mtime_ns,
                )

    def _iterate_link_entry_or_omit(self, path: str) -> Iterator[ArchiveEntry]:
        target = _make_relative_if_below_own_bucket(path, self.tree.readlink(ROOT + path))
        if is_utf8(target) and is_link_within_bucket(path.partition("/")[2], target):
            yield ArchiveEntry(BUCKETS_PREFIX + path, link_target=target)
        else:
            self._record_omission(path, f"a link to {target!a}, out of its bucket")

    def _record_omission(self, path: str, reason: str) -> None:
        self.omitted.append(f"{ROOT + path!a} ({reason})")


def _make_relative_if_below_own_bucket(path: str, target: str) -> str:
    """Return where a link leads, seen from its folder if it is the path of a file of its own bucket in containers."""
    if not f"{target}/".startswith(f"/gcs/{path.partition('/')[0]}/") or ".." in target.split("/"):
        return target
    return posixpath.relpath(target.removeprefix("/gcs"), posixpath.dirname(f"/{path}"))
