"""The trials of a hyperparameter tuning job: their results in brief, the best ones, and metrics that they lack."""

import re
from collections.abc import Mapping
from math import inf
from operator import le
from typing import Any

from vertex_api.studies.objectives_and_safety_metrics import are_metric_values_safe, parse_objectives

ENDED_STATES = frozenset({"SUCCEEDED", "INFEASIBLE"})
_CUT_SHORT = re.compile(
    r"exited with|out of memory|low on memory|Internal error|insufficient|quota|CANCEL", re.IGNORECASE
)
"""Reasons, as the service words them, of infeasible trials whose job failed: they could not report their metrics."""


def build_trial_summary(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a trial: `id`, `state`, `parameters` and `metrics` by id, and why it is infeasible.

    `metrics` is empty without a final measurement.
    """
    measurement, parameters = trial.get("finalMeasurement", {}), trial.get("parameters", [])
    row = {
        "id": trial["id"],
        "state": trial["state"],
        "parameters": {each["parameterId"]: convert_whole_float_to_int(each["value"]) for each in parameters},
        "metrics": {each["metricId"]: each.get("value", 0.0) for each in measurement.get("metrics", [])},
    }
    return row | ({"infeasibleReason": trial["infeasibleReason"]} if "infeasibleReason" in trial else {})


def list_trial_summaries(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the results of a job's trials by number. The service gives them in no order (Google's own examples)."""
    return sorted(map(build_trial_summary, job.get("trials", [])), key=lambda row: int(row["id"]))


def find_best_trial_summary_or_none(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Find the results of the best succeeded trial by the first objective, and if equal by the next ones.

    Of trials that are equal in all objectives, the earlier one is the best. Trials that are not safe, or lack a safety
    metric or the first objective, are never the best. With several objectives the best trial is one of the Pareto
    front; Vertex AI itself names none (ListOptimalTrials returns the Pareto set).
    """
    objectives = parse_objectives(job["studySpec"])

    def list_losses(row: Mapping[str, Any]) -> list[float]:
        losses = [objective.compute_loss_or_none(row["metrics"]) for objective in objectives]
        return [inf if loss is None else loss for loss in losses]

    rows = _list_safe_succeeded_summaries(job)
    rows = [row for row in rows if objectives[0].compute_loss_or_none(row["metrics"]) is not None]
    return min(rows, key=list_losses, default=None)


def find_pareto_front_summaries(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Find the results of the best trials, by number: of all that no other trial dominates.

    A trial dominates another if it is as good in every objective and better in one. That is what the service optimizes
    for with several metrics (Google's page on using hyperparameter tuning). With one objective it is the best trial.
    """
    objectives = parse_objectives(job["studySpec"])
    if len(objectives) == 1:
        best = find_best_trial_summary_or_none(job)
        return [] if best is None else [best]
    rows, points = _list_safe_succeeded_summaries(job), []
    for row in rows:
        losses = [
            loss for objective in objectives if (loss := objective.compute_loss_or_none(row["metrics"])) is not None
        ]
        if len(losses) == len(objectives):
            points.append((tuple(losses), row["id"]))
    # In this order no trial is dominated by a later one, and the front is small.
    front: list[tuple[float, ...]] = []
    ids = set[str]()
    for point, id_ in sorted(points):
        if not any(other != point and all(map(le, other, point)) for other in front):
            front.append(point)
            ids.add(id_)
    return [row for row in rows if row["id"] in ids]


def count_ended_trials(job: Mapping[str, Any]) -> int:
    """Return how many trials have ended, succeeded or infeasible."""
    return sum(trial["state"] in ENDED_STATES for trial in job.get("trials", []))


def find_trial_ids_by_unreported_metric(job: Mapping[str, Any]) -> dict[str, list[str]]:
    """Find the metrics of the study that ended trials never reported, each with the ids of these trials.

    Trials whose job failed are left out: they were cut short.
    """
    trial_ids: dict[str, list[str]] = {}
    for trial in sorted(job.get("trials", []), key=lambda trial: int(trial["id"])):
        if trial["state"] in ENDED_STATES and not _CUT_SHORT.search(trial.get("infeasibleReason", "")):
            reported = list_ever_reported_metric_ids(trial)
            for metric in job["studySpec"]["metrics"]:
                if metric["metricId"] not in reported:
                    trial_ids.setdefault(metric["metricId"], []).append(trial["id"])
    return trial_ids


def list_ever_reported_metric_ids(trial: Mapping[str, Any]) -> set[str]:
    """Return the ids of the metrics that a trial has reported."""
    measurements = [trial.get("finalMeasurement", {}), *trial.get("measurements", [])]
    return {metric["metricId"] for measurement in measurements for metric in measurement.get("metrics", [])}


def convert_whole_float_to_int(value: Any) -> Any:
    """Return a whole number as int: JSON has one kind of number, so 32 comes back as 32.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _list_safe_succeeded_summaries(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the results of the succeeded trials that are safe."""
    rows = [row for row in list_trial_summaries(job) if row["state"] == "SUCCEEDED"]
    return [row for row in rows if are_metric_values_safe(job["studySpec"], row["metrics"])]
