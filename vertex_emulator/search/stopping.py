"""What is stopped early: running trials, by the three rules of automated stopping, and whole studies.

Google documents the median rule in a sentence and the other two in outline (discovery document, StudySpec); the
docstrings below say what is our own. With several objectives a trial is stopped when the rule holds for each of them.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import erf, sqrt
from statistics import fmean, median
from typing import Any

from vertex_api.scalars import to_seconds
from vertex_api.studies import is_safe, objectives_of
from vertex_api.types import StudySpec
from vertex_emulator.times import parse_time

# The decay curve rule stops a trial below this probability of beating the best completed trial.
MIN_CHANCE_TO_WIN = 0.05
# The regression of the decay curve rule needs this many completed trials: five points for two coefficients.
_REGRESSION_TRIALS = 5
# A curve is complete if it reaches this share of the longest one; others may have been stopped early.
_COMPLETE_SHARE = 0.9
_DEFAULT_MIN_MEASUREMENTS = 5
_DEFAULT_MIN_STEPS = 0.1  # of maxStepCount
RULE_FIELDS = frozenset({"medianAutomatedStoppingSpec", "decayCurveStoppingSpec", "convexAutomatedStoppingSpec"})


@dataclass(frozen=True)
class Measurement:
    """Values of one trial reported together: at `step_count`, `elapsed` seconds after its start, by metric id."""

    step_count: int
    elapsed: float
    metrics: Mapping[str, float]

    @classmethod
    def parse(cls, canonical: Mapping[str, Any]) -> "Measurement":
        """Read the API's Measurement in canonical form."""
        metrics = {each["metricId"]: each["value"] for each in canonical["metrics"]}
        return cls(canonical["stepCount"], to_seconds(canonical["elapsedDuration"]), metrics)

    def to_json(self) -> dict[str, Any]:
        """The API's Measurement in canonical form."""
        return {
            "stepCount": self.step_count,
            "elapsedDuration": f"{self.elapsed:.6f}s",
            "metrics": [{"metricId": name, "value": value} for name, value in self.metrics.items()],
        }


@dataclass(frozen=True)
class LearningCurve:
    """Values of one objective of a trial in order, smaller is better (a MAXIMIZE metric comes negated).

    `at` are the moments: steps, or seconds where the rule uses elapsed durations. Both have the same length.
    """

    at: tuple[float, ...]
    losses: tuple[float, ...]

    def count(self, moment: float) -> int:
        """How many values there are up to and including a moment."""
        return bisect_right(self.at, moment)

    # A completed trial is compared with running ones all the time: each of its values is read once for that.

    @cached_property
    def records(self) -> Sequence[float]:
        """The smallest value up to each moment."""
        return tuple(accumulate(self.losses, min))

    @cached_property
    def averages(self) -> Sequence[float]:
        """The average of the values up to each moment, without rounding errors of sums: 0.1 is the average of 0.1s."""
        sums = accumulate(map(Fraction, self.losses))
        return tuple(float(total / count) for count, total in enumerate(sums, 1))


Curves = Mapping[str, LearningCurve]
"""A trial's curve of each objective, by its id."""


def learning_curves(study_spec: StudySpec, measurements: Sequence[Measurement]) -> Curves:
    """A trial's curves over the moments that the study's stopping rule compares."""
    rule: Any = next((spec for field, spec in study_spec.items() if field in RULE_FIELDS), {})
    curves = {}
    for objective in objectives_of(study_spec):
        points = [
            (measurement.elapsed if rule.get("useElapsedDuration") else float(measurement.step_count), loss)
            for measurement in measurements
            if (loss := objective.loss(measurement.metrics)) is not None
        ]
        points.sort(key=lambda point: point[0])
        curves[objective.id] = LearningCurve(tuple(at for at, _ in points), tuple(loss for _, loss in points))
    return curves


