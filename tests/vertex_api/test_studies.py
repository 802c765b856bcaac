"""Metrics of studies, and the best of their trials."""

from math import inf, nan
from random import Random
from typing import Any

import pytest

from vertex_api.studies import (
    count_ended,
    find_best,
    is_safe,
    objectives_of,
    pareto_front,
    reported_metrics,
    safety_metrics,
    trial_summaries,
    trial_summary,
    unreported_metrics,
)


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


def trial(number: int, value: float | None = None, state: str = "SUCCEEDED", metric: str = "loss") -> dict[str, Any]:
    measured = {"finalMeasurement": {"metrics": [{"metricId": metric, "value": value}]}} if value is not None else {}
    return {"id": str(number), "state": state, **measured}


def job(*trials: dict[str, Any], goal: str | None = "MINIMIZE") -> dict[str, Any]:
    metric = {"metricId": "loss"} | ({"goal": goal} if goal else {})
    return {"studySpec": {"metrics": [metric, {"metricId": "other", "goal": "MAXIMIZE"}]}, "trials": list(trials)}


def best_id(job: dict[str, Any]) -> str | None:
    row = find_best(job)
    return str(row["id"]) if row else None


@pytest.mark.parametrize(("goal", "number"), [("MINIMIZE", "2"), ("MAXIMIZE", "3"), (None, "3")])
def test_the_goal_decides_the_best_trial(goal: str | None, number: str) -> None:
    assert best_id(job(trial(1, 0.5), trial(2, 0.25), trial(3, 0.75), goal=goal)) == number


@pytest.mark.parametrize("goal", ["MINIMIZE", "MAXIMIZE"])
def test_the_earliest_of_equal_trials_is_best(goal: str) -> None:
    assert best_id(job(trial(10, 0.5), trial(9, 0.5), trial(11, 0.5), goal=goal)) == "9"


@pytest.mark.parametrize("state", ["INFEASIBLE", "ACTIVE", "STOPPING", "REQUESTED"])
def test_only_a_succeeded_trial_can_be_best(state: str) -> None:
    assert best_id(job(trial(1, 0.1, state=state), trial(2, 0.9))) == "2"


def test_trials_without_the_first_metric_are_never_best() -> None:
    assert best_id(job(trial(1, 0.1, metric="other"), trial(2), trial(3, 0.9))) == "3"


def test_there_is_no_best_trial_where_none_succeeded() -> None:
    assert find_best(job()) is None
    assert find_best(job(trial(1), trial(2, 0.1, state="INFEASIBLE"))) is None


def test_a_metric_without_a_value_is_zero() -> None:
    zero = {"id": "1", "state": "SUCCEEDED", "finalMeasurement": {"metrics": [{"metricId": "loss"}]}}
    assert trial_summary(zero)["metrics"] == {"loss": 0.0}
    assert best_id(job(zero, trial(2, 0.1))) == "1"


def test_trials_are_ordered_by_number() -> None:
    given = job(trial(10), trial(2), trial(1))
    assert [row["id"] for row in trial_summaries(given)] == ["1", "2", "10"]


def test_a_job_without_trials_has_no_rows() -> None:
    assert trial_summaries({"studySpec": {}}) == []


def test_a_row_has_parameters_and_metrics_by_id() -> None:
    given = trial(1, 0.5) | {
        "parameters": [
            {"parameterId": "units", "value": 32.0},
            {"parameterId": "rate", "value": 0.1},
            {"parameterId": "activation", "value": "relu"},
        ]
    }
    row = trial_summary(given)
    assert row == {
        "id": "1",
        "state": "SUCCEEDED",
        "parameters": {"units": 32, "rate": 0.1, "activation": "relu"},
        "metrics": {"loss": 0.5},
    }
    assert isinstance(row["parameters"]["units"], int)


def test_the_row_shows_why_a_trial_is_infeasible() -> None:
    row = trial_summary(trial(1, state="INFEASIBLE") | {"infeasibleReason": "exit code 3"})
    assert (row["metrics"], row["infeasibleReason"]) == ({}, "exit code 3")


def two(number: int, loss: float, other: float | None, state: str = "SUCCEEDED") -> dict[str, Any]:
    metrics = [{"metricId": "loss", "value": loss}] + ([] if other is None else [{"metricId": "other", "value": other}])
    return {"id": str(number), "state": state, "finalMeasurement": {"metrics": metrics}}


def front_ids(job: dict[str, Any]) -> list[str]:
    return [row["id"] for row in pareto_front(job)]


def test_the_front_respects_the_goal_of_each_metric() -> None:
    trials = [two(1, 0.5, 0.5), two(10, 0.1, 0.1), two(3, 0.9, 0.9), two(4, 0.6, 0.5), two(5, 0.5, 0.4)]
    assert front_ids(job(*trials)) == ["1", "3", "10"]


def test_the_front_has_equal_but_no_incomplete_trials() -> None:
    trials = [two(1, 0.5, 0.5), two(2, 0.5, 0.5), two(3, 0.1, 0.9, "INFEASIBLE"), two(4, 0.0, None)]
    assert front_ids(job(*trials)) == ["1", "2"]
    assert front_ids(job(two(4, 0.0, None))) == []


def test_the_front_is_exactly_the_unbeaten_trials() -> None:
    random = Random(5)
    trials = [two(i, random.randint(0, 9), random.randint(0, 9)) for i in range(1, 101)]
    values = {row["id"]: (row["metrics"]["loss"], -row["metrics"]["other"]) for row in trial_summaries(job(*trials))}
    kept = set(front_ids(job(*trials)))
    for id_, mine in values.items():
        is_beaten = any(
            other != mine and all(a <= b for a, b in zip(other, mine, strict=True)) for other in values.values()
        )
        assert (id_ in kept) != is_beaten


