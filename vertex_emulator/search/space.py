"""The space of a study: the values of each parameter on its scale, and which parameters are active together.

A point is a trial's parameters by id. A study's parameters are a forest, where the value of a parent decides which
children take part.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic, Literal, TypeVar

from vertex_api.types import StudySpecParameterSpec, StudySpecParameterSpecConditionalParameterSpec

Value = float | int | str
Point = dict[str, Value]
PointKey = frozenset[tuple[str, Value]]
Scale = Literal["SCALE_TYPE_UNSPECIFIED", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"]
Listed = TypeVar("Listed", float, str)


@dataclass(frozen=True)
class Observation:
    """A trial as the search sees it.

    `parameters` by parameter id (active ones only, as suggested), `state` by the API's names, `metrics` by metric id:
    the final measurement, empty when there is none.
    """

    parameters: Mapping[str, Value]
    state: Literal["ACTIVE", "SUCCEEDED", "INFEASIBLE"]
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """One parameter and, per child, the values of this one under which the child is active.

    Parameters of the same id and domain are equal whatever hangs below them: children that repeat under disjoint
    values of their parent are one axis of the space.
    """

    id: str
    domain: "Domain"
    children: "tuple[tuple[frozenset[Value], Parameter], ...]" = field(compare=False)

    @classmethod
    def parse(cls, spec: StudySpecParameterSpec) -> "Parameter":
        """Read a canonical ParameterSpec."""
        domain = build_domain(spec)
        children = tuple(
            (_parse_condition(domain, condition), cls.parse(condition["parameterSpec"]))
            for condition in spec.get("conditionalParameterSpecs", [])
        )
        return cls(spec["parameterId"], domain, children)

    def active_children(self, value: Value) -> "list[Parameter]":
        """The children that are active when this parameter has `value`."""
        return [child for values, child in self.children if value in values]


def _parse_condition(parent: "Domain", condition: StudySpecParameterSpecConditionalParameterSpec) -> frozenset[Value]:
    if "parentIntValues" in condition:
        return frozenset(map(int, condition["parentIntValues"]["values"]))
    if "parentDiscreteValues" in condition:
        # These may differ from the parent's own values by 1e-10 (discovery document), so take the nearest ones.
        values = condition["parentDiscreteValues"]["values"]
        return frozenset(parent.nearest(parent.position(value)) for value in values)
    return frozenset(condition["parentCategoricalValues"]["values"])


@dataclass(frozen=True)
class Space:
    """All parameters of a study, by their roots."""

    roots: tuple[Parameter, ...]

    @classmethod
    def parse(cls, specs: Sequence[StudySpecParameterSpec]) -> "Space":
        """Read a canonical study's `parameters`."""
        return cls(tuple(map(Parameter.parse, specs)))

    @property
    def axes(self) -> list[Parameter]:
        """Every distinct parameter, active or not, parents before their children."""

        def walk(parameters: Sequence[Parameter]) -> Iterator[Parameter]:
            for parameter in parameters:
                yield parameter
                yield from walk([child for _, child in parameter.children])

        return list(dict.fromkeys(walk(self.roots)))

    def conditions(self) -> Iterator[tuple[Parameter, frozenset[Value], Parameter]]:
        """Yield parent, its values, and the child that is active under them; a parent's own conditions first."""

        def walk(parameters: Sequence[Parameter]) -> Iterator[tuple[Parameter, frozenset[Value], Parameter]]:
            for parameter in parameters:
                for values, child in parameter.children:
                    yield parameter, values, child
            for parameter in parameters:
                yield from walk([child for _, child in parameter.children])

        return walk(self.roots)

    def assign(self, choose: Callable[[Parameter], Value]) -> dict[Parameter, Value]:
        """Choose a value for every parameter that is active under the values chosen before."""
        values: dict[Parameter, Value] = {}
        remaining = list(self.roots)
        while remaining:
            parameter, *remaining = remaining
            value = values[parameter] = choose(parameter)
            remaining = [*parameter.active_children(value), *remaining]
        return values

    def point(self, choose: Callable[[Parameter], Value]) -> Point:
        """Choose the values of a point, as `assign` does."""
        return {parameter.id: value for parameter, value in self.assign(choose).items()}

    def draw(self, random: Random) -> Point:
        """Draw a random point: uniform on each active parameter's scale, uniform among listed values."""
        return self.point(lambda parameter: parameter.domain.at_quantile(random.random()))

    @property
    def is_finite(self) -> bool:
        """Whether no parameter is continuous, so that `points` ends."""
        return all(axis.domain.count is not None for axis in self.axes)

    def points(self) -> Iterator[Point]:
        """Yield every point once, the last parameter fastest. Raises ValueError if there are DOUBLE parameters."""
        continuous = [axis.id for axis in self.axes if axis.domain.count is None]
        if continuous:
            raise ValueError(
                f"the points of {', '.join(continuous)} cannot be enumerated: a grid takes INTEGER, DISCRETE and "
                "CATEGORICAL parameters; list the values in a discreteValueSpec, or use another algorithm"
            )

        def enumerate_from(parameters: Sequence[Parameter]) -> Iterator[Point]:
            if not parameters:
                yield {}
                return
            first, *rest = parameters
            for value in first.domain:
                for others in enumerate_from([*first.active_children(value), *rest]):
                    yield {first.id: value} | others

        return enumerate_from(self.roots)


