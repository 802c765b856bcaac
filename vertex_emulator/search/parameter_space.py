"""The parameter space of a study: a forest where the value of a parent decides which children take part."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vertex_api.types import StudySpecParameterSpec, StudySpecParameterSpecConditionalParameterSpec
from vertex_emulator.search.parameter_domains import Domain, Value, build_domain


@dataclass(frozen=True)
class Parameter:
    """One parameter and, per child, the values of this one under which the child is active.

    Parameters of the same id and domain are equal whatever hangs below them: children that repeat under disjoint
    values of their parent are one axis of the space.
    """

    id: str
    domain: Domain
    children: "tuple[tuple[frozenset[Value], Parameter], ...]" = field(compare=False)

    def get_active_children(self, value: Value) -> "list[Parameter]":
        """Return the children that are active when this parameter has `value`."""
        return [child for values, child in self.children if value in values]


@dataclass(frozen=True)
class Space:
    """All parameters of a study, by their roots."""

    roots: tuple[Parameter, ...]

    @classmethod
    def from_specs(cls, specs: Sequence[StudySpecParameterSpec]) -> "Space":
        """Build the space of a canonical study's `parameters`."""
        return cls(tuple(map(_build_parameter, specs)))

    @property
    def distinct_parameters(self) -> list[Parameter]:
        """Every distinct parameter, active or not, parents before their children."""
        return list(dict.fromkeys(_walk_parameters(self.roots)))

    def walk_parent_values_and_child_triples(self) -> Iterator[tuple[Parameter, frozenset[Value], Parameter]]:
        """Yield parent, its values, and the child that is active under them; a parent's own conditions first."""
        return _walk_parent_values_and_child_triples(self.roots)

    @property
    def is_finite(self) -> bool:
        """Whether no parameter is continuous, so that `enumerate_points` ends."""
        return all(axis.domain.count is not None for axis in self.distinct_parameters)

    def choose_values_by_parameter(self, choose_value: Callable[[Parameter], Value]) -> dict[Parameter, Value]:
        """Choose a value for every parameter that is active under the values chosen before."""
        values_by_parameter: dict[Parameter, Value] = {}
        remaining = list(self.roots)
        while remaining:
            parameter, *remaining = remaining
            value = values_by_parameter[parameter] = choose_value(parameter)
            remaining = [*parameter.get_active_children(value), *remaining]
        return values_by_parameter

    def enumerate_points(self) -> Iterator[dict[str, Value]]:
        """Yield every point once, the last parameter fastest. Raises ValueError if there are DOUBLE parameters."""
        continuous = [axis.id for axis in self.distinct_parameters if axis.domain.count is None]
        if continuous:
            raise ValueError(
                f"the points of {', '.join(continuous)} cannot be enumerated: a grid takes INTEGER, DISCRETE and "
                "CATEGORICAL parameters; list the values in a discreteValueSpec, or use another algorithm"
            )
        return _enumerate_points(self.roots)


def map_values_by_id(values_by_parameter: dict[Parameter, Value]) -> dict[str, Value]:
    """Convert the result of `Space.choose_values_by_parameter` to a trial's parameters by id."""
    return {parameter.id: value for parameter, value in values_by_parameter.items()}


def build_point_key(point: Mapping[str, Value]) -> frozenset[tuple[str, Value]]:
    """Return a hashable key that is equal for equal points."""
    return frozenset(point.items())


def _build_parameter(spec: StudySpecParameterSpec) -> Parameter:
    domain = build_domain(spec)
    children = tuple(
        (_parse_parent_values(domain, condition), _build_parameter(condition["parameterSpec"]))
        for condition in spec.get("conditionalParameterSpecs", [])
    )
    return Parameter(spec["parameterId"], domain, children)


def _parse_parent_values(parent: Domain, condition: StudySpecParameterSpecConditionalParameterSpec) -> frozenset[Value]:
    if "parentIntValues" in condition:
        return frozenset(map(int, condition["parentIntValues"]["values"]))
    if "parentDiscreteValues" in condition:
        # These may differ from the parent's own values by 1e-10 (discovery document), so take the nearest ones.
        values = condition["parentDiscreteValues"]["values"]
        return frozenset(parent.find_nearest_value(parent.get_unit_position_or_index(value)) for value in values)
    return frozenset(condition["parentCategoricalValues"]["values"])


def _walk_parameters(parameters: Sequence[Parameter]) -> Iterator[Parameter]:
    for parameter in parameters:
        yield parameter
        yield from _walk_parameters([child for _, child in parameter.children])


def _walk_parent_values_and_child_triples(
    parameters: Sequence[Parameter],
) -> Iterator[tuple[Parameter, frozenset[Value], Parameter]]:
    for parameter in parameters:
        for values, child in parameter.children:
            yield parameter, values, child
    for parameter in parameters:
        yield from _walk_parent_values_and_child_triples([child for _, child in parameter.children])


def _enumerate_points(parameters: Sequence[Parameter]) -> Iterator[dict[str, Value]]:
    if not parameters:
        yield {}
        return
    first, *rest = parameters
    for value in first.domain:
        for others in _enumerate_points([*first.get_active_children(value), *rest]):
            yield {first.id: value} | others
