"""The encoding of points as a matrix: a row per point, a column per axis with more than one value.

A cell is the position of a value (`Domain.get_unit_position_or_index`; the index of a category), or nan if the axis is
not active.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vertex_emulator.search.parameter_domains import Categories, Integers, RealInterval, Value
from vertex_emulator.search.parameter_space import Parameter, Space, map_values_by_id
from vertex_emulator.search.surrogate_model import Matrix

# Integers with more values are treated as continuous.
_MAX_LISTED_VALUES = 1000
# Each category is a column of the model: 40 take half a second per suggestion (measured).
_MAX_ONE_HOT_COLUMNS = 40


@dataclass(frozen=True)
class PointEncoder:
    """Encodes and decodes points of `space`, and converts rows to the features of a model."""

    space: Space

    @cached_property
    def varied_parameters(self) -> list[Parameter]:
        """The columns: the parameters of the space that have more than one value."""
        return [axis for axis in self.space.distinct_parameters if axis.domain.count != 1]

    def encode_point(self, point: Mapping[str, Value]) -> list[float]:
        """Encode a trial's parameters as a row."""
        active = self.space.choose_values_by_parameter(lambda parameter: point[parameter.id])
        return [
            axis.domain.get_unit_position_or_index(active[axis]) if axis in active else np.nan
            for axis in self.varied_parameters
        ]

    def decode_row(self, row: "Mapping[int, float] | Matrix") -> dict[str, Value]:
        """Decode a row into a trial's parameters."""
        of_axis = {axis: float(row[column]) for column, axis in enumerate(self.varied_parameters)}
        return map_values_by_id(
            self.space.choose_values_by_parameter(lambda axis: axis.domain.find_nearest_value(of_axis.get(axis, 0.0)))
        )

    def convert_to_features(self, rows: Matrix) -> Matrix:
        """Convert rows to the model's features: categories one-hot encoded, inactive axes at 0.5."""
        columns = []
        for column, axis in enumerate(self.varied_parameters):
            cells = rows[:, column]
            if axis in self._one_hot_parameters:
                columns += [np.where(cells == index, 1.0, 0.0) for index in range(axis.domain.count or 0)]
                continue
            if isinstance(axis.domain, Categories):
                cells = cells / (axis.domain.count - 1)
            columns.append(np.where(np.isnan(cells), 0.5, cells))
        return np.column_stack(columns)

    @cached_property
    def positions_by_discrete_column(self) -> dict[int, Matrix]:
        """The positions of each column that is not continuous."""
        return {
            column: np.array([axis.domain.get_unit_position_or_index(value) for value in axis.domain])
            for column, axis in enumerate(self.varied_parameters)
            if not isinstance(axis.domain, RealInterval)
            and not (isinstance(axis.domain, Integers) and axis.domain.count > _MAX_LISTED_VALUES)
        }

    @cached_property
    def _one_hot_parameters(self) -> set[Parameter]:
        """The categorical axes that are one-hot encoded: the shortest, as many as the column limit allows."""
        one_hot, dimensions = set(), 0
        categorical = [axis for axis in self.varied_parameters if isinstance(axis.domain, Categories)]
        for axis in sorted(categorical, key=lambda axis: axis.domain.count or 0):
            dimensions += axis.domain.count or 0
            if dimensions <= _MAX_ONE_HOT_COLUMNS:
                one_hot.add(axis)
        return one_hot

    def copy_with_nan_in_inactive_cells(self, rows: Matrix) -> Matrix:
        """Return the rows with nan where the values of other axes make an axis inactive."""
        active = {axis: np.full(len(rows), axis in self.space.roots) for axis in self.space.distinct_parameters}
        columns = {axis: column for column, axis in enumerate(self.varied_parameters)}
        for parent, values, child in self.space.walk_parent_values_and_child_triples():
            if parent in columns:
                positions = np.array([parent.domain.get_unit_position_or_index(value) for value in values])
                cells = rows[:, columns[parent]]
                chosen = (np.abs(cells[:, None] - positions[None, :]) < 1e-9).any(axis=1)
            else:
                chosen = np.full(len(rows), next(iter(parent.domain)) in values)
            active[child] = active[child] | (active[parent] & chosen)
        return np.where(np.column_stack([active[axis] for axis in self.varied_parameters]), rows, np.nan)
