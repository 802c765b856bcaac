"""Rules for the parameters of a study."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from vertex_api.scalar_types import quote_value
from vertex_api.validation.rules.parameter_conditions import FIELDS, find_child_condition_violations
from vertex_api.validation.rules.text_formats import find_unset_field_violations
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_VALUE_SPECS = ("doubleValueSpec", "integerValueSpec", "categoricalValueSpec", "discreteValueSpec")
_MIN_DISTANCE = 1e-10
_MAX_VALUES = 1000
_MAX_COMPARED = 100  # children that share an id, of which each is compared with each

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Branch:
    """The condition of a child: the path of its parent, and the values of the parent that make the child active."""

    parent: KeyPath
    values: frozenset[Any]

    def excludes(self, other: "Branch") -> bool:
        """Return whether both have the same parent, and no value of it makes both active."""
        return self.parent == other.parent and self.values.isdisjoint(other.values)


Place = tuple[Spec, KeyPath, tuple[Branch, ...]]


def walk_parameters_with_conditions(specs: list[Spec], at: KeyPath) -> Iterator[Place]:
    """Yield each ParameterSpec, parents before their children, with its path and its conditions."""
    for index, spec in enumerate(specs):
        yield from _walk_parameter_subtree(spec, (*at, index), ())


def _walk_parameter_subtree(spec: Spec, at: KeyPath, branches: tuple[Branch, ...]) -> Iterator[Place]:
    yield spec, at, branches
    for index, child in enumerate(spec.get("conditionalParameterSpecs", ())):
        values = frozenset(value for name in FIELDS for value in child.get(name, {}).get("values", ()))
        path: KeyPath = (*at, "conditionalParameterSpecs", index, "parameterSpec")
        yield from _walk_parameter_subtree(child["parameterSpec"], path, (*branches, Branch(at, values)))


def find_parameter_violations(specs: list[Spec], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for the `parameters` of a study."""
    places = list(walk_parameters_with_conditions(specs, at))
    for spec, path, _ in places:
        yield from _find_parameter_spec_violations(spec, path)
        yield from find_child_condition_violations(spec, path)
    yield from _find_conflicting_id_violations(places)


def _find_conflicting_id_violations(places: list[Place]) -> Iterator[Violation]:
    """Discovery document, `parameterId` and `conditionalParameterSpecs`: unique, except under disjoint conditions."""
    seen: dict[str, list[tuple[Branch, ...]]] = {}
    for spec, path, branches in places:
        name = spec["parameterId"]
        earlier = seen.setdefault(name, [])
        if name and not all(_are_exclusive(branches, others) for others in earlier):
            message = f"{quote_value(name)} is there twice; only children with disjoint conditions may share an id"
            yield (*path, "parameterId"), message
        elif len(earlier) < _MAX_COMPARED:
            earlier.append(branches)


def _are_exclusive(branches: tuple[Branch, ...], others: tuple[Branch, ...]) -> bool:
    return any(branch.excludes(other) for branch, other in zip(branches, others, strict=False))


def _find_parameter_spec_violations(spec: Spec, at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ParameterSpec and its value specs."""
    yield from find_unset_field_violations(spec, ["parameterId"], at)
    if re.search(r"\s", spec["parameterId"]):
        yield (*at, "parameterId"), f"{quote_value(spec['parameterId'])} must not contain white space"
    fields = [name for name in _VALUE_SPECS if name in spec]
    if len(fields) != 1:
        yield at, f"needs exactly one of {', '.join(_VALUE_SPECS)}"
        return
    name, values = fields[0], spec[fields[0]]
    if name in ("doubleValueSpec", "integerValueSpec"):
        low, high = values.get("minValue", 0), values.get("maxValue", 0)
        if low > high:
            yield (*at, name), f"minValue {low} is greater than maxValue {high}"
    elif name == "discreteValueSpec":
        yield from _find_discrete_value_violations(values["values"], (*at, name, "values"))
    yield from _find_scale_violations(spec, name, at)


def _find_discrete_value_violations(values: list[float], at: KeyPath) -> Iterator[Violation]:
    if len(values) > _MAX_VALUES:
        yield at, f"has {len(values)} values; at most {_MAX_VALUES} are allowed"
    for before, after in pairwise(values):
        if before >= after:
            yield at, f"must increase: {after} stands after {before}"
            return
        if after - before < _MIN_DISTANCE:
            yield at, f"{before} and {after} are less than {_MIN_DISTANCE} apart"
            return


def _find_scale_violations(parameter_spec: Spec, value_spec_field: str, at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `scaleType`: unset for categories; the logarithmic ones need values above zero."""
    scale, values = parameter_spec.get("scaleType", "SCALE_TYPE_UNSPECIFIED"), parameter_spec[value_spec_field]
    if value_spec_field == "categoricalValueSpec":
        if scale != "SCALE_TYPE_UNSPECIFIED":
            yield (*at, "scaleType"), f"{scale} is for numbers; leave it out for categories"
    elif "LOG" in scale:
        low = min(values["values"]) if value_spec_field == "discreteValueSpec" else values.get("minValue", 0)
        if low <= 0:
            yield (*at, "scaleType"), f"{scale} needs a range above zero; its least value is {low}"
