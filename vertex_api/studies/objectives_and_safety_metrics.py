"""The metrics of a study: objectives, which are improved, and safety metrics, which must stay within a threshold."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
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

    def compute_loss_or_none(self, values_by_metric: Mapping[str, float]) -> float | None:
        """Return the loss of a trial with these values, None if it has no finite value for this metric."""
        value = values_by_metric.get(self.id)
        return None if value is None or not isfinite(value) else self.sign * min(max(value, -_MAX_VALUE), _MAX_VALUE)

    def compute_signed_safety_shortfall_or_none(self, values_by_metric: Mapping[str, float]) -> float | None:
        """Return by how much a trial misses the threshold of a safety metric; it is safe if that is at most 0."""
        loss = self.compute_loss_or_none(values_by_metric)
        return None if loss is None or self.threshold is None else loss - self.sign * self.threshold


def parse_metrics(study_spec: Mapping[str, Any]) -> list[Metric]:
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


def parse_objectives(study_spec: Mapping[str, Any]) -> list[Metric]:
    """Return the metrics of a StudySpec without a safetyConfig, in its order. The search improves them."""
    return [metric for metric in parse_metrics(study_spec) if metric.threshold is None]


def parse_safety_metrics(study_spec: Mapping[str, Any]) -> list[Metric]:
    """Return the metrics of a StudySpec with a safetyConfig. Safe is at least the threshold when a metric is maximized,
    at most when it is minimized."""
    return [metric for metric in parse_metrics(study_spec) if metric.threshold is not None]


def are_metric_values_safe(study_spec: Mapping[str, Any], values_by_metric: Mapping[str, float]) -> bool:
    """Return whether a trial with these values has every safety metric, and none beyond its threshold."""
    metrics = parse_safety_metrics(study_spec)
    shortfalls = [metric.compute_signed_safety_shortfall_or_none(values_by_metric) for metric in metrics]
    return all(shortfall is not None and shortfall <= 0 for shortfall in shortfalls)
