"""The measurements of a trial, read from the metric file that cloudml-hypertune writes.

The library rewrites the whole file at every report and keeps the last 100 entries, one JSON object per line:
`timestamp` (epoch seconds), `global_step` (a whole number as a string, "0" when the trainer gives none), and the
metric's value as a string under the metric's id. So the emulator polls the file and keeps what it has read.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from math import isfinite
from typing import Any

from vertex_emulator.search import Measurement

MAX_MEASUREMENTS = 10_000
"""Of a trial: those of the last steps are kept."""
_MAX_LINES, _MAX_LINE_LENGTH = 1000, 64 << 10  # the library writes 100 short ones
_RESERVED_FIELDS = {"timestamp", "trial", "global_step", "checkpoint_path"}


def parse_metric_file(metric_text: str, metric_ids: Sequence[str], trial_start: float) -> list[Measurement]:
    """Parse a metric file into measurements, ordered by step, then by time.

    `trial_start` is in epoch seconds. Entries of one step with different metrics become one measurement.
    A metric that repeats within a step, as from a trainer that reports no steps, starts another. Values that are nan or
    infinite are ignored, so a trial that reports nothing else is infeasible. Lines that are not entries are skipped,
    such as the last line of a file that is still being written.
    """
    measurements_by_step: dict[int, list[Measurement]] = {}
    for entry in _iterate_entries_of_last_lines(metric_text):
        values = {metric_id: _parse_finite_number_or_none(entry.get(metric_id)) for metric_id in metric_ids}
        metrics = {metric_id: value for metric_id, value in values.items() if value is not None}
        if metrics:
            timestamp = _parse_finite_number_or_none(entry.get("timestamp"))
            elapsed = 0.0 if timestamp is None else max(timestamp - trial_start, 0.0)
            step_count = int(_parse_finite_number_or_none(entry.get("global_step")) or 0)
            _merge_into_latest_or_append_in_place(measurements_by_step, Measurement(step_count, elapsed, metrics))
    return _flatten_and_sort(measurements_by_step)


def find_some_unknown_metric_names(metric_text: str, metric_ids: Sequence[str]) -> list[str]:
    """Find up to five names in a metric file that are not metrics of the study, probably misspelt."""
    tags = {
        tag
        for entry in _iterate_entries_of_last_lines(metric_text)
        for tag, value in entry.items()
        if _parse_finite_number_or_none(value) is not None
    }
    return sorted(tag for tag in tags - _RESERVED_FIELDS - {*metric_ids} if len(tag) <= 128 and tag.isprintable())[:5]


def merge_measurements(known: Sequence[Measurement], latest: Sequence[Measurement]) -> list[Measurement]:
    """Return `known` with the measurements that `latest`, a later reading of the file, adds, in the same order.

    A step that `known` has in part is completed. Entries of a step whose first ones have left the file add nothing.
    Returns the last MAX_MEASUREMENTS.
    """
    measurements_by_step: dict[int, list[Measurement]] = {}
    for measurement in known:
        measurements_by_step.setdefault(measurement.step_count, []).append(measurement)
    for added in latest:
        if not any(
            _is_as_late_with_all_metrics_of(other, added) for other in measurements_by_step.get(added.step_count, [])
        ):
            _merge_into_latest_or_append_in_place(measurements_by_step, added)
    return _flatten_and_sort(measurements_by_step)[-MAX_MEASUREMENTS:]


def _iterate_entries_of_last_lines(metric_text: str) -> Iterator[dict[str, Any]]:
    for line in metric_text.rsplit("\n", _MAX_LINES)[-_MAX_LINES:]:
        yield _parse_entry_or_empty(line)


def _parse_entry_or_empty(line: str) -> dict[str, Any]:
    if len(line) > _MAX_LINE_LENGTH:
        return {}
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _parse_finite_number_or_none(value: object) -> float | None:
    """Parse a finite number, which the library writes as a string; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _merge_into_latest_or_append_in_place(
    measurements_by_step: dict[int, list[Measurement]], added: Measurement
) -> None:
    """Complete the step's latest measurement with further metrics, or append another one to the step."""
    reported = measurements_by_step.setdefault(added.step_count, [])
    latest = reported[-1] if reported else None
    if latest is not None and _adds_metrics_without_conflict(added, latest):
        elapsed = max(latest.elapsed, added.elapsed)
        reported[-1] = Measurement(added.step_count, elapsed, {**latest.metrics, **added.metrics})
    else:
        reported.append(added)


def _adds_metrics_without_conflict(added: Measurement, latest: Measurement) -> bool:
    shared = added.metrics.keys() & latest.metrics.keys()
    return shared != added.metrics.keys() and all(added.metrics[id_] == latest.metrics[id_] for id_ in shared)


def _is_as_late_with_all_metrics_of(measurement: Measurement, other: Measurement) -> bool:
    return measurement.elapsed >= other.elapsed and other.metrics.items() <= measurement.metrics.items()


def _flatten_and_sort(measurements_by_step: dict[int, list[Measurement]]) -> list[Measurement]:
    """Return all measurements by step, then by time, as the API orders them."""
    return sorted(chain.from_iterable(measurements_by_step.values()), key=lambda each: (each.step_count, each.elapsed))