def test_one_metric_s_front_is_the_best_trial() -> None:
    one = {"studySpec": {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}]}}
    assert front_ids({**one, "trials": [trial(1, 0.5), trial(2, 0.25), trial(3, 0.25)]}) == ["2"]
    assert front_ids({**one, "trials": []}) == []


def measured(number: int, **metrics: float) -> dict[str, Any]:
    found = [{"metricId": name, "value": value} for name, value in metrics.items()]
    return {"id": str(number), "state": "SUCCEEDED", "finalMeasurement": {"metrics": found}}


def safe_job(*trials: dict[str, Any], goal: str = "MINIMIZE", **safety: float) -> dict[str, Any]:
    """`heat` is a safety metric, the first of all; `loss` and `cost` are objectives."""
    metrics = [
        {"metricId": "heat", "goal": goal, "safetyConfig": safety},
        {"metricId": "loss", "goal": "MINIMIZE"},
        {"metricId": "cost", "goal": "MINIMIZE"},
    ]
    return {"studySpec": {"metrics": metrics}, "trials": list(trials)}


def test_a_trial_not_known_safe_is_never_best() -> None:
    trials = [
        measured(1, loss=1, heat=7),
        measured(2, loss=2),
        measured(3, loss=3, heat=6),
        measured(4, loss=4, heat=1),
    ]
    assert best_id(safe_job(*trials, safetyThreshold=6)) == "3"
    assert best_id(safe_job(*trials, safetyThreshold=0)) is None
    assert best_id(safe_job(*trials, goal="MAXIMIZE", safetyThreshold=6.5)) == "1"
    assert best_id(safe_job(measured(1, loss=1, heat=0))) == "1"  # the default threshold is 0


def test_the_front_compares_only_safe_trials() -> None:
    trials = [
        measured(1, loss=1, cost=3, heat=0),
        measured(2, loss=2, cost=2, heat=0),
        measured(3, loss=2, cost=3, heat=0),  # the second is as good in one and better in the other
        measured(4, loss=0, cost=0, heat=9),  # not safe
        measured(5, loss=0, heat=0),  # without a cost
        measured(6, loss=2, cost=2, heat=0),  # as good as the second
    ]
    assert [row["id"] for row in pareto_front(safe_job(*trials, safetyThreshold=1))] == ["1", "2", "6"]


def test_a_single_objective_s_front_ignores_unsafe_trials() -> None:
    found = safe_job(measured(1, loss=2, heat=0), measured(2, loss=1, heat=0), measured(3, loss=0, heat=9))
    found["studySpec"]["metrics"].pop()
    assert [row["id"] for row in pareto_front(found)] == ["2"]
    assert pareto_front(found | {"trials": []}) == []


def test_ties_are_decided_by_the_next_objective() -> None:
    trials = [measured(1, loss=1, cost=3, heat=0), measured(2, loss=1, cost=2, heat=0), measured(3, loss=1, heat=0)]
    found = safe_job(*trials)
    assert best_id(found) == "2"
    assert [row["id"] for row in pareto_front(found)] == ["2"]
    assert best_id(safe_job(measured(3, loss=1, heat=0), measured(4, loss=1, heat=0))) == "3"


def test_succeeded_and_infeasible_trials_count_as_ended() -> None:
    states = ["REQUESTED", "ACTIVE", "STOPPING", "SUCCEEDED", "INFEASIBLE"]
    assert count_ended(job(*(trial(number, state=state) for number, state in enumerate(states)))) == 2
    assert count_ended({}) == 0


def test_unreported_metrics_are_listed_with_their_trials() -> None:
    trials = [two(10, 0.5, None), two(2, 0.5, None), two(3, 0.5, 0.5), trial(4, state="INFEASIBLE")]
    assert unreported_metrics(job(*trials)) == {"loss": ["4"], "other": ["2", "4", "10"]}
    assert unreported_metrics(job(two(1, 0.5, 0.5))) == unreported_metrics(job()) == {}


def test_a_metric_of_an_intermediate_measurement_is_reported() -> None:
    on_the_way = {"measurements": [{"metrics": [{"metricId": "other", "value": 1}]}]}
    given = trial(1, 0.5) | on_the_way
    assert reported_metrics(given) == {"loss", "other"}
    assert unreported_metrics(job(given)) == {}


@pytest.mark.parametrize("state", ["REQUESTED", "ACTIVE", "STOPPING"])
def test_a_trial_under_way_may_still_report(state: str) -> None:
    assert unreported_metrics(job(trial(1, state=state))) == {}


@pytest.mark.parametrize(
    "reason",
    [
        "The replica workerpool0-0 exited with a non-zero status of 1. Termination reason: Error.",
        "Replicas low on memory: workerpool0",
        "Internal error occurred for the current attempt",
        "Resources are insufficient in region: us-east1.",
        "The following quota metrics exceed quota limits: x",
        "CANCELED",
    ],
)
def test_failed_trials_have_no_unreported_metrics(reason: str) -> None:
    assert unreported_metrics(job(trial(1, state="INFEASIBLE") | {"infeasibleReason": reason})) == {}
    silent = trial(1, state="INFEASIBLE") | {"infeasibleReason": "The trial ended without reporting the metric loss."}
    assert unreported_metrics(job(silent)).keys() == {"loss", "other"}
