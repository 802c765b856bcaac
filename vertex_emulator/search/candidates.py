"""Many points of a space at once, as a matrix: one row per point, one column per axis that has a choice.

A cell is the position of a value (`Domain.position`; the index of a category), nan where the axis is not active.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from vertex_emulator.search.domain import Categories, Integers, Interval, Value
from vertex_emulator.search.space import Parameter, Space, by_id

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

# More values than this are a continuum.
_LISTED_POSITIONS = 1000
# Each category is a dimension to the model: 40 take half a second a suggestion (measured).
_CATEGORY_DIMENSIONS = 40
# How often a step that moves a listed value goes to a neighbour, however small the step is.
_NEIGHBOUR = 0.5


@dataclass(frozen=True)
class Candidates:
    """Points of `space`, made and read in bulk."""

    space: Space

    @cached_property
    def axes(self) -> list[Parameter]:
        """The columns: the parameters of the space that have more than one value."""
        return [axis for axis in self.space.axes if axis.domain.count != 1]

    def row(self, point: Mapping[str, Value]) -> list[float]:
        """A trial's parameters as a row."""
        active = self.space.choose(lambda parameter: point[parameter.id])
        return [axis.domain.position(active[axis]) if axis in active else float("nan") for axis in self.axes]

    def point(self, row: "Mapping[int, float] | Matrix") -> dict[str, Value]:
        """A row as a trial's parameters."""
        of_axis = {axis: float(row[column]) for column, axis in enumerate(self.axes)}
        return by_id(self.space.choose(lambda parameter: parameter.domain.nearest(of_axis.get(parameter, 0.0))))

    def draw(self, count: int, random: "np.random.Generator") -> "Matrix":
        """Random points, uniform on the scales and among listed values."""
        return self._only_active(self._drawn(count, random))

    def near(self, rows: "Matrix", widths: "Matrix", random: "np.random.Generator") -> "Matrix":
        """Each row moved on about half of its axes (one at least) by steps of the row's width; some axes jump."""
        import numpy as np

        count, columns = rows.shape
        moves = random.random((count, columns)) < max(0.5, 1 / columns)
        moves[np.arange(count), random.integers(columns, size=count)] = True
        fresh = self._drawn(count, random)
        start = np.where(np.isnan(rows), 0.5, rows)
        moved = np.clip(start + widths[:, None] * random.standard_normal(rows.shape), 0, 1)
        for column, listed in self._listed.items():
            if isinstance(self.axes[column].domain, Categories):
                keeps = random.random(count) < 1 - np.minimum(widths * 2, 0.3)
                drawn = listed[random.integers(len(listed), size=count)]
                moved[:, column] = np.where(keeps, start[:, column], drawn)
                continue
            at = np.abs(listed[None, :] - start[:, column, None]).argmin(axis=1)
            aside = np.clip(at + random.choice([-1, 1], size=count), 0, len(listed) - 1)
            nearest = np.abs(listed[None, :] - moved[:, column, None]).argmin(axis=1)
            moved[:, column] = listed[np.where(random.random(count) < _NEIGHBOUR, aside, nearest)]
        # An axis that was not active has no place to move from.
        moved = np.where(np.isnan(rows), fresh, moved)
        return self._only_active(np.where(moves | np.isnan(rows), moved, rows))

    def features(self, rows: "Matrix") -> "Matrix":
        """Rows as the model sees them: categories spread over a column each, an inactive axis in the middle."""
        import numpy as np

        columns = []
        for column, axis in enumerate(self.axes):
            cells = rows[:, column]
            if axis in self._spread:
                columns += [np.where(cells == index, 1.0, 0.0) for index in range(len(self._listed[column]))]
                continue
            if isinstance(axis.domain, Categories):
                cells = cells / (axis.domain.count - 1)
            columns.append(np.where(np.isnan(cells), 0.5, cells))
        return np.column_stack(columns)

    @cached_property
    def _listed(self) -> "dict[int, Matrix]":
        """The positions of each column that is no continuum."""
        import numpy as np

        return {
            column: np.array([axis.domain.position(value) for value in axis.domain])
            for column, axis in enumerate(self.axes)
            if not isinstance(axis.domain, Interval)
            and not (isinstance(axis.domain, Integers) and axis.domain.count > _LISTED_POSITIONS)
        }

    @cached_property
    def _spread(self) -> set[Parameter]:
        """The categorical axes that the model can afford to see without an order, the short ones first."""
        spread, dimensions = set(), 0
        categorical = [axis for axis in self.axes if isinstance(axis.domain, Categories)]
        for axis in sorted(categorical, key=lambda axis: axis.domain.count or 0):
            dimensions += axis.domain.count or 0
            if dimensions <= _CATEGORY_DIMENSIONS:
                spread.add(axis)
        return spread

    def _drawn(self, count: int, random: "np.random.Generator") -> "Matrix":
        """Values for every axis, active or not."""
        rows = random.random((count, len(self.axes)))
        for column, listed in self._listed.items():
            rows[:, column] = listed[(rows[:, column] * len(listed)).astype(int)]
        return rows

    def _only_active(self, rows: "Matrix") -> "Matrix":
        """The rows with nan where an axis is not active under the values of the others."""
        import numpy as np

        active = {axis: np.full(len(rows), axis in self.space.roots) for axis in self.space.axes}
        columns = {axis: column for column, axis in enumerate(self.axes)}
        for parent, values, child in self.space.conditions:
            if parent in columns:
                positions = np.array([parent.domain.position(value) for value in values])
                cells = rows[:, columns[parent]]
                chosen = (np.abs(cells[:, None] - positions[None, :]) < 1e-9).any(axis=1)
            else:
                chosen = np.full(len(rows), next(iter(parent.domain)) in values)
            active[child] = active[child] | (active[parent] & chosen)
        return np.where(np.column_stack([active[axis] for axis in self.axes]), rows, np.nan)
