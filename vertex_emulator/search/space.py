"""The search space of a study: a forest of parameters, where a parent's value decides which children take part."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vertex_api.types import StudySpecParameterSpec, StudySpecParameterSpecConditionalParameterSpec
from vertex_emulator.search.domain import Domain, Value, domain_of


@dataclass(frozen=True)
class Parameter:
    """One parameter and, per child, the values of this one under which the child is active.

    Parameters of the same id and domain are equal whatever hangs below them: children that repeat under disjoint
    values of their parent are one axis of the space.
    """

    id: str
    domain: Domain
    children: "tuple[tuple[frozenset[Value], Parameter], ...]" = field(compare=False)

    def active_children(self, value: Value) -> "list[Parameter]":
        """The children that take part when this parameter has `value`."""
        return [child for values, child in self.children if value in values]


@dataclass(frozen=True)
class Space:
    """All parameters of a study, by their roots."""

    roots: tuple[Parameter, ...]

    @classmethod
    def of(cls, specs: Sequence[StudySpecParameterSpec]) -> "Space":
        """The space of a canonical study's `parameters`."""
        return cls(tuple(map(_parameter, specs)))

    @property
    def axes(self) -> list[Parameter]:
        """Every distinct parameter, active or not, parents before their children."""
        return list(dict.fromkeys(_descendants(self.roots)))

    @property
    def conditions(self) -> Iterator[tuple[Parameter, frozenset[Value], Parameter]]:
        """Parent, the parent's values, and the child that is active under them; a parent's own conditions first."""
        return _conditions(self.roots)

    @property
    def is_finite(self) -> bool:
        """Whether the space has no continuum in it, so that `points` comes to an end."""
        return all(axis.domain.count is not None for axis in self.axes)

    def choose(self, value_of: Callable[[Parameter], Value]) -> dict[Parameter, Value]:
        """Ask `value_of` for the value of every parameter that is active under the answers given so far."""
        return _chosen(self.roots, value_of)

    def points(self) -> Iterator[dict[str, Value]]:
        """Every point once, the last parameter fastest; ValueError names the DOUBLE parameters where there are some."""
        continua = [axis.id for axis in self.axes if axis.domain.count is None]
        if continua:
            raise ValueError(
                f"the points of {', '.join(continua)} cannot be counted: a grid takes INTEGER, DISCRETE and "
                "CATEGORICAL parameters; list the values in a discreteValueSpec, or use another algorithm"
            )
        return _points(self.roots)


def by_id(chosen: dict[Parameter, Value]) -> dict[str, Value]:
    """The answer of `Space.choose` as a trial carries it."""
    return {parameter.id: value for parameter, value in chosen.items()}


def key(point: Mapping[str, Value]) -> frozenset[tuple[str, Value]]:
    """What makes two points the same one."""
    return frozenset(point.items())


def _parameter(spec: StudySpecParameterSpec) -> Parameter:
    domain = domain_of(spec)
    children = tuple(
        (_parent_values(domain, condition), _parameter(condition["parameterSpec"]))
        for condition in spec.get("conditionalParameterSpecs", [])
    )
    return Parameter(spec["parameterId"], domain, children)


def _parent_values(parent: Domain, condition: StudySpecParameterSpecConditionalParameterSpec) -> frozenset[Value]:
    if "parentIntValues" in condition:
        return frozenset(map(int, condition["parentIntValues"]["values"]))
    if "parentDiscreteValues" in condition:
        # Written to within 1e-10 of the parent's own values (discovery document): take those themselves.
        values = condition["parentDiscreteValues"]["values"]
        return frozenset(parent.nearest(parent.position(value)) for value in values)
    return frozenset(condition["parentCategoricalValues"]["values"])


def _descendants(parameters: Sequence[Parameter]) -> Iterator[Parameter]:
    for parameter in parameters:
        yield parameter
        yield from _descendants([child for _, child in parameter.children])


def _conditions(parameters: Sequence[Parameter]) -> Iterator[tuple[Parameter, frozenset[Value], Parameter]]:
    for parameter in parameters:
        for values, child in parameter.children:
            yield parameter, values, child
    for parameter in parameters:
        yield from _conditions([child for _, child in parameter.children])


def _chosen(parameters: Sequence[Parameter], value_of: Callable[[Parameter], Value]) -> dict[Parameter, Value]:
    chosen: dict[Parameter, Value] = {}
    for parameter in parameters:
        value = value_of(parameter)
        chosen |= {parameter: value} | _chosen(parameter.active_children(value), value_of)
    return chosen


def _points(parameters: Sequence[Parameter]) -> Iterator[dict[str, Value]]:
    if not parameters:
        yield {}
        return
    first, *rest = parameters
    for value in first.domain:
        for others in _points([*first.active_children(value), *rest]):
            yield {first.id: value} | others
