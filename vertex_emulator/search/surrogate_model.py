"""The Gaussian process of the default algorithm: a wrapper of egobox that handles its failures.

Modules that import egobox or numpy are loaded by the first fit: they add tens of megabytes to a process.
"""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import egobox
import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
_KERNELS = ("SQUARED_EXPONENTIAL", "MATERN52")
# Start points for maximizing the likelihood: with more data a start costs more, and fewer are needed.
_FEW, _STARTS, _STARTS_OF_MANY = 60, 10, 3
_SMALLEST_VARIANCE = 1e-18
_STDERR = 2
_stderr_lock = threading.Lock()
Result = TypeVar("Result")


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
        updated = _get_result_unless_rust_fails(
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

    processes = [_get_result_unless_rust_fails(partial(fit_gaussian_process, kernel)) for kernel in _KERNELS]
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


def _get_result_unless_rust_fails(work: Callable[[], Result]) -> Result | None:
    """Return the result of `work`; None if its Rust code fails or panics."""
    try:
        with _suppress_panic_output():
            return work()
    except RuntimeError:
        return None
    except BaseException as failure:
        # A Rust panic is no `Exception`, and its class cannot be imported.
        if type(failure).__name__ != "PanicException":
            raise
        return None


@contextmanager
def _suppress_panic_output() -> Iterator[None]:
    """Keep Rust's panic message, which goes straight to file descriptor 2, off standard error.

    The descriptor belongs to the whole process: what other threads write to it meanwhile is captured and passed on.
    """
    with _stderr_lock, tempfile.TemporaryFile() as captured:
        stderr = os.dup(_STDERR)
        os.dup2(captured.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(stderr, _STDERR)
            os.close(stderr)
        captured.seek(0)
        os.write(_STDERR, captured.read())
