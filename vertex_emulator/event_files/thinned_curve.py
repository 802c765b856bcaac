"""A curve of any number of points in bounded memory, with all its peaks."""

import math
from array import array
from typing import Any

from vertex_emulator.event_files.scalar_events import Scalar

MAX_BUCKETS = 300  # two points each, which is as much as a plot has room for


class ThinnedCurve:
    """Of every so many points in a row, the lowest and the highest; and the first and the last of all.

    When there are too many buckets, each two become one of twice as many points, so adding takes constant time on
    average. Values that are not finite are counted and not kept.
    """

    def __init__(self) -> None:
        self.count = 0
        self._not_finite_count = 0
        self._first_not_finite_step = 0
        self._first: Scalar | None = None
        self._last: Scalar | None = None
        self._points_per_bucket = 1
        self._points_in_last_bucket = 1
        # Two entries for each bucket: its lowest point, and its highest.
        self._steps, self._times, self._values = array("d"), array("d"), array("d")

    def add(self, point: Scalar) -> None:
        """Add a point."""
        if not math.isfinite(point.value):
            self._first_not_finite_step = self._first_not_finite_step if self._not_finite_count else point.step
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

    def serialize(self) -> dict[str, Any]:
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
            "not_finite": {"count": self._not_finite_count, "step": self._first_not_finite_step},
        }

    def _begin_bucket(self, point: Scalar) -> None:
        if len(self._values) == 2 * MAX_BUCKETS:
            self._merge_bucket_pairs()
        for column, number in self._pair_columns_with_numbers(point):
            column.extend((number, number))
        self._points_in_last_bucket = 1

    def _merge_bucket_pairs(self) -> None:
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
        for column, number in self._pair_columns_with_numbers(point):
            column[index] = number

    def _pair_columns_with_numbers(self, point: Scalar) -> "tuple[tuple[array[float], float], ...]":
        return (self._steps, float(point.step)), (self._times, point.wall_time), (self._values, point.value)
