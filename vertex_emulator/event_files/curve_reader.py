"""The curves of a folder of event files, kept between requests: each reads only what was written since the last one."""

import os
from contextlib import closing
from dataclasses import dataclass, field

from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.event_files.event_file_search import EventFile, list_event_files
from vertex_emulator.event_files.scalar_events import iterate_scalars
from vertex_emulator.event_files.tfrecord_reader import read_complete_records
from vertex_emulator.event_files.thinned_curve import ThinnedCurve
from vertex_emulator.gcs.symlink_safe_bucket_files import BucketFileTree

MAX_TAGS = 500  # of one run


@dataclass
class _FilePosition:
    identity: tuple[int, int]
    offset: int = 0
    problem: str = ""


@dataclass
class CurveReader:
    """The curves of the event files of a folder, as far as these were read.

    `curves` are by run (see EventFile) and tag; `has_files` and `has_unread_data` are as of the last read.
    """

    tree: BucketFileTree
    folder_uri: str
    curves: dict[str, dict[str, ThinnedCurve]] = field(default_factory=dict)
    has_files: bool = False
    has_unread_data: bool = False
    _positions: dict[str, _FilePosition] = field(default_factory=dict)
    _runs_with_too_many_tags: set[str] = field(default_factory=set)

    def read_new_data_and_count_bytes(self, max_bytes: int) -> int:
        """Read what was written since the last time, some `max_bytes` at most, and return the number of bytes read.

        If a file was replaced or cut off, all is read again.
        """
        files = list_event_files(self.tree, self.folder_uri)
        self.has_files, self.has_unread_data = bool(files), False
        total = 0
        for file in files:
            try:
                total += self._read_new_records_and_count_bytes(file, max_bytes - total)
            except _FileReplaced:
                self._reset()
                self.has_unread_data = True
                return total
            except (OSError, InvalidBucketUri) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is a link"
                self._positions.setdefault(file.uri, _FilePosition((0, 0))).problem = f"cannot be read: {reason}"
        return total

    @property
    def problems(self) -> list[str]:
        """What could not be read, a line each."""
        files = [f"{uri} {position.problem}" for uri, position in self._positions.items() if position.problem]
        runs = [f"{run or self.folder_uri} has more than {MAX_TAGS} tags" for run in self._runs_with_too_many_tags]
        return [*files, *runs]

    def _read_new_records_and_count_bytes(self, file: EventFile, max_bytes: int) -> int:
        with closing(self.tree.open_regular_file(file.uri)) as opened:
            status = os.fstat(opened.fileno())
            identity = (status.st_dev, status.st_ino)
            position = self._positions.setdefault(file.uri, _FilePosition(identity))
            if position.identity != identity or status.st_size < position.offset:
                raise _FileReplaced
            if status.st_size == position.offset:
                return 0
            if max_bytes <= 0:
                self.has_unread_data = True
                return 0
            begin = position.offset
            batch = read_complete_records(opened, begin, max_bytes)
        curves = self.curves.setdefault(file.run, {})
        position.problem = batch.problem
        for record in batch.records:
            try:
                self._add_scalars(curves, file.run, record)
            except ValueError:
                position.problem = "has records that are no events"
        position.offset = batch.end_offset
        self.has_unread_data |= begin < position.offset < status.st_size
        return position.offset - begin

    def _add_scalars(self, curves: dict[str, ThinnedCurve], run: str, record: bytes) -> None:
        for scalar in iterate_scalars(record):
            curve = curves.get(scalar.tag)
            if curve is None:
                if len(curves) == MAX_TAGS:
                    self._runs_with_too_many_tags.add(run)
                    continue
                curve = curves[scalar.tag] = ThinnedCurve()
            curve.add(scalar)

    def _reset(self) -> None:
        self.curves.clear()
        self._positions.clear()
        self._runs_with_too_many_tags.clear()


class _FileReplaced(Exception):
    """A file is another one than before, or shorter."""
