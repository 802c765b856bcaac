from math import inf, nan
from typing import Any

import pytest

from vertex_api.studies.objectives_and_safety_metrics import (
    are_metric_values_safe,
    parse_objectives,
    parse_safety_metrics,
)


def study(*metrics: dict[str, Any]) -> dict[str, Any]:
    return {"metrics": [{"metricId": f"m{index}", **metric} for index, metric in enumerate(metrics)]}


@pytest.mark.parametrize(("goal", "loss"), [("MINIMIZE", 2.0), ("MAXIMIZE", -2.0), ("GOAL_TYPE_UNSPECIFIED", -2.0)])
def test_smaller_losses_are_better(goal: str, loss: float) -> None:
    [objective] = parse_objectives(study({"goal": goal}))
    assert objective.compute_loss_or_none({"m0": 2.0}) == loss


@pytest.mark.parametrize("values", [{}, {"m0": nan}, {"m0": inf}])
def test_metrics_without_finite_value_have_no_loss(values: dict[str, float]) -> None:
    [objective] = parse_objectives(study({}))
    assert objective.compute_loss_or_none(values) is None


def test_a_safety_metric_is_no_objective() -> None:
    spec = study({}, {"safetyConfig": {"desiredMinSafeTrialsFraction": 0.5}})
    assert [metric.id for metric in parse_objectives(spec)] == ["m0"]
    [safety] = parse_safety_metrics(spec)
    assert (safety.id, safety.threshold, safety.min_safe_fraction) == ("m1", 0, 0.5)


@pytest.mark.parametrize(
    ("goal", "value", "safe"), [("MINIMIZE", 3, True), ("MINIMIZE", 3.1, False), ("MAXIMIZE", 2.9, False)]
)
def test_the_goal_decides_which_side_is_safe(goal: str, value: float, safe: bool) -> None:
    spec = study({"goal": goal, "safetyConfig": {"safetyThreshold": 3}})
    assert are_metric_values_safe(spec, {"m0": value}) == safe
    assert not are_metric_values_safe(spec, {})
