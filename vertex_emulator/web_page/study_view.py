"""A study as the page's table and plots show it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vertex_api.scalars import to_seconds
from vertex_api.studies import pareto_front, study_metrics, trial_summaries
from vertex_emulator.database.records import Job
from vertex_emulator.resources import job_json, time_fields
from vertex_emulator.web_page.thinned_trial_cache import ThinnedTrial

_VALUE_SPECS = {
    "doubleValueSpec": "DOUBLE",
    "integerValueSpec": "INTEGER",
    "categoricalValueSpec": "CATEGORICAL",
    "discreteValueSpec": "DISCRETE",
}


def build_study_view(job: Job, trials: Sequence[ThinnedTrial]) -> dict[str, Any]:
    """Return `metrics`, `parameters`, `best` (ids of trials), `most` (the number of trials asked for) and `trials`.

    A trial has the fields of `studies.trial_summaries`, `job`, `startTime`, `endTime` and its `curve`: `measured`,
    the number of measurements, and of those shown the `steps`, `seconds` and, by metric, `values` (null if missing).
    """
    shown = job_json(job, [replace(each.trial, measurements=()) for each in trials])
    spec = shown["studySpec"]
    metrics = [
        {"id": metric.id, "goal": "MINIMIZE" if metric.sign == 1 else "MAXIMIZE", "threshold": metric.threshold}
        for metric in study_metrics(spec)
    ]
    rows = {row["id"]: row for row in trial_summaries(shown)}
    return {
        "metrics": metrics,
        "parameters": [*_iterate_serialized_parameters(spec["parameters"])],
        "best": [row["id"] for row in pareto_front(shown)],
        "most": job.spec["maxTrialCount"],
        "trials": [
            {
                **rows[str(each.trial.number)],
                **time_fields(startTime=each.trial.started, endTime=each.trial.ended),
                "job": each.trial.job,
                "curve": _serialize_thinned_measurements(each, metrics),
            }
            for each in trials
        ],
    }


def _iterate_serialized_parameters(
    specs: Sequence[Mapping[str, Any]], parent: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield `id`, `type`, `scale`, `parent` or null, and `min` and `max` or `values` of parameters, parents first."""
    for spec in specs:
        name, kind = next(((name, kind) for name, kind in _VALUE_SPECS.items() if name in spec), ("", "DOUBLE"))
        value = spec.get(name, {})
        shown = {"id": spec["parameterId"], "type": kind, "scale": spec.get("scaleType", ""), "parent": parent}
        if "values" in value:
            shown["values"] = value["values"]
        else:
            shown |= {"min": float(value.get("minValue", 0)), "max": float(value.get("maxValue", 0))}
        yield shown
        children = [each["parameterSpec"] for each in spec.get("conditionalParameterSpecs", [])]
        yield from _iterate_serialized_parameters(children, spec["parameterId"])


def _serialize_thinned_measurements(thinned: ThinnedTrial, metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    points = thinned.trial.measurements
    values = [{metric["metricId"]: metric.get("value", 0.0) for metric in point.get("metrics", [])} for point in points]
    return {
        "measured": thinned.measured,
        "steps": [int(point.get("stepCount", 0)) for point in points],
        "seconds": [to_seconds(point.get("elapsedDuration", "0s")) for point in points],
        "values": {metric["id"]: [value.get(metric["id"]) for value in values] for metric in metrics},
    }
