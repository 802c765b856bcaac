"""Rules for the conditions under which the children of a parameter are active."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.scalars import quote_value
from vertex_api.validation.rules.violation import KeyPath, Violation

FIELDS = {
    "parentIntValues": "integerValueSpec",
    "parentDiscreteValues": "discreteValueSpec",
    "parentCategoricalValues": "categoricalValueSpec",
}
"""The conditions, each with the value spec of the parents that it is for."""
_EPSILON = 1e-10


def find_condition_violations(parent: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ConditionalParameterSpec: one condition, which matches the parent's type and values. The
    conditions are for integers, discrete values and categories: a DOUBLE has no children."""
    children = parent.get("conditionalParameterSpecs", ())
    if children and "doubleValueSpec" in parent:
        message = "a DOUBLE parameter has no conditional parameters; use integer, discrete or categorical values"
        yield (*at, "conditionalParameterSpecs"), message
        return
    for index, child in enumerate(children):
        path: KeyPath = (*at, "conditionalParameterSpecs", index)
        given = [name for name in FIELDS if name in child]
        wanted = next((name for name, spec in FIELDS.items() if spec in parent), None)
        if len(given) != 1:
            yield path, f"needs exactly one of {', '.join(FIELDS)}"
        elif wanted and given[0] != wanted:
            yield (*path, given[0]), f"is not for a parent with {FIELDS[wanted]}; use {wanted}"
        elif wanted:
            yield from _find_value_violations(child[wanted]["values"], parent[FIELDS[wanted]], wanted, (*path, wanted))


def _find_value_violations(values: list[Any], spec: Mapping[str, Any], name: str, at: KeyPath) -> Iterator[Violation]:
    """All must be values that the parent can have; discrete ones are matched within 1e-10."""
    has = set(spec.get("values", ()))
    for index, value in enumerate(values):
        if name == "parentIntValues":
            inside = spec.get("minValue", 0) <= value <= spec.get("maxValue", 0)
        elif name == "parentDiscreteValues":
            inside = value in has or _is_close_to_any(value, sorted(has))
        else:
            inside = value in has
        if not inside:
            yield (*at, "values", index), f"{quote_value(value)} is not a value of the parent"


def _is_close_to_any(value: float, among: list[float]) -> bool:
    place = bisect_left(among, value)
    return any(abs(value - other) <= _EPSILON for other in among[max(place - 1, 0) : place + 1])
