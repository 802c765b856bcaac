"""What a trial's objective was at each measurement, as the early stopping rules look at it."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class Curve:
    """Values of one objective in order, smaller is better (a MAXIMIZE metric comes negated).

    `at` are the moments: steps, or seconds where the rule uses elapsed durations. Both have the same length.
    """

    at: tuple[float, ...]
    losses: tuple[float, ...]

    @property
    def best(self) -> float:
        """The smallest value so far."""
        return min(self.losses)

    def until(self, moment: float) -> "Curve":
        """The part up to a moment, which belongs to it."""
        count = bisect_right(self.at, moment)
        return Curve(self.at[:count], self.losses[:count])

    def mean(self) -> float:
        """The running average at the curve's end."""
        return sum(self.losses) / len(self.losses)

    def best_so_far(self) -> "Curve":
        """The curve that never gets worse: at each moment the smallest value until then."""
        return Curve(self.at, tuple(accumulate(self.losses, min)))
