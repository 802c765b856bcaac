"""Rules of what ends trials and studies early."""

from typing import Any

import pytest

from tests.vertex_api.validation.rules.breaking import said_of_study

LATER = {"endTime": "2027-01-01T00:00:00Z"}
SOONER = {"endTime": "2026-12-31T22:00:00.5-01:00"}


def said_of_config(**fields: Any) -> list[str]:
    return [text.removeprefix("studyStoppingConfig.") for text in said_of_study(studyStoppingConfig=fields)]


def said_of_convex(**fields: Any) -> list[str]:
    said = said_of_study(convexAutomatedStoppingSpec=fields)
    return [text.removeprefix("convexAutomatedStoppingSpec.") for text in said]


def test_trials_are_stopped_in_one_way() -> None:
    ways: dict[str, Any] = {"decayCurveStoppingSpec": {"useElapsedDuration": True}, "convexAutomatedStoppingSpec": {}}
    assert [said_of_study(**{name: way}) for name, way in ways.items()] == [[], []]
    assert said_of_study(**ways) == [
        "convexAutomatedStoppingSpec: cannot stand beside decayCurveStoppingSpec: at most one of "
        "decayCurveStoppingSpec, medianAutomatedStoppingSpec, convexAutomatedStoppingSpec"
    ]


def test_convex_stopping_within_the_rules_is_taken() -> None:
    assert said_of_convex(minStepCount=5, maxStepCount=5, minMeasurementCount=0) == []
    assert said_of_convex(minStepCount=5) == []
    assert said_of_convex(learningRateParameterName="rate", updateAllStoppedTrials=True) == []


@pytest.mark.parametrize("field", ["minStepCount", "maxStepCount", "minMeasurementCount"])
def test_steps_are_not_negative(field: str) -> None:
    assert said_of_convex(**{field: "-1"}) == [f"{field}: -1 must not be negative"]


def test_convex_stopping_against_the_rules_is_refused() -> None:
    assert said_of_convex(minStepCount=6, maxStepCount=5) == ["minStepCount: 6 is more than maxStepCount 5"]
    assert said_of_convex(learningRateParameterName="lr") == [
        'learningRateParameterName: "lr" is no parameter of the study'
    ]


def test_a_study_may_be_stopped_within_the_rules() -> None:
    assert said_of_config(shouldStopAsap=True, minNumTrials=3, maxNumTrials=3, maxNumTrialsNoProgress=2) == []
    assert said_of_config(minNumTrials=3, maxDurationNoProgress="60s") == []
    assert said_of_config(minimumRuntimeConstraint=SOONER, maximumRuntimeConstraint=LATER) == []
    assert said_of_config(minimumRuntimeConstraint={"maxDuration": "1s"}, maximumRuntimeConstraint=LATER) == []


@pytest.mark.parametrize("field", ["minNumTrials", "maxNumTrials", "maxNumTrialsNoProgress"])
def test_numbers_of_trials_are_not_negative(field: str) -> None:
    assert said_of_config(**{field: -1}) == [f"{field}: -1 must not be negative"]


def test_bounds_of_a_study_are_in_order() -> None:
    assert said_of_config(minNumTrials=4, maxNumTrials=3) == ["minNumTrials: 4 is more than maxNumTrials 3"]
    assert said_of_config(
        minimumRuntimeConstraint={"maxDuration": "2s"}, maximumRuntimeConstraint={"maxDuration": "1.5s"}
    ) == ['minimumRuntimeConstraint.maxDuration: "2s" is longer than that of maximumRuntimeConstraint, "1.500s"']
    (said,) = said_of_config(
        minimumRuntimeConstraint=SOONER, maximumRuntimeConstraint={"endTime": "2026-01-01T00:00:00Z"}
    )
    assert said == (
        'minimumRuntimeConstraint.endTime: "2026-12-31T23:00:00.500Z" is later than that of '
        'maximumRuntimeConstraint, "2026-01-01T00:00:00Z"'
    )


@pytest.mark.parametrize("constraint", [{}, {"maxDuration": "1s", **LATER}])
@pytest.mark.parametrize("name", ["minimumRuntimeConstraint", "maximumRuntimeConstraint"])
def test_runtime_constraints_are_a_duration_or_a_time(name: str, constraint: Any) -> None:
    assert said_of_config(**{name: constraint}) == [f"{name}: needs exactly one of maxDuration and endTime"]


def test_durations_are_not_negative() -> None:
    assert said_of_config(maxDurationNoProgress="-1s", maximumRuntimeConstraint={"maxDuration": "-2s"}) == [
        'maxDurationNoProgress: "-1s" must not be negative',
        'maximumRuntimeConstraint.maxDuration: "-2s" must not be negative',
    ]
