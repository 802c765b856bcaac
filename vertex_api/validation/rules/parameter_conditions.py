"""Rules for the conditions under which the children of a parameter are active."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.scalar_types import quote_value
from vertex_api.validation.rules.violation_type import KeyPath, Violation

FIELDS = {
    "parentIntValues": "integerValueSpec",
    "parentDiscreteValues": "discreteValueSpec",
    "parentCategoricalValues": "categoricalValueSpec",
}
"""The conditions, each with the value spec of the parents that it is for."""
_EPSILON = 1e-10


def find_child_condition_violations(parent_parameter: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find conditions that do not match the type and the values of their parent, which must not be a DOUBLE.

    Source: discovery document, ConditionalParameterSpec."""
    children = parent_parameter.get("conditionalParameterSpecs", ())
    if children and "doubleValueSpec" in parent_parameter:
        message = "a DOUBLE parameter has no conditional parameters; use integer, discrete or categorical values"
        yield (*at, "conditionalParameterSpecs"), message
        return
    expected = next((name for name, spec in FIELDS.items() if spec in parent_parameter), None)
    parent_spec = parent_parameter[FIELDS[expected]] if expected else {}
    # Once, not for each child: a parent may have thousands of both.
    sorted_values = sorted(parent_spec.get("values", ())) if children else []
    values = frozenset(sorted_values)
    for index, child in enumerate(children):
        path: KeyPath = (*at, "conditionalParameterSpecs", index)
        fields = [name for name in FIELDS if name in child]
        if len(fields) != 1:
            yield path, f"needs exactly one of {', '.join(FIELDS)}"
        elif expected and fields != [expected]:
            yield (*path, fields[0]), f"is not for a parent with {FIELDS[expected]}; use {expected}"
        elif expected:
            for place, value in enumerate(child[expected]["values"]):
                if expected == "parentIntValues":
                    is_possible = parent_spec.get("minValue", 0) <= value <= parent_spec.get("maxValue", 0)
                else:
                    is_discrete = expected == "parentDiscreteValues"
                    is_possible = value in values or (is_discrete and _is_close_to_any(value, sorted_values))
                if not is_possible:
                    yield (*path, expected, "values", place), f"{quote_value(value)} is not a value of the parent"


def _is_close_to_any(value: float, sorted_values: list[float]) -> bool:
    place = bisect_left(sorted_values, value)
    return any(abs(value - other) <= _EPSILON for other in sorted_values[max(place - 1, 0) : place + 1])
