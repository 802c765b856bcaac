"""What a point is worth: the loss to hope for there, and how likely it is to be safe."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vertex_emulator.search.surrogate import Surrogate

    Matrix = NDArray[np.float64]

# Nothing is sure, so a required probability of 1 asks for this.
_LARGEST_REQUIRED = 0.95
# What a point is worth less per missing probability: more than any hope.
_UNSAFE = 1e6


@dataclass(frozen=True)
class Acquisition:
    """Scores of points, larger is better.

    `objective` models the loss, None while there is nothing to improve on. `safeties` model how far a safety metric is
    beyond its threshold (safe is at most 0), and `required` is the probability of being safe that a point should have.
    `optimism` is how many standard deviations below the mean a loss is hoped for.
    """

    objective: "Surrogate | None"
    safeties: "Sequence[Surrogate]"
    required: float
    optimism: float

    def scores(self, features: "Matrix") -> "Matrix":
        """The hope, in standard deviations of the losses, and the logarithm of the probability of being safe."""
        import numpy as np

        total = np.zeros(len(features))
        if self.objective is not None:
            mean, deviation = self.objective.predict(features)
            total = (self.optimism * deviation - mean) / self.objective.spread
        if self.safeties:
            safe = self._safe(features)
            missing = np.maximum(min(self.required, _LARGEST_REQUIRED) - safe, 0.0)
            total = total + np.log(np.maximum(safe, 1e-300)) - _UNSAFE * missing
        return total

    def _safe(self, features: "Matrix") -> "Matrix":
        import numpy as np

        safe = np.ones(len(features))
        for model in self.safeties:
            mean, deviation = model.predict(features)
            safe *= [0.5 * erfc(z) for z in mean / deviation / sqrt(2)]
        return safe
