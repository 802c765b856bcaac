"""Studies of tuning jobs: their metrics, the results of their trials, and the best ones."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from operator import le
from typing import Any

_MAX_VALUE = 1e100
"""Larger values are clamped, so that their sums and squares stay finite."""


@dataclass(frozen=True)
class Metric:
    """A metric of a study.

    `sign` turns its values into losses, of which smaller ones are better: 1 for MINIMIZE, -1 for MAXIMIZE. `threshold`
    is that of a safety metric, None for an objective. `min_safe_fraction` is the share of trials that should be safe.
    """

    id: str
    sign: int
    threshold: float | None = None
    min_safe_fraction: float = 0.0

    def loss(self, values_by_metric: Mapping[str, float]) -> float | None:
        """Return the loss of a trial with these values, None if it has no finite value for this metric."""
        value = values_by_metric.get(self.id)
        return None if value is None or not isfinite(value) else self.sign * min(max(value, -_MAX_VALUE), _MAX_VALUE)

    def shortfall(self, values_by_metric: Mapping[str, float]) -> float | None:
        """Return by how much a trial misses the threshold of a safety metric; it is safe if that is at most 0."""
        loss = self.loss(values_by_metric)
        return None if loss is None or self.threshold is None else loss - self.sign * self.threshold


def study_metrics(study_spec: Mapping[str, Any]) -> list[Metric]:
    """Return the metrics of a StudySpec, in its order.

    Without a goal a metric is maximized, and without a threshold that is 0 (discovery document, MetricSpec).
    """
    metrics = []
    for spec in study_spec["metrics"]:
        safety = spec.get("safetyConfig")
        threshold = None if safety is None else float(safety.get("safetyThreshold", 0))
        min_safe_fraction = (safety or {}).get("desiredMinSafeTrialsFraction", 0.0)
        sign = 1 if spec.get("goal") == "MINIMIZE" else -1
        metrics.append(Metric(spec["metricId"], sign, threshold, min_safe_fraction))
    return metrics


def objectives_of(study_spec: Mapping[str, Any]) -> list[Metric]:
    """Return the metrics of a StudySpec without a safetyConfig, in its order. The search improves them."""
    return [metric for metric in study_metrics(study_spec) if metric.threshold is None]


def safety_metrics(study_spec: Mapping[str, Any]) -> list[Metric]:
    """Return the metrics of a StudySpec with a safetyConfig. Safe is at least the threshold when a metric is maximized,
    at most when it is minimized."""
    return [metric for metric in study_metrics(study_spec) if metric.threshold is not None]


def is_safe(study_spec: Mapping[str, Any], values_by_metric: Mapping[str, float]) -> bool:
    """Return whether a trial with these values has every safety metric, and none beyond its threshold."""
    metrics = safety_metrics(study_spec)
    shortfalls = [metric.shortfall(values_by_metric) for metric in metrics]
    return all(shortfall is not None and shortfall <= 0 for shortfall in shortfalls)


ENDED_STATES = frozenset({"SUCCEEDED", "INFEASIBLE"})
_CUT_SHORT = re.compile(
    r"exited with|out of memory|low on memory|Internal error|insufficient|quota|CANCEL", re.IGNORECASE
)
"""Reasons, as the service words them, of infeasible trials whose job failed: they could not report their metrics."""


def trial_summary(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a trial: `id`, `state`, `parameters` and `metrics` by id, and why it is infeasible.

    `metrics` is empty without a final measurement.
    """
    measurement, parameters = trial.get("finalMeasurement", {}), trial.get("parameters", [])
    row = {
        "id": trial["id"],
        "state": trial["state"],
        "parameters": {each["parameterId"]: whole_number(each["value"]) for each in parameters},
        "metrics": {each["metricId"]: each.get("value", 0.0) for each in measurement.get("metrics", [])},
    }
    return row | ({"infeasibleReason": trial["infeasibleReason"]} if "infeasibleReason" in trial else {})


def trial_summaries(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the results of a job's trials by number. The service gives them in no order (Google's own examples)."""
    return sorted(map(trial_summary, job.get("trials", [])), key=lambda row: int(row["id"]))


def find_best(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Find the results of the best succeeded trial by the first objective, and if equal by the next ones.

    Of trials that are equal in all objectives, the earlier one is the best. Trials that are not safe, or lack a safety
    metric or the first objective, are never the best. With several objectives the best trial is one of the Pareto
    front; Vertex AI itself names none (ListOptimalTrials returns the Pareto set).
    """
    objectives = objectives_of(job["studySpec"])

    def list_losses(row: Mapping[str, Any]) -> list[float]:
        losses = [objective.loss(row["metrics"]) for objective in objectives]
        return [inf if loss is None else loss for loss in losses]

    rows = _safe_summaries(job)
    rows = [row for row in rows if objectives[0].loss(row["metrics"]) is not None]
    return min(rows, key=list_losses, default=None)


def pareto_front(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Find the results of the best trials, by number: of all that no other trial dominates.

    A trial dominates another if it is as good in every objective and better in one. That is what the service optimizes
    for with several metrics (Google's page on using hyperparameter tuning). With one objective it is the best trial.
    """
    objectives = objectives_of(job["studySpec"])
    if len(objectives) == 1:
        best = find_best(job)
        return [] if best is None else [best]
    rows, points = _safe_summaries(job), []
    for row in rows:
        losses = [loss for objective in objectives if (loss := objective.loss(row["metrics"])) is not None]
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


def count_ended(job: Mapping[str, Any]) -> int:
    """Return how many trials have ended, succeeded or infeasible."""
    return sum(trial["state"] in ENDED_STATES for trial in job.get("trials", []))


def unreported_metrics(job: Mapping[str, Any]) -> dict[str, list[str]]:
    """Find the metrics of the study that ended trials never reported, each with the ids of these trials.

    Trials whose job failed are left out: they were cut short.
    """
    trial_ids: dict[str, list[str]] = {}
    for trial in sorted(job.get("trials", []), key=lambda trial: int(trial["id"])):
        if trial["state"] in ENDED_STATES and not _CUT_SHORT.search(trial.get("infeasibleReason", "")):
            reported = reported_metrics(trial)
            for metric in job["studySpec"]["metrics"]:
                if metric["metricId"] not in reported:
                    trial_ids.setdefault(metric["metricId"], []).append(trial["id"])
    return trial_ids


def reported_metrics(trial: Mapping[str, Any]) -> set[str]:
    """Return the ids of the metrics that a trial has reported."""
    measurements = [trial.get("finalMeasurement", {}), *trial.get("measurements", [])]
    return {metric["metricId"] for measurement in measurements for metric in measurement.get("metrics", [])}


def whole_number(value: Any) -> Any:
    """Return a whole number as int: JSON has one kind of number, so 32 comes back as 32.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _safe_summaries(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the results of the succeeded trials that are safe."""
    rows = [row for row in trial_summaries(job) if row["state"] == "SUCCEEDED"]
    return [row for row in rows if is_safe(job["studySpec"], row["metrics"])]
