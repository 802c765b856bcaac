"""A study as the page's table and plots show it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vertex_api.scalars import parse_seconds
from vertex_api.studies.metrics import Metric, list_metrics
from vertex_api.studies.trials import find_pareto_front, summarize_trials
from vertex_emulator.database.records import Job, Trial
from vertex_emulator.resource_json import serialize_job
from vertex_emulator.times import format_time

_MAX_POINTS = 20_000  # of all curves together, so that a long study does not outgrow a browser
_MIN_AND_MAX_CURVE_POINTS = (20, 300)  # at least and at most, which is more than a plot has room for
_VALUE_SPECS = {
    "doubleValueSpec": "DOUBLE",
    "integerValueSpec": "INTEGER",
    "categoricalValueSpec": "CATEGORICAL",
    "discreteValueSpec": "DISCRETE",
}


def build_study_view(job: Job, trials: Sequence[Trial]) -> dict[str, Any]:
    """`metrics` (see `_metric`), `parameters` (see `_parameters`), `best` (ids of trials) and `trials`.

    A trial has what `trials.summarize_trial` gives, `job`, `startTime`, `endTime`, and its `curve`: how many were
    `measured`, and of those that are shown `steps`, `seconds` and, by metric, `values`, null where there is none.
    """
    shown = serialize_job(job, [replace(trial, measurements=()) for trial in trials])
    spec = shown["studySpec"]
    metrics = [_metric(metric) for metric in list_metrics(spec)]
    fewest, most = _MIN_AND_MAX_CURVE_POINTS
    points = min(max(_MAX_POINTS // max(len(trials), 1), fewest), most)
    rows = {row["id"]: row for row in summarize_trials(shown)}
    return {
        "metrics": metrics,
        "parameters": [*_parameters(spec["parameters"])],
        "best": [row["id"] for row in find_pareto_front(shown)],
        "most": job.spec["maxTrialCount"],
        "trials": [
            {**rows[str(trial.number)], **_moments(trial), "job": trial.job, "curve": _curve(trial, metrics, points)}
            for trial in trials
        ],
    }


def _metric(metric: Metric) -> dict[str, Any]:
    """`id`, `goal`, and the `threshold` of a safety metric, null for one that is to be improved."""
    return {"id": metric.id, "goal": "MINIMIZE" if metric.sign == 1 else "MAXIMIZE", "threshold": metric.threshold}


def _parameters(specs: Sequence[Mapping[str, Any]], parent: str | None = None) -> Iterator[dict[str, Any]]:
    """`id`, `type`, `scale`, `min` and `max` or `values`, and the `parent` of a conditional one; parents first."""
    for spec in specs:
        name, kind = next(((name, kind) for name, kind in _VALUE_SPECS.items() if name in spec), ("", "DOUBLE"))
        value = spec.get(name, {})
        shown = {"id": spec["parameterId"], "type": kind, "scale": spec.get("scaleType", ""), "parent": parent}
        if "values" in value:
            shown["values"] = value["values"]
        else:
            shown |= {"min": float(value.get("minValue", 0)), "max": float(value.get("maxValue", 0))}
        yield shown
        yield from _parameters(
            [found["parameterSpec"] for found in spec.get("conditionalParameterSpecs", [])], spec["parameterId"]
        )


def _moments(trial: Trial) -> dict[str, str]:
    moments = (("startTime", trial.started), ("endTime", trial.ended))
    return {field: format_time(moment) for field, moment in moments if moment is not None}


def _curve(trial: Trial, metrics: Sequence[Mapping[str, Any]], most: int) -> dict[str, Any]:
    stride = -(-len(trial.measurements) // most) or 1
    # Counted from the end, so that the last one is always there.
    points = trial.measurements[::-1][::stride][::-1]
    values = [{found["metricId"]: found.get("value", 0.0) for found in point.get("metrics", [])} for point in points]
    return {
        "measured": len(trial.measurements),
        "steps": [int(point.get("stepCount", 0)) for point in points],
        "seconds": [parse_seconds(point.get("elapsedDuration", "0s")) for point in points],
        "values": {metric["id"]: [value.get(metric["id"]) for value in values] for metric in metrics},
    }
