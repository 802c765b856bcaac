"""Rules of studies: metrics and the search."""

from typing import Any

import pytest

from tests.vertex_api.jobs import tuning_job
from tests.vertex_api.validation.rules.breaking import said_of_study


@pytest.mark.parametrize(
    "metrics",
    [
        [{"metricId": "accuracy"}, {"metricId": "loss", "goal": "MINIMIZE"}],
        [{"metricId": "a"}, {"metricId": "b", "safetyConfig": {"desiredMinSafeTrialsFraction": 1.0}}],
        [{"metricId": "training/hptuning/metric"}],
    ],
)
def test_metrics_with_ids_of_their_own_are_taken(metrics: Any) -> None:
    assert said_of_study(metrics=metrics) == []


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ([{"metricId": "top 1"}], 'metrics[0].metricId: "top 1" must not contain white space'),
        ([{"metricId": "a"}, {"metricId": "a"}], 'metrics[1].metricId: "a" is there twice'),
        ([{"metricId": ""}], "metrics[0].metricId: is required"),
        (
            [{"metricId": "a", "safetyConfig": {"safetyThreshold": 1.0}}],
            "metrics: has safety metrics only; a study needs an objective, a metric without safetyConfig",
        ),
        (
            [{"metricId": "a"}, {"metricId": "b", "safetyConfig": {"desiredMinSafeTrialsFraction": 1.1}}],
            "metrics[1].safetyConfig.desiredMinSafeTrialsFraction: 1.1 is not within 0 to 1",
        ),
        (
            [{"metricId": "a"}, {"metricId": "b", "safetyConfig": {"desiredMinSafeTrialsFraction": -0.1}}],
            "metrics[1].safetyConfig.desiredMinSafeTrialsFraction: -0.1 is not within 0 to 1",
        ),
    ],
)
def test_other_metrics_are_refused(metrics: Any, said: str) -> None:
    assert said_of_study(metrics=metrics) == [said]


def test_a_grid_has_no_doubles_at_any_depth() -> None:
    integers = tuning_job()["studySpec"]["parameters"][1:]
    assert said_of_study(algorithm="GRID_SEARCH", parameters=integers) == []
    double = {"parameterId": "x", "doubleValueSpec": {"maxValue": 1.0}}
    child = {"parentIntValues": {"values": [1]}, "parameterSpec": double}
    parent = {"parameterId": "p", "integerValueSpec": {"maxValue": 2}, "conditionalParameterSpecs": [child]}
    message = "GRID_SEARCH takes integer, categorical and discrete parameters only"
    at = "parameters[1].conditionalParameterSpecs[0].parameterSpec.doubleValueSpec"
    assert said_of_study(algorithm="GRID_SEARCH", parameters=[double | {"parameterId": "y"}, parent]) == [
        f"parameters[0].doubleValueSpec: {message}",
        f"{at}: {message}",
    ]
    assert said_of_study(algorithm="RANDOM_SEARCH", parameters=[parent]) == []
