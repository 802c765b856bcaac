"""The acquisition function: a confidence bound on the loss, combined with the probability that a point is safe."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from vertex_emulator.search.surrogate_model import Matrix, Surrogate

# A model never reaches probability 1, so larger requirements mean this.
_MAX_REQUIRED_SAFETY = 0.95
# The penalty per missing probability of being safe, larger than any gain.
_UNSAFE_PENALTY = 1e6


@dataclass(frozen=True)
class Acquisition:
    """Scores points, larger is better.

    `objective` models the loss, None while there is nothing to improve on. `safeties` model how far a safety metric is
    beyond its threshold (at most 0 is safe), and `required` is the probability of being safe that a point should have.
    `exploration_weight` is the weight of the standard deviation in the lower confidence bound.
    """

    objective: Surrogate | None
    safeties: Sequence[Surrogate]
    required: float
    exploration_weight: float

    def compute_scores(self, features: Matrix) -> Matrix:
        """Compute a score per row: the improvement, in standard deviations, plus the log probability of being safe."""
        total = np.zeros(len(features))
        if self.objective is not None:
            mean, deviation = self.objective.predict_mean_and_deviation(features)
            total = (self.exploration_weight * deviation - mean) / self.objective.deviation
        if self.safeties:
            safe = self._compute_safe_probabilities(features)
            missing = np.maximum(min(self.required, _MAX_REQUIRED_SAFETY) - safe, 0.0)
            total = total + np.log(np.maximum(safe, 1e-300)) - _UNSAFE_PENALTY * missing
        return total

    def _compute_safe_probabilities(self, features: Matrix) -> Matrix:
        safe = np.ones(len(features))
        for model in self.safeties:
            mean, deviation = model.predict_mean_and_deviation(features)
            safe *= [0.5 * erfc(z) for z in mean / deviation / sqrt(2)]
        return safe
