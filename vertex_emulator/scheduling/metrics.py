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


def parse(metric_text: str, metric_ids: Sequence[str], trial_start: float) -> list[Measurement]:
    """Parse a metric file into measurements, ordered by step, then by time.

    `trial_start` is in epoch seconds. Entries of one step with different metrics become one measurement.
    A metric that repeats within a step, as from a trainer that reports no steps, starts another. Values that are nan or
    infinite are ignored, so a trial that reports nothing else is infeasible. Lines that are not entries are skipped,
    such as the last line of a file that is still being written.
    """
    steps = _Steps()
    for entry in _entries(metric_text):
        values = {metric_id: _number(entry.get(metric_id)) for metric_id in metric_ids}
        metrics = {metric_id: value for metric_id, value in values.items() if value is not None}
        if metrics:
            timestamp = _number(entry.get("timestamp"))
            elapsed = 0.0 if timestamp is None else max(timestamp - trial_start, 0.0)
            steps.report(Measurement(int(_number(entry.get("global_step")) or 0), elapsed, metrics))
    return steps.sorted()


def merge(known: Sequence[Measurement], latest: Sequence[Measurement]) -> list[Measurement]:
    """Return `known` with the measurements that `latest`, a later reading of the file, adds, in the same order.

    A step that `known` has in part is completed. Entries of a step whose first ones have left the file add nothing.
    Returns the last MAX_MEASUREMENTS.
    """
    steps = _Steps()
    for measurement in known:
        steps.setdefault(measurement.step_count, []).append(measurement)
    for added in latest:
        if not any(
            other.elapsed >= added.elapsed and added.metrics.items() <= other.metrics.items()
            for other in steps.get(added.step_count, [])
        ):
            steps.report(added)
    return steps.sorted()[-MAX_MEASUREMENTS:]


class _Steps(dict[int, list[Measurement]]):
    """The measurements of each step."""

    def report(self, added: Measurement) -> None:
        """Complete the step's latest measurement with further metrics, or append another one to the step."""
        reported = self.setdefault(added.step_count, [])
        latest = reported[-1] if reported else None
        shared = added.metrics.keys() & latest.metrics.keys() if latest is not None else set()
        if (
            latest is not None
            and shared != added.metrics.keys()
            and all(added.metrics[id_] == latest.metrics[id_] for id_ in shared)
        ):
            elapsed = max(latest.elapsed, added.elapsed)
            reported[-1] = Measurement(added.step_count, elapsed, {**latest.metrics, **added.metrics})
        else:
            reported.append(added)

    def sorted(self) -> list[Measurement]:
        """All measurements by step, then by time, as the API orders them."""
        return sorted(chain.from_iterable(self.values()), key=lambda each: (each.step_count, each.elapsed))


def unknown_names(metric_text: str, metric_ids: Sequence[str]) -> list[str]:
    """Up to five names in a metric file that are not metrics of the study, probably misspelt."""
    names = {name for entry in _entries(metric_text) for name, value in entry.items() if _number(value) is not None}
    unknown = names - _RESERVED_FIELDS - {*metric_ids}
    return sorted(name for name in unknown if len(name) <= 128 and name.isprintable())[:5]


def _entries(metric_text: str) -> Iterator[dict[str, Any]]:
    """The entries of the last lines; {} for a line that is none."""
    for line in metric_text.rsplit("\n", _MAX_LINES)[-_MAX_LINES:]:
        entry = None
        if len(line) <= _MAX_LINE_LENGTH:
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None
        yield entry if isinstance(entry, dict) else {}


def _number(value: object) -> float | None:
    """Parse a finite number, which the library writes as a string; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
