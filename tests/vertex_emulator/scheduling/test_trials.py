import math

import pytest

from tests.vertex_emulator.jobs import pool, tuning_job, tuning_job_spec
from tests.vertex_emulator.scheduling.test_metrics import line, readings
from vertex_emulator.scheduling.trials import final_measurement, job_spec
from vertex_emulator.search import Measurement


def study(goal=None, selection=None):
    metric = {"metricId": "acc"} | ({"goal": goal} if goal else {})
    chosen = {"measurementSelectionType": selection} if selection else {}
    return {"metrics": [metric, {"metricId": "loss", "goal": "MINIMIZE"}], "parameters": []} | chosen


@pytest.mark.parametrize("selection", [None, "LAST_MEASUREMENT", "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED"])
def test_a_trial_is_judged_by_its_last_measurement(selection):
    measurements = readings(line(1, 1, acc=0.9), line(3, 3, acc=0.5), line(2, 2, acc=0.7))
    assert final_measurement(measurements, study(selection=selection)) == Measurement(3, 3.0, {"acc": 0.5})


def test_the_last_measurement_is_the_last_reported():
    measurements = readings(line(9, 1, acc=0.9), line(0, 2, acc=0.4))
    assert final_measurement(measurements, study()) == Measurement(0, 2.0, {"acc": 0.4})


def test_without_times_the_highest_step_is_last():
    measurements = [Measurement(step, 0.0, {"acc": step / 10}) for step in range(4)]
    assert final_measurement(measurements, study()) == measurements[-1]


@pytest.mark.parametrize(("goal", "step"), [("MAXIMIZE", 2), ("MINIMIZE", 3), ("GOAL_TYPE_UNSPECIFIED", 2), (None, 2)])
def test_the_first_metric_selects_the_best_measurement(goal, step):
    measurements = readings(
        line(1, 1, acc=0.5, loss=0), line(2, 2, acc=0.9, loss=9), line(3, 3, acc=0.1, loss=5), line(4, 4, acc=0.9)
    )
    assert final_measurement(measurements, study(goal, "BEST_MEASUREMENT")).step_count == step


@pytest.mark.parametrize("selection", ["LAST_MEASUREMENT", "BEST_MEASUREMENT"])
def test_a_measurement_without_the_first_metric_judges_nothing(selection):
    judged = line(1, 1, acc=0.5)
    assert final_measurement(readings(judged, line(2, 2, loss=1)), study(selection=selection)).step_count == 1
    assert final_measurement(readings(line(2, 2, loss=1)), study(selection=selection)) is None
    assert final_measurement([], study(selection=selection)) is None


def test_only_nan_values_give_no_final_measurement():
    assert final_measurement(readings(line(1, 1, acc=math.nan), line(2, 2, acc=math.nan)), study()) is None


BOTH = {"metrics": [{"metricId": "acc"}, {"metricId": "loss", "goal": "MINIMIZE"}], "parameters": []}
BEST = {"measurementSelectionType": "BEST_MEASUREMENT"}
SAFE = {"metricId": "heat", "goal": "MINIMIZE", "safetyConfig": {"safetyThreshold": 10.0}}


def test_later_objectives_break_ties_of_the_first():
    measurements = readings(line(1, 1, acc=0.9, loss=5), line(2, 2, acc=0.9, loss=3), line(3, 3, acc=0.8, loss=1))
    assert final_measurement(measurements, BOTH | BEST).step_count == 2


def test_a_final_measurement_includes_metrics_of_other_steps():
    measurements = readings(line(1, 1, acc=0.5, loss=4), line(2, 2, acc=0.6), line(0, 3, loss=2))
    assert final_measurement(measurements, BOTH) == Measurement(2, 2.0, {"acc": 0.6, "loss": 2.0})


def test_a_safe_measurement_beats_a_better_unsafe_one():
    study_spec = {"metrics": [SAFE, {"metricId": "acc"}], "parameters": []} | BEST
    lines = [line(1, 1, acc=0.5, heat=9), line(2, 2, acc=0.6, heat=10), line(3, 3, acc=0.9, heat=10.1)]
    measurements = readings(*lines, metric_ids=("acc", "heat"))
    assert final_measurement(measurements, study_spec).step_count == 2
    assert final_measurement(readings(line(1, 1, heat=1), metric_ids=("acc", "heat")), study_spec) is None


def test_parameters_become_typed_flags_of_every_pool() -> None:
    spec = {"workerPoolSpecs": [pool(args=["--a"]), {}, pool()], "baseOutputDirectory": {"outputUriPrefix": "gs://b/o"}}
    study = tuning_job(tuning_job_spec(trialJobSpec=spec))
    made = job_spec(study, 3, {"n": 4, "batch": 256.0, "rate": 1e-05, "kind": "sgd"})
    flags = ["--n=4", "--batch=256.0", "--rate=1e-05", "--kind=sgd"]
    assert made["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--a", *flags]
    assert made["workerPoolSpecs"][1] == {}
    assert made["workerPoolSpecs"][2]["containerSpec"]["args"] == flags
    assert made["baseOutputDirectory"] == {"outputUriPrefix": "gs://b/o/3/"}
    assert spec["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--a"]
