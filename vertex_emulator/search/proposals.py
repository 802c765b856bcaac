"""Points as rows of a matrix, and the search for the row with the highest score: many start points, then ever smaller
steps from the best ones.

A row is a point, a column an axis with more than one value. A cell is the position of a value (`Domain.position`; the
index of a category), or nan if the axis is not active.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np
from numpy.random import Generator

from vertex_emulator.search.space import Categories, Integers, Parameter, Point, RealInterval, Space, Value
from vertex_emulator.search.surrogate import Acquisition, Matrix

# Integers with more values are treated as continuous.
_MAX_LISTED_VALUES = 1000
# Each category is a column of the model: 40 take half a second per suggestion (measured).
_MAX_ONE_HOT_COLUMNS = 40
_POINTS = 1000
# Step widths as shares of an axis, drawn log-uniformly between these bounds.
_GLOBAL_WIDTHS, _LOCAL_WIDTHS = (0.0005, 0.5), (0.001, 0.1)
# Each round copies the best points, moves the copies, keeps the best of all, and halves the steps.
_KEPT, _COPIES, _ROUNDS, _FIRST_STEP = 8, 10, 14, 0.1
# The probability that a step moves a listed value to its neighbour, however small the step is.
_NEIGHBOUR_PROBABILITY = 0.5


@dataclass(frozen=True)
class Encoder:
    """Encodes and decodes points of `space`, and converts rows to the features of a model."""

    space: Space

    @cached_property
    def columns(self) -> list[Parameter]:
        """The parameters of the space that have more than one value."""
        return [axis for axis in self.space.axes if axis.domain.count != 1]

    def encode(self, point: Mapping[str, Value]) -> list[float]:
        """Encode a trial's parameters as a row."""
        active = self.space.assign(lambda parameter: point[parameter.id])
        return [axis.domain.position(active[axis]) if axis in active else np.nan for axis in self.columns]

    def decode(self, row: "Mapping[int, float] | Matrix") -> Point:
        """Decode a row into a trial's parameters."""
        cells = {axis: float(row[column]) for column, axis in enumerate(self.columns)}
        return self.space.point(lambda axis: axis.domain.nearest(cells.get(axis, 0.0)))

    def features(self, rows: Matrix) -> Matrix:
        """Convert rows to the model's features: categories one-hot encoded, inactive axes at 0.5."""
        columns = []
        for column, axis in enumerate(self.columns):
            cells = rows[:, column]
            if axis in self._one_hot:
                columns += [np.where(cells == index, 1.0, 0.0) for index in range(axis.domain.count or 0)]
                continue
            if isinstance(axis.domain, Categories):
                cells = cells / (axis.domain.count - 1)
            columns.append(np.where(np.isnan(cells), 0.5, cells))
        return np.column_stack(columns)

    @cached_property
    def _one_hot(self) -> set[Parameter]:
        """The categorical axes that are one-hot encoded: the shortest, as many as the column limit allows."""
        one_hot, dimensions = set(), 0
        categorical = [axis for axis in self.columns if isinstance(axis.domain, Categories)]
        for axis in sorted(categorical, key=lambda axis: axis.domain.count or 0):
            dimensions += axis.domain.count or 0
            if dimensions <= _MAX_ONE_HOT_COLUMNS:
                one_hot.add(axis)
        return one_hot

    @cached_property
    def listed(self) -> dict[int, Matrix]:
        """The positions of each column that is not continuous."""
        return {
            column: np.array([axis.domain.position(value) for value in axis.domain])
            for column, axis in enumerate(self.columns)
            if not isinstance(axis.domain, RealInterval)
            and not (isinstance(axis.domain, Integers) and axis.domain.count > _MAX_LISTED_VALUES)
        }

    def mask(self, rows: Matrix) -> Matrix:
        """The rows with nan where the values of other axes make an axis inactive."""
        active = {axis: np.full(len(rows), axis in self.space.roots) for axis in self.space.axes}
        columns = {axis: column for column, axis in enumerate(self.columns)}
        for parent, values, child in self.space.conditions():
            if parent in columns:
                positions = np.array([parent.domain.position(value) for value in values])
                cells = rows[:, columns[parent]]
                chosen = (np.abs(cells[:, None] - positions[None, :]) < 1e-9).any(axis=1)
            else:
                chosen = np.full(len(rows), next(iter(parent.domain)) in values)
            active[child] = active[child] | (active[parent] & chosen)
        return np.where(np.column_stack([active[axis] for axis in self.columns]), rows, np.nan)


