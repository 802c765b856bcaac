"""The Gaussian process of the default algorithm: a wrapper of egobox, whose failures give no model.

Modules that import egobox or numpy are loaded by the first fit: they add tens of megabytes to a process.
"""

from dataclasses import dataclass, replace
from functools import partial

import egobox
import numpy as np
from numpy.typing import NDArray

from vertex_emulator.search.rust_failure_handling import get_result_unless_rust_fails

Matrix = NDArray[np.float64]
_KERNELS = ("SQUARED_EXPONENTIAL", "MATERN52")
# Start points for maximizing the likelihood: with more data a start costs more, and fewer are needed.
_FEW, _STARTS, _STARTS_OF_MANY = 60, 10, 3
_SMALLEST_VARIANCE = 1e-18


@dataclass(frozen=True)
class Surrogate:
    """A Gaussian process model of one quantity over the space's features (0 to 1 each).

    `gaussian_process` is fitted to values standardized by `mean` and `deviation` (standard deviation).
    """

    gaussian_process: egobox.Gpx
    mean: float
    deviation: float

    def predict_mean_and_deviation(self, features: Matrix) -> tuple[Matrix, Matrix]:
        """Predict mean and standard deviation at each row."""
        variance = np.maximum(self.gaussian_process.predict_var(features).ravel(), _SMALLEST_VARIANCE)
        mean = self.mean + self.deviation * self.gaussian_process.predict(features).ravel()
        return mean, self.deviation * np.sqrt(variance)

    def condition_on_pending(self, features: Matrix) -> "Surrogate":
        """Return the model conditioned on its own predictions for pending rows (fantasies); itself if that fails."""
        updated = get_result_unless_rust_fails(
            lambda: self.gaussian_process.update(features, self.gaussian_process.predict(features)[:, None])
        )
        return self if updated is None else replace(self, gaussian_process=updated)


def try_to_fit_surrogate(features: Matrix, values: Matrix, seed: int) -> Surrogate | None:
    """Fit a model of finite `values`, one per row of `features`; None if all are equal or the fit fails.

    Of a smooth and a rough kernel it takes the one with the higher likelihood. The first is far better on smooth
    functions, the second on rugged ones (measured: Hartmann 6 and Levy 3).
    """
    mean, deviation = float(np.mean(values)), float(np.std(values))
    if deviation == 0:
        return None
    x, y = _average_values_of_equal_points(features, (values - mean) / deviation)
    starts = _STARTS if len(x) <= _FEW else _STARTS_OF_MANY

    def fit_gaussian_process(kernel: str) -> egobox.Gpx:
        correlation = getattr(egobox.CorrelationSpec, kernel)
        return egobox.GpMix(corr_spec=correlation, theta_n_start=starts, seed=seed).fit(x, y)

    processes = [get_result_unless_rust_fails(partial(fit_gaussian_process, kernel)) for kernel in _KERNELS]
    candidates = [gaussian_process for gaussian_process in processes if gaussian_process is not None]
    if not candidates:
        return None
    likeliest = max(candidates, key=lambda gaussian_process: float(gaussian_process.likelihoods[0]))
    return Surrogate(likeliest, mean, deviation)


def _average_values_of_equal_points(features: Matrix, values: Matrix) -> tuple[Matrix, Matrix]:
    """Average the values of equal points, which could make the covariance matrix singular."""
    distinct, index = np.unique(features, axis=0, return_inverse=True)
    index = index.ravel()
    sums = np.bincount(index, weights=values)
    return distinct, (sums / np.bincount(index))[:, None]
