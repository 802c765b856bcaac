"""Rules of a study's parameters."""

from typing import Any

import pytest

from tests.vertex_api.validation.rules.breaking import said_of_study

ONE_OF = "needs exactly one of doubleValueSpec, integerValueSpec, categoricalValueSpec, discreteValueSpec"


def said_of(**fields: Any) -> list[str]:
    """Problems of the only parameter of a study, whose path is cut off."""
    said = said_of_study(parameters=[{"parameterId": "p", **fields}])
    return [text.removeprefix("parameters[0].") for text in said]


def parent(*children: dict[str, Any], id_: str = "p") -> dict[str, Any]:
    """A categorical parameter `a, b, c` with children."""
    spec: dict[str, Any] = {"parameterId": id_, "categoricalValueSpec": {"values": ["a", "b", "c"]}}
    return {**spec, "conditionalParameterSpecs": list(children)}


def child(id_: str, *values: str, **fields: Any) -> dict[str, Any]:
    """A child that is active for values of its parent."""
    spec = {"parameterId": id_, "integerValueSpec": {"maxValue": 9}, **fields}
    return {"parentCategoricalValues": {"values": list(values)}, "parameterSpec": spec}


@pytest.mark.parametrize(
    "fields",
    [
        {"doubleValueSpec": {"minValue": 0.001, "maxValue": 0.1}, "scaleType": "UNIT_LOG_SCALE"},
        {"doubleValueSpec": {"minValue": 1, "maxValue": 1}},
        {"doubleValueSpec": {}, "scaleType": "UNIT_LINEAR_SCALE"},
        {"integerValueSpec": {"minValue": "-4"}},
        {"integerValueSpec": {"minValue": 2, "maxValue": 2, "defaultValue": 7}},
        {"discreteValueSpec": {"values": [0.5, 1, 2]}, "scaleType": "UNIT_REVERSE_LOG_SCALE"},
        {"discreteValueSpec": {"values": list(range(1000))}},
        {"discreteValueSpec": {"values": [0.0, 1e-10]}},
        {"categoricalValueSpec": {"values": ["a"]}, "scaleType": 0},
    ],
)
def test_parameters_within_the_rules_are_taken(fields: dict[str, Any]) -> None:
    assert said_of(**fields) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"doubleValueSpec": {"minValue": 2, "maxValue": 1}},
            "doubleValueSpec: minValue 2.0 is greater than maxValue 1.0",
        ),
        ({"integerValueSpec": {"minValue": 1}}, "integerValueSpec: minValue 1 is greater than maxValue 0"),
        (
            {"integerValueSpec": {"maxValue": 4}, "scaleType": "UNIT_LOG_SCALE"},
            "scaleType: UNIT_LOG_SCALE needs a range above zero; its least value is 0",
        ),
        (
            {"doubleValueSpec": {"minValue": -1, "maxValue": 4}, "scaleType": "UNIT_REVERSE_LOG_SCALE"},
            "scaleType: UNIT_REVERSE_LOG_SCALE needs a range above zero; its least value is -1.0",
        ),
        (
            {"discreteValueSpec": {"values": [0, 4]}, "scaleType": "UNIT_LOG_SCALE"},
            "scaleType: UNIT_LOG_SCALE needs a range above zero; its least value is 0.0",
        ),
        (
            {"categoricalValueSpec": {"values": ["a"]}, "scaleType": "UNIT_LINEAR_SCALE"},
            "scaleType: UNIT_LINEAR_SCALE is for numbers; leave it out for categories",
        ),
        ({"discreteValueSpec": {"values": [2, 1]}}, "discreteValueSpec.values: must increase: 1.0 stands after 2.0"),
        ({"discreteValueSpec": {"values": [1, 1]}}, "discreteValueSpec.values: must increase: 1.0 stands after 1.0"),
        (
            {"discreteValueSpec": {"values": [0, 1e-11]}},
            "discreteValueSpec.values: 0.0 and 1e-11 are less than 1e-10 apart",
        ),
        (
            {"discreteValueSpec": {"values": list(range(1001))}},
            "discreteValueSpec.values: has 1001 values; at most 1000 are allowed",
        ),
        ({"discreteValueSpec": {"values": []}}, "discreteValueSpec.values: is required"),
        ({"categoricalValueSpec": {"values": []}}, "categoricalValueSpec.values: is required"),
    ],
)
def test_parameters_against_the_rules_are_refused(fields: dict[str, Any], said: str) -> None:
    assert said_of(**fields) == [said]


@pytest.mark.parametrize("fields", [{}, {"integerValueSpec": {}, "doubleValueSpec": {}}])
def test_a_parameter_has_one_kind_of_values(fields: dict[str, Any]) -> None:
    assert said_of_study(parameters=[{"parameterId": "p", **fields}]) == [f"parameters[0]: {ONE_OF}"]


@pytest.mark.parametrize(("name", "said"), [("a\tb", '"a\tb" must not contain white space'), ("", "is required")])
def test_a_parameter_has_an_id_without_white_space(name: str, said: str) -> None:
    parameters = [{"parameterId": name, "integerValueSpec": {}}]
    assert said_of_study(parameters=parameters) == [f"parameters[0].parameterId: {said}"]


def test_an_id_stands_once() -> None:
    twice = '"{}" is there twice; only children with disjoint conditions may share an id'
    spec = {"parameterId": "q", "integerValueSpec": {}}
    assert said_of_study(parameters=[spec, spec]) == [f"parameters[1].parameterId: {twice.format('q')}"]
    at = "parameters[1].conditionalParameterSpecs[0].parameterSpec.parameterId"
    assert said_of_study(parameters=[spec, parent(child("q", "a"))]) == [f"{at}: {twice.format('q')}"]
    assert said_of_study(parameters=[parent(child("p", "a"))]) == [f"{at.replace('[1]', '[0]')}: {twice.format('p')}"]


def test_only_mutually_exclusive_children_share_an_id() -> None:
    assert said_of_study(parameters=[parent(child("x", "a"), child("x", "b", "c"))]) == []
    (said,) = said_of_study(parameters=[parent(child("x", "a", "b"), child("x", "b"))])
    assert said.startswith("parameters[0].conditionalParameterSpecs[1].parameterSpec.parameterId: ")
    assert len(said_of_study(parameters=[parent(child("x", "a")), parent(child("x", "b"), id_="q")])) == 1


def test_grandchildren_below_exclusive_children_share_an_id() -> None:
    def branch(id_: str, value: str) -> dict[str, Any]:
        below = {"parentIntValues": {"values": [1]}, "parameterSpec": {"parameterId": "x", "integerValueSpec": {}}}
        return child(id_, value, conditionalParameterSpecs=[below])

    assert said_of_study(parameters=[parent(branch("y", "a"), branch("z", "b"))]) == []
    assert len(said_of_study(parameters=[parent(branch("y", "a"), branch("z", "a"))])) == 1


def test_rules_hold_at_any_depth() -> None:
    below = child("x", "a", integerValueSpec={"minValue": 2, "maxValue": 1})
    assert said_of_study(parameters=[parent(below)]) == [
        "parameters[0].conditionalParameterSpecs[0].parameterSpec.integerValueSpec: "
        "minValue 2 is greater than maxValue 1"
    ]
