"""Rules of the conditions of conditional parameters."""

from typing import Any

import pytest

from tests.vertex_api.validation.rules.breaking import said_of_study

INTEGER = {"integerValueSpec": {"minValue": 1, "maxValue": 3}}
DISCRETE = {"discreteValueSpec": {"values": [0.1, 0.5, 2.0]}}
CATEGORICAL = {"categoricalValueSpec": {"values": ["relu", "tanh"]}}
AT = "parameters[0].conditionalParameterSpecs"


def said_of(parent: dict[str, Any], **condition: Any) -> list[str]:
    """Problems of a study in which a child hangs on the only parameter."""
    child = {**condition, "parameterSpec": {"parameterId": "child", "integerValueSpec": {}}}
    return said_of_study(parameters=[{"parameterId": "p", **parent, "conditionalParameterSpecs": [child]}])


@pytest.mark.parametrize(
    ("parent", "condition"),
    [
        (INTEGER, {"parentIntValues": {"values": ["1", 3]}}),
        (DISCRETE, {"parentDiscreteValues": {"values": [0.5 + 5e-11, 2.0]}}),
        (CATEGORICAL, {"parentCategoricalValues": {"values": ["tanh"]}}),
    ],
)
def test_values_of_the_parent_are_conditions(parent: dict[str, Any], condition: dict[str, Any]) -> None:
    assert said_of(parent, **condition) == []


@pytest.mark.parametrize(
    ("parent", "name", "value", "shown"),
    [
        (INTEGER, "parentIntValues", 4, "4"),
        (INTEGER, "parentIntValues", 0, "0"),
        (DISCRETE, "parentDiscreteValues", 0.5001, "0.5001"),
        (DISCRETE, "parentDiscreteValues", 3, "3.0"),
        (CATEGORICAL, "parentCategoricalValues", "gelu", '"gelu"'),
    ],
)
def test_other_values_are_not(parent: dict[str, Any], name: str, value: Any, shown: str) -> None:
    assert said_of(parent, **{name: {"values": [value]}}) == [
        f"{AT}[0].{name}.values[0]: {shown} is not a value of the parent"
    ]


def test_a_child_hangs_on_one_condition() -> None:
    expected = [f"{AT}[0]: needs exactly one of parentIntValues, parentDiscreteValues, parentCategoricalValues"]
    assert said_of(INTEGER) == expected
    both = {"parentIntValues": {"values": [1]}, "parentDiscreteValues": {"values": [1]}}
    assert said_of(INTEGER, **both) == expected


def test_a_condition_is_of_the_parents_type() -> None:
    assert said_of(INTEGER, parentCategoricalValues={"values": ["1"]}) == [
        f"{AT}[0].parentCategoricalValues: is not for a parent with integerValueSpec; use parentIntValues"
    ]


def test_a_condition_names_values() -> None:
    assert said_of(INTEGER, parentIntValues={"values": []}) == [f"{AT}[0].parentIntValues.values: is required"]


def test_a_double_is_no_parent() -> None:
    said = said_of({"doubleValueSpec": {"maxValue": 1.0}}, parentDiscreteValues={"values": [0.5]})
    assert said == [
        f"{AT}: a DOUBLE parameter has no conditional parameters; use integer, discrete or categorical values"
    ]
