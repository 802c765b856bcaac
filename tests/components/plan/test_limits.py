"""Limits: of several sources the stricter rule holds, and a message names the one that refuses."""

from typing import Any

import pytest
from vertex_training.errors import ImageRefused
from vertex_training.plan.limits import Argument, Limits, Source
from vertex_training.schema.shapes import Guardrails

RULES: dict[str, tuple[Any, Any]] = {
    "machineTypes": (["n1-standard-4"], ["n1-*"]),
    "acceleratorTypes": (["NVIDIA_L4"], ["NVIDIA_*"]),
    "requiredLabels": (["team", "cost"], ["team"]),
    "requireTimeout": (True, False),
    "maxTimeout": ("3600s", "7200s"),
    "maxReplicas": (1, 2),
    "maxTrials": (1, 2),
    "maxParallelTrials": (1, 2),
    "registries": (["registry.test/team"], ["registry.test"]),
    "maxHourlyCost": (1.0, 2.0),
    "maxTotalCost": (1.0, 2.0),
    "maxMonthlyCost": (1.0, 2.0),
    "maxExpectedCost": (1.0, 2.0),
    "quotaCheck": ("block", "warn"),
    "warnCostFactor": (2.0, 3.0),
}
"""By rule a strict value, and a looser one."""


def of(*rules: dict[str, Any]) -> Limits:
    return Limits.of(Source(each, f"file {number}") for number, each in enumerate(rules))


def test_every_rule_has_a_stricter_and_a_looser_value() -> None:
    assert RULES.keys() == Guardrails.__annotations__.keys()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("is_first", [True, False])
def test_the_stricter_value_holds_wherever_it_stands(rule: str, is_first: bool) -> None:
    strict, loose = ({rule: value} for value in RULES[rule])
    held = of(strict, loose) if is_first else of(loose, strict)
    assert {key: sorted(value) if isinstance(value, list) else value for key, value in held.rules.items()} == {
        rule: sorted(strict[rule]) if isinstance(strict[rule], list) else strict[rule]
    }


@pytest.mark.parametrize("rule", sorted(RULES.keys() - {"requiredLabels"}))
def test_an_argument_cannot_loosen(rule: str) -> None:
    strict, loose = RULES[rule]
    held = of({rule: strict})
    (problem,) = Argument('TrainingStack "free"', {rule: loose}).problems(held)
    assert problem.place == 'TrainingStack "free"' and problem.path == f"guardrails.{rule}"
    assert problem.message.endswith("; an argument can only tighten them") and "file 0" in problem.message
    assert [*Argument("", {rule: strict}).problems(of({rule: loose}))] == []
    assert [*Argument("", {rule: strict}).problems(held)] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "is empty, so it limits nothing; take the key away, or give it a rule"),
        ("none", "must be an object with named fields"),
        ({"machineTypes": []}, "is empty; remove it, or write [none] to allow none"),
        ({"maxReplica": 1}, "unknown field; did you mean maxReplicas?"),
        ({"machineTypes": ["a3-*"]}, "a3-* is beyond the guardrails of file 0 (n1-*); an argument can only tighten"),
        ({"quotaCheck": "off"}, '"off" is looser than the "warn" of the guardrails of file 0; an argument can only'),
    ],
)
def test_an_argument_s_slip_is_refused(given: Any, said: str) -> None:
    (problem, *_) = Argument("", given).problems(of({"machineTypes": ["n1-*"], "quotaCheck": "warn"}))
    assert problem.message.startswith(said)


def test_a_list_of_each_source_must_allow_a_machine() -> None:
    held = of({"machineTypes": ["n1-*", "g2-*"]}, {"machineTypes": ["*-standard-4"]})
    assert [*held.machine_violations({"machineType": "n1-standard-4"}, ())] == []
    ((path, message),) = held.machine_violations({"machineType": "n1-standard-8"}, ())
    assert path == ("machineType",)
    assert message == 'guardrails.machineTypes (file 1): "n1-standard-8" is not allowed here; allowed: *-standard-4'
    # Both refuse it, and it is one problem.
    assert len([*held.machine_violations({"machineType": "e2-highmem-8"}, ())]) == 1
    with pytest.raises(ImageRefused, match=r"^images.a: guardrails.registries \(file 0\): "):
        of({"registries": ["a"]}).image_check("a")("b/image")


def test_the_digest_is_of_the_rules_alone() -> None:
    one, other = Source({"maxReplicas": 1}, "/ci/limits.yaml"), Source({"maxReplicas": 1}, "")
    assert Limits.of([one]).digest == Limits.of([other]).digest != of({"maxReplicas": 2}).digest
    assert Limits.of([one, other]).digest == Limits.of([one]).digest
    assert Limits().digest == ""


def test_a_ledger_s_fields_are_the_same_limits() -> None:
    held = Limits.of([Source({"maxReplicas": 1}, "a"), Source({"maxHourlyCost": 2.0}, "b", is_own=True)])
    floats = [{**each, "rules": {key: float(value) for key, value in each["rules"].items()}} for each in held.fields]
    assert Limits.parse(floats) == held and Limits.parse(floats).digest == held.digest
