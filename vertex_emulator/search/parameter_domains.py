"""The values that a parameter may take: an interval, integers, listed numbers or categories.

All domains have the same methods. `count` is the number of values, None if continuous. `get_value_at_quantile` maps a
quantile (0 to 1) to a value, so that uniform quantiles give the scale's density. `get_unit_position_or_index` is the
coordinate of a value in the model and `find_nearest_value` the value closest to a coordinate. Iteration yields the
values in order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from vertex_api.types import StudySpecParameterSpec
from vertex_emulator.search.parameter_scales import Scale, scale_from_unit, scale_to_unit

Value = float | int | str
ListedValue = TypeVar("ListedValue", float, str)


@dataclass(frozen=True)
class RealInterval:
    """DOUBLE: every number between two bounds, which belong to it."""

    lower: float
    upper: float
    scale: Scale

    @property
    def count(self) -> int | None:
        return 1 if self.lower == self.upper else None

    def get_value_at_quantile(self, quantile: float) -> float:
        return scale_from_unit(quantile, self.lower, self.upper, self.scale)

    def get_unit_position_or_index(self, value: Value) -> float:
        return scale_to_unit(float(value), self.lower, self.upper, self.scale)

    find_nearest_value = get_value_at_quantile

    def __iter__(self) -> Iterator[float]:
        if self.count is None:
            raise ValueError(f"the numbers from {self.lower} to {self.upper} cannot be listed")
        return iter((self.lower,))


@dataclass(frozen=True)
class Integers:
    """INTEGER: every whole number between two bounds, which belong to it."""

    lower: int
    upper: int
    scale: Scale

    @property
    def count(self) -> int:
        return self.upper - self.lower + 1

    def get_value_at_quantile(self, quantile: float) -> int:
        # Half a step more on both sides, or the two ends would be half as likely as their neighbours.
        return self._round_within_bounds(scale_from_unit(quantile, self.lower - 0.5, self.upper + 0.5, self.scale))

    def get_unit_position_or_index(self, value: Value) -> float:
        return scale_to_unit(float(value), self.lower, self.upper, self.scale)

    def find_nearest_value(self, position: float) -> int:
        return self._round_within_bounds(scale_from_unit(position, self.lower, self.upper, self.scale))

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lower, self.upper + 1))

    def _round_within_bounds(self, value: float) -> int:
        return min(max(round(value), self.lower), self.upper)


@dataclass(frozen=True)
class _ListedValues(Generic[ListedValue]):
    values: tuple[ListedValue, ...]

    @property
    def count(self) -> int:
        return len(self.values)

    def get_value_at_quantile(self, quantile: float) -> ListedValue:
        return self.values[min(int(quantile * self.count), self.count - 1)]

    def __iter__(self) -> Iterator[ListedValue]:
        return iter(self.values)


@dataclass(frozen=True)
class DiscreteNumbers(_ListedValues[float]):
    """DISCRETE: a list of numbers. The scale says how far apart they are, and all are equally likely."""

    scale: Scale

    def get_unit_position_or_index(self, value: Value) -> float:
        return scale_to_unit(float(value), self.values[0], self.values[-1], self.scale)

    def find_nearest_value(self, position: float) -> float:
        return min(self.values, key=lambda value: abs(self.get_unit_position_or_index(value) - position))


@dataclass(frozen=True)
class Categories(_ListedValues[str]):
    """CATEGORICAL: a list of strings without an order. A position is an index into it."""

    def get_unit_position_or_index(self, value: Value) -> float:
        return float(self.values.index(str(value)))

    def find_nearest_value(self, position: float) -> str:
        return self.values[min(max(round(position), 0), self.count - 1)]


Domain = RealInterval | Integers | DiscreteNumbers | Categories


def build_domain(spec: StudySpecParameterSpec) -> Domain:
    """Build the domain of a canonical parameter spec; a missing minValue or maxValue is 0, a missing scale linear."""
    scale: Scale = spec.get("scaleType", "SCALE_TYPE_UNSPECIFIED")
    if "doubleValueSpec" in spec:
        double = spec["doubleValueSpec"]
        return RealInterval(float(double.get("minValue", 0)), float(double.get("maxValue", 0)), scale)
    if "integerValueSpec" in spec:
        integer = spec["integerValueSpec"]
        return Integers(int(integer.get("minValue", 0)), int(integer.get("maxValue", 0)), scale)
    if "discreteValueSpec" in spec:
        return DiscreteNumbers(tuple(map(float, spec["discreteValueSpec"]["values"])), scale)
    return Categories(tuple(spec["categoricalValueSpec"]["values"]))