def sample_globally(encoder: Encoder, ranked: Matrix, random: Generator) -> Matrix:
    """Sample points from the whole space, and as many around the best trials (`ranked`, the best first)."""
    everywhere = draw(encoder, _POINTS, random)
    return np.vstack([everywhere, _draw_around(encoder, ranked, _GLOBAL_WIDTHS, random)])


def sample_locally(encoder: Encoder, ranked: Matrix, random: Generator) -> Matrix:
    """Sample points around the best trial only."""
    return _draw_around(encoder, ranked[:1], _LOCAL_WIDTHS, random)


def _draw_around(encoder: Encoder, rows: Matrix, bounds: tuple[float, float], random: Generator) -> Matrix:
    starts = rows[random.integers(len(rows), size=_POINTS)]
    low, high = map(log, bounds)
    return move(encoder, starts, np.exp(random.uniform(low, high, size=_POINTS)), random)


def refine(encoder: Encoder, acquisition: Acquisition, points: Matrix, random: Generator) -> Matrix:
    """Improve `points` by local steps, and return the result with the highest score first."""
    scores = acquisition.score(encoder.features(points))
    for step in range(_ROUNDS):
        best = np.argsort(-scores, kind="stable")[:_KEPT]
        widths = np.full(len(best) * _COPIES, _FIRST_STEP / 2**step)
        moved = move(encoder, np.repeat(points[best], _COPIES, axis=0), widths, random)
        points = np.vstack([points[best], moved])
        scores = np.concatenate([scores[best], acquisition.score(encoder.features(moved))])
    return points[np.argsort(-scores, kind="stable")]


def draw(encoder: Encoder, count: int, random: Generator) -> Matrix:
    """Draw `count` random rows, uniform on the scales and among listed values."""
    return encoder.mask(_draw_unmasked(encoder, count, random))


def move(encoder: Encoder, rows: Matrix, widths: Matrix, random: Generator) -> Matrix:
    """Move each row on about half of its axes, at least one, by normal steps of the row's width."""
    count, columns = rows.shape
    moves = random.random((count, columns)) < max(0.5, 1 / columns)
    moves[np.arange(count), random.integers(columns, size=count)] = True
    fresh = _draw_unmasked(encoder, count, random)
    start = np.where(np.isnan(rows), 0.5, rows)
    moved = np.clip(start + widths[:, None] * random.standard_normal(rows.shape), 0, 1)
    for column, listed in encoder.listed.items():
        if isinstance(encoder.columns[column].domain, Categories):
            keeps = random.random(count) < 1 - np.minimum(widths * 2, 0.3)
            drawn = listed[random.integers(len(listed), size=count)]
            moved[:, column] = np.where(keeps, start[:, column], drawn)
            continue
        at = np.abs(listed[None, :] - start[:, column, None]).argmin(axis=1)
        aside = np.clip(at + random.choice([-1, 1], size=count), 0, len(listed) - 1)
        nearest = np.abs(listed[None, :] - moved[:, column, None]).argmin(axis=1)
        moved[:, column] = listed[np.where(random.random(count) < _NEIGHBOUR_PROBABILITY, aside, nearest)]
    # An axis that was not active has no position to move from.
    moved = np.where(np.isnan(rows), fresh, moved)
    return encoder.mask(np.where(moves | np.isnan(rows), moved, rows))


def _draw_unmasked(encoder: Encoder, count: int, random: Generator) -> Matrix:
    """Draw a cell for every axis, active or not."""
    rows = random.random((count, len(encoder.columns)))
    for column, listed in encoder.listed.items():
        rows[:, column] = listed[(rows[:, column] * len(listed)).astype(int)]
    return rows
