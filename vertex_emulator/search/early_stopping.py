"""Automated stopping of running trials: the median, the decay curve and the convex rule.

Google documents the median rule in a sentence and the other two in outline (discovery document, StudySpec); the
docstrings below say what is our own. With several objectives a trial is stopped when the rule holds for each of them.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import erf, inf, sqrt
from statistics import fmean, median
from typing import Any

from vertex_api.studies import Metric, objectives_of
from vertex_api.types import StudySpec
from vertex_emulator.search.measurements_and_observations import Measurement

# The decay curve rule stops a trial below this probability of beating the best completed trial.
MIN_CHANCE_TO_WIN = 0.05
# The regression of the decay curve rule needs this many completed trials: five points for two coefficients.
_REGRESSION_TRIALS = 5
# A curve is complete if it reaches this share of the longest one; others may have been stopped early.
_COMPLETE_SHARE = 0.9
_DEFAULT_MIN_MEASUREMENTS = 5
_DEFAULT_MIN_STEPS = 0.1  # of maxStepCount

STOPPING_RULE_FIELDS = frozenset(
    {"medianAutomatedStoppingSpec", "decayCurveStoppingSpec", "convexAutomatedStoppingSpec"}
)


@dataclass(frozen=True)
class LearningCurve:
    """Values of one objective of a trial in order, smaller is better (a MAXIMIZE metric comes negated).

    `at` are the moments: steps, or seconds where the rule uses elapsed durations. Both have the same length.
    """

    at: tuple[float, ...]
    losses: tuple[float, ...]

    @property
    def best_loss(self) -> float:
        """The smallest value so far, infinite for an empty curve."""
        return min(self.losses, default=inf)

    def copy_part_up_to(self, moment: float) -> "LearningCurve":
        """Copy the part up to and including a moment."""
        count = bisect_right(self.at, moment)
        return LearningCurve(self.at[:count], self.losses[:count])

    def build_curve_of_best_losses(self) -> "LearningCurve":
        """Compute the curve of the smallest loss up to each moment."""
        return LearningCurve(self.at, tuple(accumulate(self.losses, min)))


CurvesByObjective = Mapping[str, LearningCurve]


def build_learning_curves_by_objective(
    study_spec: StudySpec, measurements: Sequence[Measurement]
) -> dict[str, LearningCurve]:
    """Build a trial's curve of each objective, by its id, over the moments that the study's stopping rule compares."""
    rule: Any = next((spec for field, spec in study_spec.items() if field in STOPPING_RULE_FIELDS), {})
    uses_elapsed = bool(rule.get("useElapsedDuration"))
    return {
        objective.id: _build_loss_curve(measurements, objective, uses_elapsed)
        for objective in objectives_of(study_spec)
    }


def find_early_stopping_reason(
    study_spec: StudySpec, running: CurvesByObjective, completed: Sequence[CurvesByObjective]
) -> str | None:
    """Find the reason to stop a running trial, as a clause for the log; None while it may go on.

    `running` are the trial's curves and `completed` those of each succeeded trial, as
    build_learning_curves_by_objective has them.
    """
    reasons = []
    for objective in objectives_of(study_spec):
        others = [curve for curves in completed if (curve := curves[objective.id]).at]
        reason = _find_stopping_reason_for_objective(study_spec, running[objective.id], others)
        if reason is None:
            return None
        reasons.append(f"{objective.id}: {reason}")
    return "; ".join(reasons)


def find_median_stopping_reason(curve: LearningCurve, completed: Sequence[LearningCurve]) -> str | None:
    """Return why to stop a trial whose best value is strictly worse than the completed ones' median running average.

    The averages are those up to the trial's last measurement (discovery document, MedianAutomatedStoppingSpec).
    """
    if not curve.at:
        return None
    averages = [fmean(part.losses) for other in completed if (part := other.copy_part_up_to(curve.at[-1])).at]
    if averages and curve.best_loss > median(averages):
        return f"its best value is worse than the median of the running averages of {len(averages)} completed trials"
    return None


def find_decay_curve_stopping_reason(curve: LearningCurve, completed: Sequence[LearningCurve]) -> str | None:
    """Return why to stop a trial that very probably ends worse than the best completed one.

    Google fits a Gaussian process to the curves (DecayCurveAutomatedStoppingSpec). Here the final best value of the
    completed trials is regressed on their best value at the moment that the running trial has come to: a straight line
    with a normal error, which needs `_REGRESSION_TRIALS` complete curves. "Very low probability" is below
    `MIN_CHANCE_TO_WIN`.
    """
    if not curve.at:
        return None
    now = curve.at[-1]
    longest = max((other.at[-1] for other in completed), default=0.0)
    complete = [other.build_curve_of_best_losses() for other in completed if other.at[-1] >= _COMPLETE_SHARE * longest]
    pairs = [(part.losses[-1], other.losses[-1]) for other in complete if (part := other.copy_part_up_to(now)).at]
    if len(pairs) < _REGRESSION_TRIALS or now >= max(other.at[-1] for other in complete):
        return None
    expected, error = _predict_linearly_with_standard_error(pairs, curve.best_loss)
    best = min(final for _, final in pairs)
    chance = 0.5 * (1 + erf((best - expected) / (error * sqrt(2)))) if error > 0 else float(expected <= best)
    if chance < MIN_CHANCE_TO_WIN:
        return f"its chance to beat the best of {len(pairs)} completed trials is {chance:.0%}"
    return None


def find_convex_stopping_reason(
    spec: Mapping[str, Any], curve: LearningCurve, completed: Sequence[LearningCurve]
) -> str | None:
    """Return why to stop a trial whose overestimate at the last step is worse than the best completed one.

    A learning curve is convex: it flattens. So a straight line from its recent slope to maxStepCount overestimates
    what the trial comes to (ConvexAutomatedStoppingSpec). The slope is that of the best value so far over the later
    half of the measurements; a flat curve gives no prediction. maxStepCount is by default the longest completed
    trial's. Checks begin with more than minMeasurementCount completed trials, as many measurements of this one, and
    one beyond minStepCount.
    """
    if not completed or not curve.at:
        return None
    min_measurements = spec.get("minMeasurementCount") or _DEFAULT_MIN_MEASUREMENTS
    last = spec.get("maxStepCount") or max(other.at[-1] for other in completed)
    first = spec.get("minStepCount", _DEFAULT_MIN_STEPS * last)
    now = curve.at[-1]
    if len(completed) <= min_measurements or len(curve.at) < min_measurements or not first < now < last:
        return None
    record = curve.build_curve_of_best_losses()
    middle = len(record.at) // 2
    begin = middle if record.at[middle] < now else 0
    if record.at[begin] == now:
        return None
    slope = (record.losses[-1] - record.losses[begin]) / (now - record.at[begin])
    projected_loss = record.losses[-1] + slope * (last - now)
    best = min(other.best_loss for other in completed)
    if slope < 0 and projected_loss > best:
        return f"even at its present slope it does not reach the best of {len(completed)} completed trials"
    return None


def _find_stopping_reason_for_objective(
    study_spec: StudySpec, curve: LearningCurve, completed: Sequence[LearningCurve]
) -> str | None:
    if "medianAutomatedStoppingSpec" in study_spec:
        return find_median_stopping_reason(curve, completed)
    if "decayCurveStoppingSpec" in study_spec:
        return find_decay_curve_stopping_reason(curve, completed)
    if "convexAutomatedStoppingSpec" in study_spec:
        return find_convex_stopping_reason(study_spec["convexAutomatedStoppingSpec"], curve, completed)
    return None


def _build_loss_curve(trial: Sequence[Measurement], objective: Metric, uses_elapsed: bool) -> LearningCurve:
    points = [
        (measurement.elapsed if uses_elapsed else float(measurement.step_count), loss)
        for measurement in trial
        if (loss := objective.loss(measurement.metrics)) is not None
    ]
    points.sort(key=lambda point: point[0])
    return LearningCurve(tuple(at for at, _ in points), tuple(loss for _, loss in points))


def _predict_linearly_with_standard_error(pairs: Sequence[tuple[float, float]], new_x: float) -> tuple[float, float]:
    """Return the final value that least squares predict at `new_x`, and the standard error of one prediction."""
    x_mean, y_mean = fmean(x for x, _ in pairs), fmean(y for _, y in pairs)
    spread = sum((x - x_mean) ** 2 for x, _ in pairs)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in pairs) / spread if spread > 0 else 0.0
    residual = sum((y - y_mean - slope * (x - x_mean)) ** 2 for x, y in pairs)
    leverage = (new_x - x_mean) ** 2 / spread if spread > 0 else 0.0
    return y_mean + slope * (new_x - x_mean), sqrt(residual / (len(pairs) - 2) * (1 + 1 / len(pairs) + leverage))