def trial_stopping_reason(study_spec: StudySpec, running: Curves, completed: Sequence[Curves]) -> str | None:
    """The reason to stop a running trial, as a clause for the log; None while it may go on.

    `running` are the trial's curves and `completed` those of each succeeded trial.
    """
    reasons = []
    for objective in objectives_of(study_spec):
        curve = running[objective.id]
        others = [other for curves in completed if (other := curves[objective.id]).at]
        reason = None
        if not curve.at:
            return None
        if "medianAutomatedStoppingSpec" in study_spec:
            reason = _judge_by_median(curve, others)
        elif "decayCurveStoppingSpec" in study_spec:
            reason = _judge_by_decay(curve, others)
        elif "convexAutomatedStoppingSpec" in study_spec:
            reason = _judge_by_convexity(study_spec["convexAutomatedStoppingSpec"], curve, others)
        if reason is None:
            return None
        reasons.append(f"{objective.id}: {reason}")
    return "; ".join(reasons)


def _judge_by_median(curve: LearningCurve, completed: Sequence[LearningCurve]) -> str | None:
    """Stop a trial whose best value is strictly worse than the completed ones' median running average.

    The averages are those up to the trial's last measurement (discovery document, MedianAutomatedStoppingSpec).
    """
    averages = [other.averages[count - 1] for other in completed if (count := other.count(curve.at[-1]))]
    if averages and curve.records[-1] > median(averages):
        return f"its best value is worse than the median of the running averages of {len(averages)} completed trials"
    return None


def _judge_by_decay(curve: LearningCurve, completed: Sequence[LearningCurve]) -> str | None:
    """Stop a trial that very probably ends worse than the best completed one.

    Google fits a Gaussian process to the curves (DecayCurveAutomatedStoppingSpec). Here the final best value of the
    completed trials is regressed on their best value at the moment that the running trial has come to: a straight line
    with a normal error, which needs `_REGRESSION_TRIALS` complete curves. "Very low probability" is below
    `MIN_CHANCE_TO_WIN`.
    """
    now = curve.at[-1]
    longest = max((other.at[-1] for other in completed), default=0.0)
    complete = [other for other in completed if other.at[-1] >= _COMPLETE_SHARE * longest]
    pairs = [(other.records[count - 1], other.records[-1]) for other in complete if (count := other.count(now))]
    if len(pairs) < _REGRESSION_TRIALS or now >= max(other.at[-1] for other in complete):
        return None
    expected, error = _predict_linearly(pairs, curve.records[-1])
    best = min(final for _, final in pairs)
    chance = 0.5 * (1 + erf((best - expected) / (error * sqrt(2)))) if error > 0 else float(expected <= best)
    if chance < MIN_CHANCE_TO_WIN:
        return f"its chance to beat the best of {len(pairs)} completed trials is {chance:.0%}"
    return None


def _predict_linearly(pairs: Sequence[tuple[float, float]], new_x: float) -> tuple[float, float]:
    """The final value that least squares predict at `new_x`, and the standard error of one prediction."""
    x_mean, y_mean = fmean(x for x, _ in pairs), fmean(y for _, y in pairs)
    spread = sum((x - x_mean) ** 2 for x, _ in pairs)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in pairs) / spread if spread > 0 else 0.0
    residual = sum((y - y_mean - slope * (x - x_mean)) ** 2 for x, y in pairs)
    leverage = (new_x - x_mean) ** 2 / spread if spread > 0 else 0.0
    return y_mean + slope * (new_x - x_mean), sqrt(residual / (len(pairs) - 2) * (1 + 1 / len(pairs) + leverage))


