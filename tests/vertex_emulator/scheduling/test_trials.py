import json
import math
import time

import pytest

from tests.vertex_emulator.jobs import pool, tuning_job, tuning_job_spec
from vertex_emulator.scheduling import trials
from vertex_emulator.scheduling.trials import final_measurement, job_spec
from vertex_emulator.search import Measurement

STARTED = 1_700_000_000.0


def line(step, at, trial="1", **metrics):
    """One entry as cloudml-hypertune writes it: sorted keys, numbers as strings, `at` seconds after the start."""
    fields = {"timestamp": STARTED + at, "trial": trial, "global_step": str(step), "checkpoint_path": ""}
    return json.dumps(fields | {name: str(value) for name, value in metrics.items()}, sort_keys=True)


def file(*lines):
    return "".join(f"{text}\n" for text in lines)


def readings(*lines, metric_ids=("acc", "loss")):
    return trials.parse_metrics(file(*lines), metric_ids, STARTED)


def test_file_gives_steps_seconds_and_values():
    assert readings(line(1, 2, acc=0.5), line(2, 4.5, acc=0.75)) == [
        Measurement(1, 2.0, {"acc": 0.5}),
        Measurement(2, 4.5, {"acc": 0.75}),
    ]


@pytest.mark.parametrize("text", ["", "\n", "\n\n"])
def test_empty_file_has_no_measurements(text):
    assert trials.parse_metrics(text, ["acc"], STARTED) == []


def test_metrics_of_one_step_are_one_measurement():
    found = readings(line(1, 1, acc=0.5), line(1, 2, loss=3), line(2, 3, loss=2), line(2, 4, acc=0.6))
    assert found == [
        Measurement(1, 2.0, {"acc": 0.5, "loss": 3.0}),
        Measurement(2, 4.0, {"acc": 0.6, "loss": 2.0}),
    ]


def test_measurements_are_ordered_by_step_then_time():
    found = readings(line(10, 1, acc=1), line(2, 2, acc=2), line(0, 4, acc=4), line(0, 3, acc=3))
    assert [(measurement.step_count, measurement.elapsed) for measurement in found] == [(0, 3), (0, 4), (2, 2), (10, 1)]


def test_values_without_steps_are_all_kept():
    found = readings(line(0, 1, acc=0.5), line(0, 2, acc=0.7), line(0, 3, acc=0.5))
    assert found == [Measurement(0, at, {"acc": value}) for at, value in ((1, 0.5), (2, 0.7), (3, 0.5))]


def test_cut_file_loses_only_its_last_line():
    whole = file(line(1, 1, acc=0.5), line(2, 2, acc=0.6))
    first = readings(line(1, 1, acc=0.5))
    for end in range(whole.index("\n"), len(whole) - 2):
        assert trials.parse_metrics(whole[:end], ["acc"], STARTED) == first


@pytest.mark.parametrize(
    "damage", ["{", "[1]", "3", "null", '"text"', "\x00\x00", "[" * 100_000, '{"acc": "1" "x"}', "1" * 5000]
)
def test_malformed_line_is_skipped(damage):
    assert readings(damage, line(1, 1, acc=0.5)) == [Measurement(1, 1.0, {"acc": 0.5})]


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-Infinity", "1e999", "high", "", "None", "true"])
def test_value_that_is_not_finite_is_skipped(value):
    assert readings(line(1, 1, acc=value)) == []
    assert readings(line(1, 1, acc=value), line(1, 2, loss=3)) == [Measurement(1, 2.0, {"loss": 3.0})]


@pytest.mark.parametrize(
    ("written", "value"),
    [('"0.5"', 0.5), ("0.5", 0.5), ('" 1e-3 "', 0.001), ("7", 7.0), ("NaN", None), ("true", None), ("[1]", None)],
)
def test_value_is_string_or_number(written, value):
    found = trials.parse_metrics(f'{{"timestamp": {STARTED}, "global_step": "3", "acc": {written}}}', ["acc"], STARTED)
    assert found == ([] if value is None else [Measurement(3, 0.0, {"acc": value})])


