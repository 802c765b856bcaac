"""Trials: summed up in order, and the best of them by the study's goal."""

from typing import Any

import pytest

from vertex.trials import best, front, summaries, summary


def trial(number: int, value: float | None = None, state: str = "SUCCEEDED", metric: str = "loss") -> dict[str, Any]:
    measured = {"finalMeasurement": {"metrics": [{"metricId": metric, "value": value}]}} if value is not None else {}
    return {"id": str(number), "state": state, **measured}


def job(*trials: dict[str, Any], goal: str | None = "MINIMIZE") -> dict[str, Any]:
    metric = {"metricId": "loss"} | ({"goal": goal} if goal else {})
    return {"studySpec": {"metrics": [metric, {"metricId": "other", "goal": "MAXIMIZE"}]}, "trials": list(trials)}


def best_id(job: dict[str, Any]) -> str | None:
    row = best(job)
    return str(row["id"]) if row else None


@pytest.mark.parametrize(("goal", "number"), [("MINIMIZE", "2"), ("MAXIMIZE", "3"), (None, "3")])
def test_the_best_trial_is_the_one_by_the_goal_which_is_to_maximize_unless_it_says_otherwise(
    goal: str | None, number: str
) -> None:
    assert best_id(job(trial(1, 0.5), trial(2, 0.25), trial(3, 0.75), goal=goal)) == number


@pytest.mark.parametrize("goal", ["MINIMIZE", "MAXIMIZE"])
def test_of_equal_trials_the_earlier_one_is_the_best_whatever_the_order_they_come_in(goal: str) -> None:
    assert best_id(job(trial(10, 0.5), trial(9, 0.5), trial(11, 0.5), goal=goal)) == "9"


@pytest.mark.parametrize("state", ["INFEASIBLE", "ACTIVE", "STOPPING", "REQUESTED"])
def test_only_a_trial_that_succeeded_can_be_the_best(state: str) -> None:
    assert best_id(job(trial(1, 0.1, state=state), trial(2, 0.9))) == "2"


def test_a_trial_without_the_first_metric_cannot_be_the_best() -> None:
    assert best_id(job(trial(1, 0.1, metric="other"), trial(2), trial(3, 0.9))) == "3"


def test_there_is_no_best_trial_where_none_succeeded() -> None:
    assert best(job()) is None
    assert best(job(trial(1), trial(2, 0.1, state="INFEASIBLE"))) is None


def test_a_metric_whose_value_is_left_out_is_zero() -> None:
    zero = {"id": "1", "state": "SUCCEEDED", "finalMeasurement": {"metrics": [{"metricId": "loss"}]}}
    assert summary(zero)["metrics"] == {"loss": 0.0}
    assert best_id(job(zero, trial(2, 0.1))) == "1"


def test_trials_are_ordered_by_number_and_not_as_texts() -> None:
    given = job(trial(10), trial(2), trial(1))
    assert [row["id"] for row in summaries(given)] == ["1", "2", "10"]


def test_a_job_without_trials_has_no_rows() -> None:
    assert summaries({"studySpec": {}}) == []


def test_a_row_has_parameters_and_metrics_by_id_and_shows_whole_numbers_as_such() -> None:
    given = trial(1, 0.5) | {
        "parameters": [
            {"parameterId": "units", "value": 32.0},
            {"parameterId": "rate", "value": 0.1},
            {"parameterId": "activation", "value": "relu"},
        ]
    }
    row = summary(given)
    assert row == {
        "id": "1",
        "state": "SUCCEEDED",
        "parameters": {"units": 32, "rate": 0.1, "activation": "relu"},
        "metrics": {"loss": 0.5},
    }
    assert isinstance(row["parameters"]["units"], int)


def test_the_reason_of_an_infeasible_trial_is_in_its_row() -> None:
    row = summary(trial(1, state="INFEASIBLE") | {"infeasibleReason": "exit code 3"})
    assert (row["metrics"], row["infeasibleReason"]) == ({}, "exit code 3")


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


def test_a_trial_that_is_not_safe_or_does_not_say_so_is_never_the_best() -> None:
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


def test_the_front_is_what_no_safe_trial_beats_in_every_objective() -> None:
    trials = [
        measured(1, loss=1, cost=3, heat=0),
        measured(2, loss=2, cost=2, heat=0),
        measured(3, loss=2, cost=3, heat=0),  # the second is as good in one and better in the other
        measured(4, loss=0, cost=0, heat=9),  # not safe
        measured(5, loss=0, heat=0),  # without a cost
        measured(6, loss=2, cost=2, heat=0),  # as good as the second
    ]
    assert [row["id"] for row in front(safe_job(*trials, safetyThreshold=1))] == ["1", "2", "6"]


def test_the_front_of_one_objective_is_its_best_trial() -> None:
    found = safe_job(measured(1, loss=2, heat=0), measured(2, loss=1, heat=0), measured(3, loss=0, heat=9))
    found["studySpec"]["metrics"].pop()
    assert [row["id"] for row in front(found)] == ["2"]
    assert front(found | {"trials": []}) == []
