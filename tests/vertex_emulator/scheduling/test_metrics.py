import json
import time

import pytest

from vertex_emulator.scheduling import metrics
from vertex_emulator.search import Measurement

STARTED = 1_700_000_000.0


def line(step, at, trial="1", **metrics):
    """One entry as cloudml-hypertune writes it: sorted keys, numbers as strings, `at` seconds after the start."""
    fields = {"timestamp": STARTED + at, "trial": trial, "global_step": str(step), "checkpoint_path": ""}
    return json.dumps(fields | {name: str(value) for name, value in metrics.items()}, sort_keys=True)


def file(*lines):
    return "".join(f"{text}\n" for text in lines)


def readings(*lines, metric_ids=("acc", "loss")):
    return metrics.parse(file(*lines), metric_ids, STARTED)


def test_a_file_gives_steps_seconds_and_values():
    assert readings(line(1, 2, acc=0.5), line(2, 4.5, acc=0.75)) == [
        Measurement(1, 2.0, {"acc": 0.5}),
        Measurement(2, 4.5, {"acc": 0.75}),
    ]


@pytest.mark.parametrize("text", ["", "\n", "\n\n"])
def test_an_empty_file_has_no_measurements(text):
    assert metrics.parse(text, ["acc"], STARTED) == []


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


def test_a_cut_file_loses_only_its_last_line():
    whole = file(line(1, 1, acc=0.5), line(2, 2, acc=0.6))
    first = readings(line(1, 1, acc=0.5))
    for end in range(whole.index("\n"), len(whole) - 2):
        assert metrics.parse(whole[:end], ["acc"], STARTED) == first


@pytest.mark.parametrize(
    "damage", ["{", "[1]", "3", "null", '"text"', "\x00\x00", "[" * 100_000, '{"acc": "1" "x"}', "1" * 5000]
)
def test_a_malformed_line_is_skipped(damage):
    assert readings(damage, line(1, 1, acc=0.5)) == [Measurement(1, 1.0, {"acc": 0.5})]


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-Infinity", "1e999", "high", "", "None", "true"])
def test_a_value_that_is_not_finite_is_skipped(value):
    assert readings(line(1, 1, acc=value)) == []
    assert readings(line(1, 1, acc=value), line(1, 2, loss=3)) == [Measurement(1, 2.0, {"loss": 3.0})]


@pytest.mark.parametrize(
    ("written", "value"),
    [('"0.5"', 0.5), ("0.5", 0.5), ('" 1e-3 "', 0.001), ("7", 7.0), ("NaN", None), ("true", None), ("[1]", None)],
)
def test_a_value_is_a_string_or_a_number(written, value):
    found = metrics.parse(f'{{"timestamp": {STARTED}, "global_step": "3", "acc": {written}}}', ["acc"], STARTED)
    assert found == ([] if value is None else [Measurement(3, 0.0, {"acc": value})])


@pytest.mark.parametrize(("step", "number"), [("12", 12), (12, 12), ("3.0", 3), ("later", 0), (None, 0), ("inf", 0)])
def test_a_malformed_step_is_step_zero(step, number):
    text = json.dumps({"timestamp": STARTED + 1, "global_step": step, "acc": "1"})
    assert metrics.parse(text, ["acc"], STARTED) == [Measurement(number, 1.0, {"acc": 1.0})]


def test_an_unusable_time_counts_as_the_start():
    early = json.dumps({"timestamp": STARTED - 5, "global_step": "1", "acc": "1"})
    assert metrics.parse(file('{"global_step": "2", "acc": "2"}', early), ["acc"], STARTED) == [
        Measurement(1, 0.0, {"acc": 1.0}),
        Measurement(2, 0.0, {"acc": 2.0}),
    ]


def test_metrics_outside_the_study_are_left_out():
    assert readings(line(1, 1, other=1), line(1, 1, acc=1)) == [Measurement(1, 1.0, {"acc": 1.0})]


def test_unknown_metrics_exclude_the_library_s_own_fields():
    text = file(line(1, 1, accuracy=1, acc=2), line(2, 2, val=3), line(3, 3, note="x"), '{"' + 200 * "a" + '": "1"}')
    assert metrics.unknown_names(text + '{"\\ud800": "1"}\n{"cut', ["acc", "loss"]) == ["accuracy", "val"]
    assert metrics.unknown_names(file(line(1, 1, acc=1)), ["acc"]) == metrics.unknown_names("", ["acc"]) == []
    assert len(metrics.unknown_names(file(line(1, 1, **{f"m{number}": 1 for number in range(9)})), ["acc"])) == 5


def test_reading_the_same_file_again_adds_nothing():
    found = readings(line(1, 1, acc=0.5), line(1, 2, loss=3), line(0, 3, acc=1), line(0, 4, acc=1))
    assert metrics.merge([], found) == metrics.merge(found, found) == metrics.merge(found, []) == found


@pytest.mark.parametrize("every", [1, 7, 50, 99])
@pytest.mark.parametrize(("pair", "stepless"), [(False, False), (False, True), (True, False)])
def test_what_is_known_outlives_the_last_hundred_entries(every, pair, stepless):
    """250 reports, the file holding the last 100 lines, read after every so many lines."""
    lines = []
    for number in range(250):
        step = 0 if stepless else number
        lines.append(line(step, 2 * number, acc=number % 5))
        if pair:
            lines.append(line(step, 2 * number + 1, loss=number))
    known = []
    for end in [*range(every, len(lines), every), len(lines)]:
        known = metrics.merge(known, readings(*lines[max(0, end - 100) : end]))
    assert known == readings(*lines)
    assert len(known) == 250


def test_a_step_known_in_part_is_completed():
    known = readings(line(1, 1, acc=0.5))
    assert metrics.merge(known, readings(line(1, 1, acc=0.5), line(1, 2, loss=3))) == [
        Measurement(1, 2.0, {"acc": 0.5, "loss": 3.0})
    ]
    assert metrics.merge(known, readings(line(1, 2, loss=3))) == [Measurement(1, 2.0, {"acc": 0.5, "loss": 3.0})]


def test_merging_changes_neither_of_its_arguments():
    known, fresh = readings(line(1, 1, acc=0.5)), readings(line(1, 2, loss=3))
    metrics.merge(known, fresh)
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
def test_a_hostile_file_is_read_in_time(write):
    text = write()
    started = time.process_time()
    found = metrics.parse(text, ["acc"], STARTED)
    merged = metrics.merge(metrics.merge([], found), found)
    metrics.unknown_names(text, ["acc"])
    assert time.process_time() - started < 5
    assert len(found) <= 1000
    assert merged == found


def test_a_trial_keeps_its_last_measurements():
    known = [Measurement(i, float(i), {"acc": 1.0}) for i in range(metrics.MAX_MEASUREMENTS)]
    merged = metrics.merge(known, readings(line(metrics.MAX_MEASUREMENTS, metrics.MAX_MEASUREMENTS, acc=2)))
    assert (len(merged), merged[0].step_count, merged[-1].step_count) == (
        metrics.MAX_MEASUREMENTS,
        1,
        metrics.MAX_MEASUREMENTS,
    )