@pytest.mark.parametrize(("step", "number"), [("12", 12), (12, 12), ("3.0", 3), ("later", 0), (None, 0), ("inf", 0)])
def test_malformed_step_is_step_zero(step, number):
    text = json.dumps({"timestamp": STARTED + 1, "global_step": step, "acc": "1"})
    assert trials.parse_metrics(text, ["acc"], STARTED) == [Measurement(number, 1.0, {"acc": 1.0})]


def test_unusable_time_counts_as_start():
    early = json.dumps({"timestamp": STARTED - 5, "global_step": "1", "acc": "1"})
    assert trials.parse_metrics(file('{"global_step": "2", "acc": "2"}', early), ["acc"], STARTED) == [
        Measurement(1, 0.0, {"acc": 1.0}),
        Measurement(2, 0.0, {"acc": 2.0}),
    ]


def test_metrics_outside_study_are_left_out():
    assert readings(line(1, 1, other=1), line(1, 1, acc=1)) == [Measurement(1, 1.0, {"acc": 1.0})]


def test_unknown_metrics_exclude_library_own_fields():
    text = file(line(1, 1, accuracy=1, acc=2), line(2, 2, val=3), line(3, 3, note="x"), '{"' + 200 * "a" + '": "1"}')
    assert trials.unknown_names(text + '{"\\ud800": "1"}\n{"cut', ["acc", "loss"]) == ["accuracy", "val"]
    assert trials.unknown_names(file(line(1, 1, acc=1)), ["acc"]) == trials.unknown_names("", ["acc"]) == []
    assert len(trials.unknown_names(file(line(1, 1, **{f"m{number}": 1 for number in range(9)})), ["acc"])) == 5


def test_reading_same_file_again_adds_nothing():
    found = readings(line(1, 1, acc=0.5), line(1, 2, loss=3), line(0, 3, acc=1), line(0, 4, acc=1))
    assert (
        trials.merge_metrics([], found)
        == trials.merge_metrics(found, found)
        == trials.merge_metrics(found, [])
        == found
    )


@pytest.mark.parametrize("every", [1, 7, 50, 99])
@pytest.mark.parametrize(("pair", "stepless"), [(False, False), (False, True), (True, False)])
def test_what_is_known_outlives_last_hundred_entries(every, pair, stepless):
    """250 reports, the file holding the last 100 lines, read after every so many lines."""
    lines = []
    for number in range(250):
        step = 0 if stepless else number
        lines.append(line(step, 2 * number, acc=number % 5))
        if pair:
            lines.append(line(step, 2 * number + 1, loss=number))
    known = []
    for end in [*range(every, len(lines), every), len(lines)]:
        known = trials.merge_metrics(known, readings(*lines[max(0, end - 100) : end]))
    assert known == readings(*lines)
    assert len(known) == 250


def test_step_known_in_part_is_completed():
    known = readings(line(1, 1, acc=0.5))
    assert trials.merge_metrics(known, readings(line(1, 1, acc=0.5), line(1, 2, loss=3))) == [
        Measurement(1, 2.0, {"acc": 0.5, "loss": 3.0})
    ]
    assert trials.merge_metrics(known, readings(line(1, 2, loss=3))) == [Measurement(1, 2.0, {"acc": 0.5, "loss": 3.0})]


def test_merging_changes_neither_of_its_arguments():
    known, fresh = readings(line(1, 1, acc=0.5)), readings(line(1, 2, loss=3))
    trials.merge_metrics(known, fresh)
    assert known == [Measurement(1, 1.0, {"acc": 0.5})]
    assert fresh == [Measurement(1, 2.0, {"loss": 3.0})]


@pytest.mark.parametrize(
    "write",
    [
        lambda: "\n" * (4 << 20),
        lambda: json.dumps({f"tag{i}": i for i in range(200_000)}),
        lambda: "".join(f'{{"global_step":"0","acc":"{i}"}}\n' for i in range(100_000)),
        lambda: "[" * (4 << 20),
        lambda: '{"acc":"' + "9" * (4 << 20) + '"}',
    ],
    ids=["lines", "names", "measurements", "brackets", "digits"],
)
def test_hostile_file_is_read_in_time(write):
    text = write()
    started = time.process_time()
    found = trials.parse_metrics(text, ["acc"], STARTED)
    merged = trials.merge_metrics(trials.merge_metrics([], found), found)
    trials.unknown_names(text, ["acc"])
    assert time.process_time() - started < 5
    assert len(found) <= 1000
    assert merged == found


