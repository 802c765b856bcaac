"""What a trial reports: the metric file that cloudml-hypertune writes, as a Vertex study's measurements.

The library rewrites the whole file at every report and keeps the last 100 entries, one JSON object per line:
`timestamp` (epoch seconds), `global_step` (a whole number as a string, "0" when the trainer gives none), and the
metric's value as a string under the metric's id. So a reader polls, and what it knows outlives the file.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

from vertex_api.scalars import parse_seconds
from vertex_api.types import StudySpec
from vertex_emulator.search.objectives import is_safe, objectives

_OWN_FIELDS = {"timestamp", "trial", "global_step", "checkpoint_path"}


@dataclass(frozen=True)
class Measurement:
    """Values reported together: at `step_count`, `elapsed` seconds after the trial's start, by metric id."""

    step_count: int
    elapsed: float
    metrics: dict[str, float]


def read(text: str, metric_ids: Sequence[str], started: float) -> list[Measurement]:
    """The measurements in a metric file, ordered by step, then by time.

    `started` is the trial's start in epoch seconds. Entries of one step that give different metrics are one
    measurement; a metric that comes again at a step (a trainer that gives no steps) starts another. A value that is
    nan or infinite is not a measurement: a trial that reports nothing else has none, and is infeasible. A line that is
    not an entry (the last one of a file that is being written) is passed over.
    """
    steps: dict[int, list[Measurement]] = {}
    for line in text.split("\n"):
        entry = _entry(line)
        values = {metric_id: _number(entry.get(metric_id)) for metric_id in metric_ids}
        metrics = {metric_id: value for metric_id, value in values.items() if value is not None}
        if metrics:
            timestamp = _number(entry.get("timestamp"))
            elapsed = 0.0 if timestamp is None else max(timestamp - started, 0.0)
            _add(steps, Measurement(int(_number(entry.get("global_step")) or 0), elapsed, metrics))
    return _ordered(steps)


def strangers(text: str, metric_ids: Sequence[str]) -> list[str]:
    """The tags in a metric file that are none of the study's metrics, at most five: reported under another name."""
    tags = {tag for line in text.split("\n") for tag, value in _entry(line).items() if _number(value) is not None}
    return sorted(tag for tag in tags - _OWN_FIELDS - {*metric_ids} if len(tag) <= 128 and tag.isprintable())[:5]


def merge(known: Sequence[Measurement], fresh: Sequence[Measurement]) -> list[Measurement]:
    """`known` and what `fresh`, a later reading of the file, adds to it, ordered like either.

    A step that `known` has in part is completed; the rest of a step whose beginning has left the file adds nothing.
    """
    steps = _by_step(known)
    for measurement in fresh:
        if not any(_covers(other, measurement) for other in steps.get(measurement.step_count, [])):
            _add(steps, measurement)
    return _ordered(steps)


def final(measurements: Sequence[Measurement], study_spec: StudySpec) -> Measurement | None:
    """The measurement that a trial is judged by; None when none has the study's first objective.

    The last one reported, or under BEST_MEASUREMENT the best by the objectives' goals, the earlier of two equal ones
    (measurementSelectionType and goal, discovery document). With several metrics, which Google does not tell: one that
    is safe comes before one that is not, then the first objective decides, and where that is equal the next. Metrics
    that were reported at other times than the chosen measurement come from the last one that has them.
    """
    goals = objectives(study_spec)
    candidates = [measurement for measurement in measurements if goals[0].id in measurement.metrics]
    if not candidates:
        return None
    latest = {
        name: value
        for measurement in sorted(measurements, key=lambda measurement: measurement.elapsed)
        for name, value in measurement.metrics.items()
    }
    if study_spec.get("measurementSelectionType") != "BEST_MEASUREMENT":
        # The later of two without times; Python's max takes the first of equal ones.
        chosen = max(reversed(candidates), key=lambda candidate: candidate.elapsed)
        return replace(chosen, metrics=latest | chosen.metrics)

    def rank(candidate: Measurement) -> tuple[bool, list[float]]:
        losses = [goal.loss(candidate.metrics) for goal in goals]
        unsafe = not is_safe(study_spec, latest | candidate.metrics)
        return unsafe, [inf if loss is None else loss for loss in losses]

    chosen = min(candidates, key=rank)
    return replace(chosen, metrics=latest | chosen.metrics)


def from_json(message: Mapping[str, Any]) -> Measurement:
    """A measurement as the database keeps it: the API's message, in canonical form."""
    return Measurement(
        step_count=message["stepCount"],
        elapsed=parse_seconds(message["elapsedDuration"]),
        metrics={found["metricId"]: found["value"] for found in message["metrics"]},
    )


def to_json(found: Measurement) -> dict[str, Any]:
    """The API's message, in canonical form."""
    return {
        "stepCount": found.step_count,
        "elapsedDuration": f"{found.elapsed:.6f}s",
        "metrics": [{"metricId": name, "value": value} for name, value in found.metrics.items()],
    }


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _number(value: object) -> float | None:
    """A finite number, which the library writes as a string; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _by_step(measurements: Iterable[Measurement]) -> dict[int, list[Measurement]]:
    steps: dict[int, list[Measurement]] = {}
    for measurement in measurements:
        steps.setdefault(measurement.step_count, []).append(measurement)
    return steps


def _add(steps: dict[int, list[Measurement]], added: Measurement) -> None:
    """Complete the step's latest measurement with further metrics, or append another one to the step."""
    reported = steps.setdefault(added.step_count, [])
    latest = reported[-1] if reported else None
    if latest is not None and _completes(added, latest):
        elapsed = max(latest.elapsed, added.elapsed)
        reported[-1] = Measurement(added.step_count, elapsed, latest.metrics | added.metrics)
    else:
        reported.append(added)


def _completes(added: Measurement, latest: Measurement) -> bool:
    shared = added.metrics.keys() & latest.metrics.keys()
    return shared != added.metrics.keys() and all(added.metrics[id_] == latest.metrics[id_] for id_ in shared)


def _covers(known: Measurement, fresh: Measurement) -> bool:
    """Whether `fresh` is a part of `known`, or all of it."""
    return known.elapsed >= fresh.elapsed and fresh.metrics.items() <= known.metrics.items()


def _ordered(steps: dict[int, list[Measurement]]) -> list[Measurement]:
    """All measurements by step, then by time, as the API orders a trial's."""
    return [
        measurement
        for step in sorted(steps)
        for measurement in sorted(steps[step], key=lambda measurement: measurement.elapsed)
    ]
