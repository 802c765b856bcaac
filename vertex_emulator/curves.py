"""The curves of scalars that jobs write to event files, thinned, and kept between requests."""

from __future__ import annotations

import math
import os
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from io import FileIO
from threading import Lock
from typing import Any

from vertex_api import events
from vertex_api.events import Records, Scalar
from vertex_emulator import event_files
from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.event_files import MAX_FILES, EventFile
from vertex_emulator.gcs.files import BucketTree

MAX_READERS = 128
MAX_BYTES_PER_READ = 2_000_000  # some 45,000 points, 0.3 s
MAX_TAGS = 500  # of one run
MAX_CURVES = 20_000  # of one log folder; 14 kB each once they have many points
MAX_POSITIONS = 2 * MAX_FILES
MAX_BUCKETS = 300  # two points each, which is as much as a plot has room for


class CurveCache:
    """Readers by the URIs of their folders, for one request at a time.

    All together hold `MAX_CURVES` at most, of which each takes 14 kB once it has many points.
    """

    def __init__(self, tree: BucketTree) -> None:
        self._tree = tree
        self._readers: OrderedDict[str, CurveReader] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def update(self, folder_uris: Sequence[str]) -> Iterator[list[CurveReader]]:
        """Read what is new in at most `MAX_READERS` folders, and yield their readers, to be used inside the block.

        All together read `MAX_BYTES_PER_READ` at most; `has_unread_data` of a reader says whether there is more.
        """
        with self._lock:
            remaining = MAX_BYTES_PER_READ
            readers = [self._reader(uri) for uri in folder_uris]
            for reader in readers:
                max_curves = reader.curve_count + MAX_CURVES - sum(each.curve_count for each in readers)
                remaining -= reader.update(remaining, max_curves)
            while len(self._readers) > MAX_READERS or self._is_full(len(readers)):
                self._readers.popitem(last=False)
            yield readers

    def _is_full(self, used: int) -> bool:
        """Return whether there are others than the `used` latest readers, and all together hold too many curves."""
        return len(self._readers) > used and sum(each.curve_count for each in self._readers.values()) > MAX_CURVES

    def _reader(self, folder_uri: str) -> CurveReader:
        reader = self._readers.setdefault(folder_uri, CurveReader(self._tree, folder_uri))
        self._readers.move_to_end(folder_uri)
        return reader


@dataclass
class _Position:
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
    curves: dict[str, dict[str, Curve]] = field(default_factory=dict)
    curve_count: int = 0
    has_files: bool = False
    has_unread_data: bool = False
    _positions: dict[str, _Position] = field(default_factory=dict)
    _crowded_runs: set[str] = field(default_factory=set)
    _max_curves: int = MAX_CURVES
    _is_crowded: bool = False

    def update(self, max_bytes: int, max_curves: int = MAX_CURVES) -> int:
        """Read what was written since the last time, some `max_bytes` at most, and return the number of bytes read.

        No curve is begun beyond `max_curves`. If a file was replaced or cut off, or many are gone, all is read again.
        """
        files = event_files.find(self.tree, self.folder_uri)
        self.has_files, self.has_unread_data = bool(files), False
        self._max_curves = max_curves
        if len(self._positions) > MAX_POSITIONS:
            self._reset()
        total = 0
        for file in files:
            try:
                total += self._read(file, max_bytes - total)
            except _FileReplaced:
                self._reset()
                self.has_unread_data = True
                return total
            except (OSError, InvalidBucketUri) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is a link"
                self._positions.setdefault(file.uri, _Position((0, 0))).problem = f"cannot be read: {reason}"
        return total

    @property
    def problems(self) -> list[str]:
        """What could not be read, a line each."""
        files = [f"{uri} {position.problem}" for uri, position in self._positions.items() if position.problem]
        runs = [f"{run or self.folder_uri} has more than {MAX_TAGS} tags" for run in self._crowded_runs]
        curves = ["too many runs and tags: those that came last are left out"] if self._is_crowded else []
        return [*files, *runs, *curves]

    def _read(self, file: EventFile, max_bytes: int) -> int:
        with closing(self.tree.open(file.uri)) as opened:
            status = os.fstat(opened.fileno())
            identity = (status.st_dev, status.st_ino)
            position = self._positions.setdefault(file.uri, _Position(identity))
            if position.identity != identity or status.st_size < position.offset:
                raise _FileReplaced
            if status.st_size < position.next_size:
                return 0
            if max_bytes <= 0:
                self.has_unread_data = True
                return 0
            begin = position.offset
            batch = read_records(opened, begin, max_bytes)
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

    def _add_scalars(self, curves: dict[str, Curve], run: str, record: bytes) -> None:
        for scalar in events.scalars(record):
            curve = curves.get(scalar.tag)
            if curve is None:
                if len(curves) == MAX_TAGS:
                    self._crowded_runs.add(run)
                    continue
                if self.curve_count >= self._max_curves:
                    self._is_crowded = True
                    continue
                curve = curves[scalar.tag] = Curve()
                self.curve_count += 1
            curve.add(scalar)

    def _reset(self) -> None:
        self.curves.clear()
        self.curve_count = 0
        self._positions.clear()
        self._crowded_runs.clear()
        self._is_crowded = False


