"""Results of a hyperparameter tuning job: its trials in brief, the best of them, and what they did not report."""

import re
from collections.abc import Mapping
from math import inf
from operator import le
from typing import Any

ENDED_STATES = frozenset({"SUCCEEDED", "INFEASIBLE"})
_CUT_SHORT = re.compile(
    r"exited with|out of memory|low on memory|Internal error|insufficient|quota|CANCEL", re.IGNORECASE
)
"""Reasons of infeasible trials whose job failed, as the service words them: those had no chance to report."""


def summarize_trial(trial: Mapping[str, Any]) -> dict[str, Any]:
    """One row for a trial: `id`, `state`, `parameters` by id, `metrics` by id (empty without a final measurement)."""
    measurement = trial.get("finalMeasurement", {})
    row = {
        "id": trial["id"],
        "state": trial["state"],
        "parameters": {entry["parameterId"]: _plain(entry["value"]) for entry in trial.get("parameters", [])},
        "metrics": {entry["metricId"]: entry.get("value", 0.0) for entry in measurement.get("metrics", [])},
    }
    return row | ({"infeasibleReason": trial["infeasibleReason"]} if "infeasibleReason" in trial else {})


def summarize_trials(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a trial, ordered by number: the service gives them in no order (seen in Google's own examples)."""
    return sorted(map(summarize_trial, job.get("trials", [])), key=lambda row: int(row["id"]))


def find_best_trial(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of the best succeeded trial by the first objective's goal; where two are equal by the next objective's.

    The earlier one where all are equal. So with several objectives it is one of `front`, which has those that stand
    for another choice between them (Vertex names no best trial there: ListOptimalTrials gives the Pareto set).
    An objective is a metric without a safetyConfig. A trial that is not safe, or lacks a safety metric, is never the
    best. None when no trial succeeded with the first objective. The goal is MAXIMIZE unless the study says otherwise
    (discovery document, MetricSpec).
    """
    signs = _signs(job)
    first = next(iter(signs))
    rows = [row for row in _eligible(job) if first in row["metrics"]]

    def costs(row: Mapping[str, Any]) -> list[float]:
        return [sign * row["metrics"][name] if name in row["metrics"] else inf for name, sign in signs.items()]

    return min(rows, key=costs, default=None)


def list_objectives(job: Mapping[str, Any]) -> list[str]:
    """The ids of the metrics that are to be improved, in the study's order. With several, trials are traded off."""
    return list(_signs(job))


def count_ended_trials(job: Mapping[str, Any]) -> int:
    """How many trials have ended, well or not."""
    return sum(trial["state"] in ENDED_STATES for trial in job.get("trials", []))


def find_unreported_metrics(job: Mapping[str, Any]) -> dict[str, list[str]]:
    """The ids of ended trials that never reported a metric of the study, by metric; none for one that all reported.

    Trials whose job failed are left out: they were cut short.
    """
    found: dict[str, list[str]] = {}
    for trial in sorted(job.get("trials", []), key=lambda trial: int(trial["id"])):
        if trial["state"] in ENDED_STATES and not _CUT_SHORT.search(trial.get("infeasibleReason", "")):
            known = list_reported_metrics(trial)
            for metric in job["studySpec"]["metrics"]:
                if metric["metricId"] not in known:
                    found.setdefault(metric["metricId"], []).append(trial["id"])
    return found


def list_reported_metrics(trial: Mapping[str, Any]) -> set[str]:
    """The ids of the metrics that a trial has reported."""
    measurements = [trial.get("finalMeasurement", {}), *trial.get("measurements", [])]
    return {metric["metricId"] for measurement in measurements for metric in measurement.get("metrics", [])}


def find_pareto_front(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The best trials by number: `best` alone, or with several objectives those that no other trial beats.

    A trial beats another when it is as good in every objective, by its goal, and better in one (the Pareto set, which
    is what the service optimises for with several metrics: Google's page on using hyperparameter tuning).
    """
    signs = _signs(job)
    if len(signs) == 1:
        only = find_best_trial(job)
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


def _signs(job: Mapping[str, Any]) -> dict[str, int]:
    """Metric id and the sign that makes smaller values better, of the metrics that are to be improved."""
    metrics = [metric for metric in job["studySpec"]["metrics"] if "safetyConfig" not in metric]
    return {metric["metricId"]: _sign(metric) for metric in metrics}


def _eligible(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of succeeded trials that no safety metric speaks against."""
    safeties = [metric for metric in job["studySpec"]["metrics"] if "safetyConfig" in metric]
    return [
        row for row in summarize_trials(job) if row["state"] == "SUCCEEDED" and all(_is_safe(m, row) for m in safeties)
    ]


def _is_safe(metric: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    value, threshold = row["metrics"].get(metric["metricId"]), metric["safetyConfig"].get("safetyThreshold", 0)
    return value is not None and _sign(metric) * value <= _sign(metric) * threshold


def _sign(metric: Mapping[str, Any]) -> int:
    return 1 if metric.get("goal") == "MINIMIZE" else -1


def _plain(value: Any) -> Any:
    """JSON has one kind of number, so whole ones come back as floats: 32.0 is shown as 32."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