def test_trial_keeps_its_last_measurements():
    known = [Measurement(i, float(i), {"acc": 1.0}) for i in range(trials.MAX_MEASUREMENTS)]
    merged = trials.merge_metrics(known, readings(line(trials.MAX_MEASUREMENTS, trials.MAX_MEASUREMENTS, acc=2)))
    assert (len(merged), merged[0].step_count, merged[-1].step_count) == (
        trials.MAX_MEASUREMENTS,
        1,
        trials.MAX_MEASUREMENTS,
    )


def study(goal=None, selection=None):
    metric = {"metricId": "acc"} | ({"goal": goal} if goal else {})
    chosen = {"measurementSelectionType": selection} if selection else {}
    return {"metrics": [metric, {"metricId": "loss", "goal": "MINIMIZE"}], "parameters": []} | chosen


@pytest.mark.parametrize("selection", [None, "LAST_MEASUREMENT", "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED"])
def test_trial_is_judged_by_its_last_measurement(selection):
    measurements = readings(line(1, 1, acc=0.9), line(3, 3, acc=0.5), line(2, 2, acc=0.7))
    assert final_measurement(measurements, study(selection=selection)) == Measurement(3, 3.0, {"acc": 0.5})


def test_last_measurement_is_last_reported():
    measurements = readings(line(9, 1, acc=0.9), line(0, 2, acc=0.4))
    assert final_measurement(measurements, study()) == Measurement(0, 2.0, {"acc": 0.4})


def test_without_times_highest_step_is_last():
    measurements = [Measurement(step, 0.0, {"acc": step / 10}) for step in range(4)]
    assert final_measurement(measurements, study()) == measurements[-1]


@pytest.mark.parametrize(("goal", "step"), [("MAXIMIZE", 2), ("MINIMIZE", 3), ("GOAL_TYPE_UNSPECIFIED", 2), (None, 2)])
def test_first_metric_selects_best_measurement(goal, step):
    measurements = readings(
        line(1, 1, acc=0.5, loss=0), line(2, 2, acc=0.9, loss=9), line(3, 3, acc=0.1, loss=5), line(4, 4, acc=0.9)
    )
    assert final_measurement(measurements, study(goal, "BEST_MEASUREMENT")).step_count == step


@pytest.mark.parametrize("selection", ["LAST_MEASUREMENT", "BEST_MEASUREMENT"])
def test_measurement_without_first_metric_judges_nothing(selection):
    judged = line(1, 1, acc=0.5)
    assert final_measurement(readings(judged, line(2, 2, loss=1)), study(selection=selection)).step_count == 1
    assert final_measurement(readings(line(2, 2, loss=1)), study(selection=selection)) is None
    assert final_measurement([], study(selection=selection)) is None


def test_only_nan_values_give_no_final_measurement():
    assert final_measurement(readings(line(1, 1, acc=math.nan), line(2, 2, acc=math.nan)), study()) is None


BOTH = {"metrics": [{"metricId": "acc"}, {"metricId": "loss", "goal": "MINIMIZE"}], "parameters": []}
BEST = {"measurementSelectionType": "BEST_MEASUREMENT"}
SAFE = {"metricId": "heat", "goal": "MINIMIZE", "safetyConfig": {"safetyThreshold": 10.0}}


def test_later_objectives_break_ties_of_first():
    measurements = readings(line(1, 1, acc=0.9, loss=5), line(2, 2, acc=0.9, loss=3), line(3, 3, acc=0.8, loss=1))
    assert final_measurement(measurements, BOTH | BEST).step_count == 2


def test_final_measurement_includes_metrics_of_other_steps():
    measurements = readings(line(1, 1, acc=0.5, loss=4), line(2, 2, acc=0.6), line(0, 3, loss=2))
    assert final_measurement(measurements, BOTH) == Measurement(2, 2.0, {"acc": 0.6, "loss": 2.0})


def test_safe_measurement_beats_better_unsafe_one():
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
