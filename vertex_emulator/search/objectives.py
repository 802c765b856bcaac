"""The metrics of a study: which are to be improved, which only have to be safe, and what a trial's values amount to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from vertex_api.types import StudySpec
from vertex_emulator.search.observation import Observation

# Sums and squares of values stay finite.
_LARGEST_VALUE = 1e100


@dataclass(frozen=True)
class Metric:
    """One metric; `sign` turns its values into losses, of which smaller ones are better."""

    id: str
    sign: int
    threshold: float | None = None
    safe_fraction: float | None = None

    def loss(self, metrics: Mapping[str, float]) -> float | None:
        """A trial's value, negated under MAXIMIZE; None when it has no finite one."""
        value = metrics.get(self.id)
        return (
            None
            if value is None or not isfinite(value)
            else self.sign * min(max(value, -_LARGEST_VALUE), _LARGEST_VALUE)
        )

    def excess(self, metrics: Mapping[str, float]) -> float | None:
        """By how much a trial misses the threshold of a safety metric, at most 0 when it is safe."""
        loss = self.loss(metrics)
        return None if loss is None or self.threshold is None else loss - self.sign * self.threshold


def objectives(study_spec: StudySpec) -> list[Metric]:
    """The metrics that guide the search: those without a safetyConfig."""
    return [metric for metric in _metrics(study_spec) if metric.threshold is None]


def safeties(study_spec: StudySpec) -> list[Metric]:
    """The safety metrics. Safe is at least the threshold under MAXIMIZE, and at most under MINIMIZE."""
    return [metric for metric in _metrics(study_spec) if metric.threshold is not None]


def is_safe(study_spec: StudySpec, metrics: Mapping[str, float]) -> bool:
    """Whether no safety metric is missing or beyond its threshold."""
    excesses = [metric.excess(metrics) for metric in safeties(study_spec)]
    return all(excess is not None and excess <= 0 for excess in excesses)


def required_safety(study_spec: StudySpec, ended: Sequence[Observation]) -> float:
    """How probably the next point should be safe: the wanted fraction while no more trials than that are safe."""
    safe = sum(trial.state == "SUCCEEDED" and is_safe(study_spec, trial.metrics) for trial in ended)
    wanted = max((safety.safe_fraction or 0.0 for safety in safeties(study_spec)), default=0.0)
    return wanted if safe <= wanted * len(ended) else 0.0


def _metrics(study_spec: StudySpec) -> list[Metric]:
    found = []
    for metric in study_spec["metrics"]:
        # An unspecified goal is MAXIMIZE (discovery document, MetricSpec).
        sign = 1 if metric.get("goal") == "MINIMIZE" else -1
        safety = metric.get("safetyConfig")
        if safety is None:
            found.append(Metric(metric["metricId"], sign))
        else:
            fraction = safety.get("desiredMinSafeTrialsFraction")
            found.append(Metric(metric["metricId"], sign, float(safety.get("safetyThreshold", 0)), fraction))
    return found