class _FileReplaced(Exception):
    """A file is another one than before, or shorter."""


class Curve:
    """Of every so many points in a row, the lowest and the highest; and the first and the last of all.

    When there are too many buckets, each two become one of twice as many points, so adding takes constant time on
    average. Values that are not finite are counted and not kept.
    """

    def __init__(self) -> None:
        self.count = 0
        self._not_finite_count = 0
        self._not_finite_step = 0
        self._first: Scalar | None = None
        self._last: Scalar | None = None
        self._points_per_bucket = 1
        self._points_in_last_bucket = 1
        # Two entries for each bucket: its lowest point, and its highest.
        self._steps, self._times, self._values = array("d"), array("d"), array("d")

    def add(self, point: Scalar) -> None:
        """Add a point."""
        if not math.isfinite(point.value):
            self._not_finite_step = self._not_finite_step if self._not_finite_count else point.step
            self._not_finite_count += 1
            return
        self.count += 1
        self._first = self._first or point
        self._last = point
        if not self._values or self._points_in_last_bucket == self._points_per_bucket:
            self._begin_bucket(point)
            return
        self._points_in_last_bucket += 1
        if point.value < self._values[-2]:
            self._replace_point(-2, point)
        if point.value > self._values[-1]:
            self._replace_point(-1, point)

    def to_json(self) -> dict[str, Any]:
        """Return `count` (of all finite points), `steps` in order, `seconds` since the first point, `values`, and
        `not_finite`: `count`, and the `step` of the first.
        """
        kept = set(zip(self._steps, self._times, self._values, strict=True))
        kept |= {(float(point.step), point.wall_time, point.value) for point in (self._first, self._last) if point}
        points = sorted(kept)
        begin = self._first.wall_time if self._first else 0.0
        return {
            "count": self.count,
            "steps": [int(step) for step, _, _ in points],
            "seconds": [round(time - begin, 3) for _, time, _ in points],
            "values": [value for _, _, value in points],
            "not_finite": {"count": self._not_finite_count, "step": self._not_finite_step},
        }

    def _begin_bucket(self, point: Scalar) -> None:
        if len(self._values) == 2 * MAX_BUCKETS:
            self._merge_buckets()
        for column, number in self._columns(point):
            column.extend((number, number))
        self._points_in_last_bucket = 1

    def _merge_buckets(self) -> None:
        values = self._values
        pairs = range(0, len(values), 4)
        kept = [
            at
            for i in pairs
            for at in (min(i, i + 2, key=values.__getitem__), max(i + 1, i + 3, key=values.__getitem__))
        ]
        self._steps, self._times, self._values = (
            array("d", [column[at] for at in kept]) for column in (self._steps, self._times, self._values)
        )
        self._points_per_bucket *= 2

    def _replace_point(self, index: int, point: Scalar) -> None:
        for column, number in self._columns(point):
            column[index] = number

    def _columns(self, point: Scalar) -> tuple[tuple[array[float], float], ...]:
        return (self._steps, float(point.step)), (self._times, point.wall_time), (self._values, point.value)


def read_records(file: FileIO, offset: int, max_bytes: int) -> Records:
    """Read the complete records from an offset on, as far as `max_bytes` go, but one at least. Raises OSError."""
    size = os.fstat(file.fileno()).st_size
    data = os.pread(file.fileno(), max(max_bytes, events.MAX_RECORD_BYTES + events.OVERHEAD_BYTES), offset)
    return events.parse(data, offset, size)