def _judge_by_convexity(
    spec: Mapping[str, Any], curve: LearningCurve, completed: Sequence[LearningCurve]
) -> str | None:
    """Stop a trial whose overestimate at the last step is worse than the best completed one.

    A learning curve is convex: it flattens. So a straight line from its recent slope to maxStepCount overestimates
    what the trial comes to (ConvexAutomatedStoppingSpec). The slope is that of the best value so far over the later
    half of the measurements; a flat curve gives no prediction. maxStepCount is by default the longest completed
    trial's. Checks begin with more than minMeasurementCount completed trials, as many measurements of this one, and
    one beyond minStepCount.
    """
    if not completed:
        return None
    min_measurements = spec.get("minMeasurementCount") or _DEFAULT_MIN_MEASUREMENTS
    last = spec.get("maxStepCount") or max(other.at[-1] for other in completed)
    first = spec.get("minStepCount", _DEFAULT_MIN_STEPS * last)
    now = curve.at[-1]
    if len(completed) <= min_measurements or len(curve.at) < min_measurements or not first < now < last:
        return None
    middle = len(curve.at) // 2
    begin = middle if curve.at[middle] < now else 0
    if curve.at[begin] == now:
        return None
    slope = (curve.records[-1] - curve.records[begin]) / (now - curve.at[begin])
    projected = curve.records[-1] + slope * (last - now)
    best = min(other.records[-1] for other in completed)
    if slope < 0 and projected > best:
        return f"even at its present slope it does not reach the best of {len(completed)} completed trials"
    return None


@dataclass(frozen=True)
class EndedTrial:
    """A trial that is over: when (ns since 1970), and its final metrics, None when it was infeasible."""

    at: int
    metrics: Mapping[str, float] | None


def study_stopping_reason(
    study_spec: StudySpec, trial_count: int, ended: Sequence[EndedTrial], created: int, now: int
) -> str | None:
    """The condition of `studyStoppingConfig` that is met, as a clause for the log; None while there is none.

    `trial_count` counts all trials so far, `created` and `now` are in ns since 1970. The min* conditions come first and
    block the others until they are met; then the first condition that holds decides (discovery document,
    StudyStoppingConfig). No progress is judged by the only objective, and not at all when there are several.
    """
    config: Mapping[str, Any] = study_spec.get("studyStoppingConfig", {})

    def has_passed(constraint: Mapping[str, Any], default: bool) -> bool:
        if "maxDuration" in constraint:
            return now - created >= _parse_ns(constraint["maxDuration"])
        if "endTime" in constraint:
            end = parse_time(constraint["endTime"])
            return end is not None and now >= end
        return default

    if not has_passed(config.get("minimumRuntimeConstraint", {}), default=True):
        return None
    if sum(trial.metrics is not None for trial in ended) < config.get("minNumTrials", 0):
        return None
    if has_passed(config.get("maximumRuntimeConstraint", {}), default=False):
        return "maximumRuntimeConstraint: its time has passed"
    if "maxNumTrials" in config and trial_count >= config["maxNumTrials"]:
        return f"maxNumTrials: there are {trial_count} trials"
    if len(objectives_of(study_spec)) != 1:
        return None
    stagnant, since = _stagnation(study_spec, ended, created)
    if "maxNumTrialsNoProgress" in config and stagnant >= config["maxNumTrialsNoProgress"]:
        return f"maxNumTrialsNoProgress: the last {stagnant} trials were not better"
    if "maxDurationNoProgress" in config and now - since >= _parse_ns(config["maxDurationNoProgress"]):
        return f"maxDurationNoProgress: nothing better for {config['maxDurationNoProgress']}"
    return None


def _stagnation(study_spec: StudySpec, ended: Sequence[EndedTrial], created: int) -> tuple[int, int]:
    """Count the trials in a row without a new best one; return the count and since when (ns, at first `created`)."""
    [objective] = objectives_of(study_spec)
    best, stagnant, since = None, 0, created
    for trial in sorted(ended, key=lambda trial: trial.at):
        loss = None
        if trial.metrics is not None and is_safe(study_spec, trial.metrics):
            loss = objective.loss(trial.metrics)
        if loss is not None and (best is None or loss < best):
            best, stagnant, since = loss, 0, trial.at
        else:
            stagnant += 1
    return stagnant, since


def _parse_ns(duration: str) -> int:
    return int(to_seconds(duration) * 10**9)
