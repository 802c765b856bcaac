"""Results of a hyperparameter tuning job: its trials in brief, and the best of them."""

from collections.abc import Mapping
from operator import le
from typing import Any


def summary(trial: Mapping[str, Any]) -> dict[str, Any]:
    """One row for a trial: `id`, `state`, `parameters` by id, `metrics` by id (empty without a final measurement)."""
    measurement = trial.get("finalMeasurement", {})
    row = {
        "id": trial["id"],
        "state": trial["state"],
        "parameters": {entry["parameterId"]: _plain(entry["value"]) for entry in trial.get("parameters", [])},
        "metrics": {entry["metricId"]: entry.get("value", 0.0) for entry in measurement.get("metrics", [])},
    }
    return row | ({"infeasibleReason": trial["infeasibleReason"]} if "infeasibleReason" in trial else {})


def summaries(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a trial, ordered by number: the service gives them in no order (seen in Google's own examples)."""
    return sorted(map(summary, job.get("trials", [])), key=lambda row: int(row["id"]))


def best(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of the best succeeded trial by the first objective's goal; the earlier one where two are equal.

    An objective is a metric without a safetyConfig. A trial that is not safe, or lacks a safety metric, is never the
    best. None when no trial succeeded with that objective. The goal is MAXIMIZE unless the study says otherwise
    (discovery document, MetricSpec).
    """
    name, sign = next(iter(_objectives(job).items()))
    rows = [row for row in _eligible(job) if name in row["metrics"]]
    return min(rows, key=lambda row: sign * row["metrics"][name], default=None)


def front(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The best trials by number: `best` alone, or with several objectives those that no other trial beats.

    A trial beats another when it is as good in every objective, by its goal, and better in one (the Pareto set, which
    is what the service optimises for with several metrics: Google's page on using hyperparameter tuning).
    """
    signs = _objectives(job)
    if len(signs) == 1:
        only = best(job)
        return [] if only is None else [only]
    rows = [row for row in _eligible(job) if signs.keys() <= row["metrics"].keys()]
    ranked = sorted((tuple(sign * row["metrics"][name] for name, sign in signs.items()), row["id"]) for row in rows)
    # In this order no trial is beaten by a later one, and those kept are few.
    kept: list[tuple[float, ...]] = []
    ids = set[str]()
    for costs, id_ in ranked:
        if not any(other != costs and all(map(le, other, costs)) for other in kept):
            kept.append(costs)
            ids.add(id_)
    return [row for row in rows if row["id"] in ids]


def _objectives(job: Mapping[str, Any]) -> dict[str, int]:
    """Metric id and the sign that makes smaller values better, of the metrics that are to be improved."""
    metrics = [metric for metric in job["studySpec"]["metrics"] if "safetyConfig" not in metric]
    return {metric["metricId"]: _sign(metric) for metric in metrics}


def _eligible(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of succeeded trials that no safety metric speaks against."""
    safeties = [metric for metric in job["studySpec"]["metrics"] if "safetyConfig" in metric]
    return [row for row in summaries(job) if row["state"] == "SUCCEEDED" and all(_is_safe(m, row) for m in safeties)]


def _is_safe(metric: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    value, threshold = row["metrics"].get(metric["metricId"]), metric["safetyConfig"].get("safetyThreshold", 0)
    return value is not None and _sign(metric) * value <= _sign(metric) * threshold


def _sign(metric: Mapping[str, Any]) -> int:
    return 1 if metric.get("goal") == "MINIMIZE" else -1


def _plain(value: Any) -> Any:
    """JSON has one kind of number, so whole ones come back as floats: 32.0 is shown as 32."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