def point_key(point: Mapping[str, Value]) -> PointKey:
    """A hashable key that is equal for equal points."""
    return frozenset(point.items())


# The domains of parameters. All have the same methods: `count` is the number of values, None if continuous;
# `at_quantile` maps a quantile (0 to 1) to a value, so that uniform quantiles give the scale's density; `position` is
# the coordinate of a value in the model, and `nearest` the value closest to a coordinate. Iteration yields the values
# in order.


@dataclass(frozen=True)
class RealInterval:
    """DOUBLE: every number between two bounds, which belong to it."""

    lower: float
    upper: float
    scale: Scale

    @property
    def count(self) -> int | None:
        return 1 if self.lower == self.upper else None

    def at_quantile(self, quantile: float) -> float:
        return from_unit(quantile, self.lower, self.upper, self.scale)

    def position(self, value: Value) -> float:
        return to_unit(float(value), self.lower, self.upper, self.scale)

    nearest = at_quantile

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

    def at_quantile(self, quantile: float) -> int:
        # Half a step more on both sides, or the two ends would be half as likely as their neighbours.
        return self._round(from_unit(quantile, self.lower - 0.5, self.upper + 0.5, self.scale))

    def position(self, value: Value) -> float:
        return to_unit(float(value), self.lower, self.upper, self.scale)

    def nearest(self, position: float) -> int:
        return self._round(from_unit(position, self.lower, self.upper, self.scale))

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lower, self.upper + 1))

    def _round(self, value: float) -> int:
        return min(max(round(value), self.lower), self.upper)


@dataclass(frozen=True)
class _Listed(Generic[Listed]):
    values: tuple[Listed, ...]

    @property
    def count(self) -> int:
        return len(self.values)

    def at_quantile(self, quantile: float) -> Listed:
        return self.values[min(int(quantile * self.count), self.count - 1)]

    def __iter__(self) -> Iterator[Listed]:
        return iter(self.values)


@dataclass(frozen=True)
class Numbers(_Listed[float]):
    """DISCRETE: a list of numbers. The scale says how far apart they are, and all are equally likely."""

    scale: Scale

    def position(self, value: Value) -> float:
        return to_unit(float(value), self.values[0], self.values[-1], self.scale)

    def nearest(self, position: float) -> float:
        return min(self.values, key=lambda value: abs(self.position(value) - position))


@dataclass(frozen=True)
class Categories(_Listed[str]):
    """CATEGORICAL: a list of strings without an order. A position is an index into it."""

    def position(self, value: Value) -> float:
        return float(self.values.index(str(value)))

    def nearest(self, position: float) -> str:
        return self.values[min(max(round(position), 0), self.count - 1)]


Domain = RealInterval | Integers | Numbers | Categories


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
        return Numbers(tuple(map(float, spec["discreteValueSpec"]["values"])), scale)
    return Categories(tuple(spec["categoricalValueSpec"]["values"]))


def to_unit(value: float, lower: float, upper: float, scale: Scale) -> float:
    """Return the position of `value` from 0 (`lower`) to 1 (`upper`); 0.5 where the bounds are equal.

    A log scale spreads out the values near `lower`, a reverse log scale those near `upper` (discovery document,
    ScaleType); both need `lower` above 0.
    """
    if lower == upper:
        return 0.5
    if scale == "UNIT_LOG_SCALE":
        return math.log(value / lower) / math.log(upper / lower)
    if scale == "UNIT_REVERSE_LOG_SCALE":
        return 1 - to_unit(lower + upper - value, lower, upper, "UNIT_LOG_SCALE")
    return (value - lower) / (upper - lower)


def from_unit(unit: float, lower: float, upper: float, scale: Scale) -> float:
    """Return the value at position `unit`, the inverse of `to_unit`; it is always within the bounds."""
    if scale == "UNIT_LOG_SCALE":
        value = math.exp(math.log(lower) * (1 - unit) + math.log(upper) * unit)
    elif scale == "UNIT_REVERSE_LOG_SCALE":
        value = lower + upper - from_unit(1 - unit, lower, upper, "UNIT_LOG_SCALE")
    else:
        value = lower * (1 - unit) + upper * unit
    return min(max(value, lower), upper)
