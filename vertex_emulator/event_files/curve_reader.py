"""The curves of a folder of event files, kept between requests: each reads only what was written since the last one."""

import os
from contextlib import closing
from dataclasses import dataclass, field

from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.event_files.event_file_search import MAX_FILES, EventFile, list_event_files
from vertex_emulator.event_files.scalar_events import iterate_scalars
from vertex_emulator.event_files.tfrecord_reader import read_complete_records
from vertex_emulator.event_files.thinned_curve import ThinnedCurve
from vertex_emulator.gcs.files import BucketTree

MAX_TAGS = 500  # of one run
MAX_CURVES = 20_000  # of one log folder; 14 kB each once they have many points
MAX_POSITIONS = 2 * MAX_FILES


@dataclass
class _FilePosition:
    identity: tuple[int, int]
    offset: int = 0
    next_size: int = 1  # there is nothing to read in a file that is shorter
    problem: str = ""


@dataclass
class CurveReader:
    """The curves of the event files of a folder, as far as these were read.

    `curves` are by run (see EventFile) and tag; `curve_count` is the number of all. `has_files` and
    `has_unread_data` are as of the last read.
    """

    tree: BucketTree
    folder_uri: str
    curves: dict[str, dict[str, ThinnedCurve]] = field(default_factory=dict)
    curve_count: int = 0
    has_files: bool = False
    has_unread_data: bool = False
    _positions: dict[str, _FilePosition] = field(default_factory=dict)
    _runs_with_too_many_tags: set[str] = field(default_factory=set)
    _max_curves: int = MAX_CURVES
    _has_too_many_curves: bool = False

    def read_new_data_and_count_bytes(self, max_bytes: int, max_curves: int = MAX_CURVES) -> int:
        """Read what was written since the last time, some `max_bytes` at most, and return the number of bytes read.

        No curve is begun beyond `max_curves`. If a file was replaced or cut off, or many are gone, all is read again.
        """
        files = list_event_files(self.tree, self.folder_uri)
        self.has_files, self.has_unread_data = bool(files), False
        self._max_curves = max_curves
        if len(self._positions) > MAX_POSITIONS:
            self._reset()
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
        curves = ["too many runs and tags: those that came last are left out"] if self._has_too_many_curves else []
        return [*files, *runs, *curves]

    def _read_new_records_and_count_bytes(self, file: EventFile, max_bytes: int) -> int:
        with closing(self.tree.open(file.uri)) as opened:
            status = os.fstat(opened.fileno())
            identity = (status.st_dev, status.st_ino)
            position = self._positions.setdefault(file.uri, _FilePosition(identity))
            if position.identity != identity or status.st_size < position.offset:
                raise _FileReplaced
            if status.st_size < position.next_size:
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
        position.offset, position.next_size = batch.end_offset, batch.next_size
        self.has_unread_data |= begin < position.offset and position.next_size <= status.st_size
        return batch.read_bytes

    def _add_scalars(self, curves: dict[str, ThinnedCurve], run: str, record: bytes) -> None:
        for scalar in iterate_scalars(record):
            curve = curves.get(scalar.tag)
            if curve is None:
                if len(curves) == MAX_TAGS:
                    self._runs_with_too_many_tags.add(run)
                    continue
                if self.curve_count >= self._max_curves:
                    self._has_too_many_curves = True
                    continue
                curve = curves[scalar.tag] = ThinnedCurve()
                self.curve_count += 1
            curve.add(scalar)

    def _reset(self) -> None:
        self.curves.clear()
        self.curve_count = 0
        self._positions.clear()
        self._runs_with_too_many_tags.clear()
        self._has_too_many_curves = False


class _FileReplaced(Exception):
    """A file is another one than before, or shorter."""
