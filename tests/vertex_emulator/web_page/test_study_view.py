"""What the page is given of a study."""

from typing import Any

from tests.vertex_emulator.jobs import LOCATION
from vertex_api.names import HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database.records import RUNNING, Job, Trial
from vertex_emulator.web_page.study_view import build_study_view
from vertex_emulator.web_page.thinned_trial_cache import build_thinned_trial, compute_max_points_per_trial

PARAMETERS = [
    {"parameterId": "rate", "scaleType": "UNIT_LOG_SCALE", "doubleValueSpec": {"minValue": 0.001, "maxValue": 1.0}},
    {
        "parameterId": "kind",
        "categoricalValueSpec": {"values": ["deep", "wide"]},
        "conditionalParameterSpecs": [
            {
                "parentCategoricalValues": {"values": ["deep"]},
                "parameterSpec": {"parameterId": "layers", "integerValueSpec": {"minValue": 1, "maxValue": 9}},
            }
        ],
    },
]


def study(goals: dict[str, str]) -> Job:
    metrics = [{"metricId": name, "goal": goal} for name, goal in goals.items()]
    spec = {
        "displayName": "s",
        "maxTrialCount": 9,
        "studySpec": {"metrics": metrics, "parameters": PARAMETERS},
        "trialJobSpec": {},
    }
    return Job("1", 1, HYPERPARAMETER_TUNING_JOB, LOCATION, spec, RUNNING, created=0, updated=0)


def measured(step: int, **values: float) -> dict[str, Any]:
    metrics = [{"metricId": name, "value": value} for name, value in values.items()]
    return {"stepCount": step, "elapsedDuration": f"{step / 2}s", "metrics": metrics}


def trial(number: int, measurements: list[dict[str, Any]]) -> Trial:
    return Trial("1", number, "SUCCEEDED", {"rate": 0.1}, f"j{number}", 0, 10**9, tuple(measurements), measurements[-1])


def view(job: Job, trials: list[Trial]) -> dict[str, Any]:
    return build_study_view(
        job, [build_thinned_trial(each, compute_max_points_per_trial(len(trials))) for each in trials]
    )


def test_conditional_parameters_follow_their_parent_and_name_it() -> None:
    shown = view(study({"loss": "MINIMIZE"}), [])["parameters"]
    assert [(found["id"], found["type"], found["parent"]) for found in shown] == [
        ("rate", "DOUBLE", None),
        ("kind", "CATEGORICAL", None),
        ("layers", "INTEGER", "kind"),
    ]
    assert (shown[0]["scale"], shown[0]["min"], shown[0]["max"]) == ("UNIT_LOG_SCALE", 0.001, 1.0)
    assert shown[1]["values"] == ["deep", "wide"]
    assert (shown[2]["min"], shown[2]["max"]) == (1.0, 9.0)


def test_best_trials_follow_goal_of_each_metric() -> None:
    trials = [trial(1, [measured(1, loss=1.0, size=9.0)]), trial(2, [measured(1, loss=2.0, size=1.0)])]
    trials.append(trial(3, [measured(1, loss=3.0, size=2.0)]))
    assert view(study({"loss": "MINIMIZE"}), trials)["best"] == ["1"]
    assert view(study({"loss": "MAXIMIZE"}), trials)["best"] == ["3"]
    assert view(study({"loss": "MINIMIZE", "size": "MINIMIZE"}), trials)["best"] == ["1", "2"]


def test_safety_threshold_is_shown_and_limits_best_trials() -> None:
    job = study({"loss": "MINIMIZE", "heat": "MINIMIZE"})
    job.spec["studySpec"]["metrics"][1]["safetyConfig"] = {"safetyThreshold": 5.0}
    trials = [trial(1, [measured(1, loss=1.0, heat=9.0)]), trial(2, [measured(1, loss=2.0, heat=1.0)])]
    shown = view(job, trials)
    assert [(metric["id"], metric["threshold"]) for metric in shown["metrics"]] == [("loss", None), ("heat", 5.0)]
    assert shown["best"] == ["2"]


def test_curve_has_gap_where_metric_is_missing() -> None:
    trials = [trial(1, [measured(1, loss=1.0), measured(2, size=3.0), measured(3, loss=0.5, size=2.0)])]
    curve = view(study({"loss": "MINIMIZE", "size": "MINIMIZE"}), trials)["trials"][0]["curve"]
    assert curve == {
        "measured": 3,
        "steps": [1, 2, 3],
        "seconds": [0.5, 1.0, 1.5],
        "values": {"loss": [1.0, None, 0.5], "size": [None, 3.0, 2.0]},
    }


def test_thinned_curve_keeps_its_last_point() -> None:
    trials = [trial(1, [measured(step, loss=1.0) for step in range(1, 1001)])]
    curve = view(study({"loss": "MINIMIZE"}), trials)["trials"][0]["curve"]
    assert 200 < len(curve["steps"]) <= 300
    assert (curve["steps"][-1], curve["measured"]) == (1000, 1000)


def test_curves_of_long_study_stay_small() -> None:
    trials = [trial(number, [measured(step, loss=1.0) for step in range(1, 101)]) for number in range(1, 1001)]
    shown = view(study({"loss": "MINIMIZE"}), trials)["trials"]
    assert sum(len(found["curve"]["steps"]) for found in shown) <= 20_000
