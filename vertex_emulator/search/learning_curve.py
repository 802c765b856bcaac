"""The learning curve of a trial: its objective at each measurement, for the early stopping rules."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class LearningCurve:
    """Values of one objective in order, smaller is better (a MAXIMIZE metric comes negated).

    `at` are the moments: steps, or seconds where the rule uses elapsed durations. Both have the same length.
    """

    at: tuple[float, ...]
    losses: tuple[float, ...]

    @property
    def best_loss(self) -> float:
        """The smallest value so far."""
        return min(self.losses)

    def truncate(self, moment: float) -> "LearningCurve":
        """Return the part up to and including a moment."""
        count = bisect_right(self.at, moment)
        return LearningCurve(self.at[:count], self.losses[:count])

    def compute_best_so_far(self) -> "LearningCurve":
        """Compute the curve of the smallest loss up to each moment."""
        return LearningCurve(self.at, tuple(accumulate(self.losses, min)))
