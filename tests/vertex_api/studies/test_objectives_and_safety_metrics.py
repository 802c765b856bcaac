from math import inf, nan
from typing import Any

import pytest

from vertex_api.studies import is_safe, objectives_of, safety_metrics


def study(*metrics: dict[str, Any]) -> dict[str, Any]:
    return {"metrics": [{"metricId": f"m{index}", **metric} for index, metric in enumerate(metrics)]}


@pytest.mark.parametrize(("goal", "loss"), [("MINIMIZE", 2.0), ("MAXIMIZE", -2.0), ("GOAL_TYPE_UNSPECIFIED", -2.0)])
def test_smaller_losses_are_better(goal: str, loss: float) -> None:
    [objective] = objectives_of(study({"goal": goal}))
    assert objective.loss({"m0": 2.0}) == loss


@pytest.mark.parametrize("values", [{}, {"m0": nan}, {"m0": inf}])
def test_metrics_without_finite_value_have_no_loss(values: dict[str, float]) -> None:
    [objective] = objectives_of(study({}))
    assert objective.loss(values) is None


def test_a_safety_metric_is_no_objective() -> None:
    spec = study({}, {"safetyConfig": {"desiredMinSafeTrialsFraction": 0.5}})
    assert [metric.id for metric in objectives_of(spec)] == ["m0"]
    [safety] = safety_metrics(spec)
    assert (safety.id, safety.threshold, safety.min_safe_fraction) == ("m1", 0, 0.5)


@pytest.mark.parametrize(
    ("goal", "value", "safe"), [("MINIMIZE", 3, True), ("MINIMIZE", 3.1, False), ("MAXIMIZE", 2.9, False)]
)
def test_the_goal_decides_which_side_is_safe(goal: str, value: float, safe: bool) -> None:
    spec = study({"goal": goal, "safetyConfig": {"safetyThreshold": 3}})
    assert is_safe(spec, {"m0": value}) == safe
    assert not is_safe(spec, {})
