"""What the default algorithm knows of a point: a Gaussian process (egobox's) for each quantity, and a score of both.

egobox and numpy add tens of megabytes to a process, so the first fit imports this module.
"""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import erfc, sqrt
from typing import TypeVar

import egobox
import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Result = TypeVar("Result")
_KERNELS = ("SQUARED_EXPONENTIAL", "MATERN52")
# Start points for maximizing the likelihood: with more data a start costs more, and fewer are needed.
_FEW, _STARTS, _STARTS_OF_MANY = 60, 10, 3
_SMALLEST_VARIANCE = 1e-18
# A model never reaches probability 1, so larger requirements mean this.
_MAX_REQUIRED_SAFETY = 0.95
# The penalty per missing probability of being safe, larger than any gain.
_UNSAFE_PENALTY = 1e6
_STDERR = 2
_stderr_lock = threading.Lock()


@dataclass(frozen=True)
class Surrogate:
    """A Gaussian process model of one quantity over the space's features (0 to 1 each).

    `process` is fitted to values standardized by `mean` and `deviation` (standard deviation).
    """

    process: egobox.Gpx
    mean: float
    deviation: float

    def predict(self, features: Matrix) -> tuple[Matrix, Matrix]:
        """Predict mean and standard deviation at each row."""
        variance = np.maximum(self.process.predict_var(features).ravel(), _SMALLEST_VARIANCE)
        mean = self.mean + self.deviation * self.process.predict(features).ravel()
        return mean, self.deviation * np.sqrt(variance)

    def condition(self, pending: Matrix) -> "Surrogate":
        """The model conditioned on its own predictions for pending rows (fantasies); itself if that fails."""
        updated = _attempt(lambda: self.process.update(pending, self.process.predict(pending)[:, None]))
        return self if updated is None else replace(self, process=updated)


def fit(features: Matrix, values: Matrix, seed: int) -> Surrogate | None:
    """Fit a model of finite `values`, one per row of `features`; None if all are equal or the fit fails.

    Of a smooth and a rough kernel it takes the one with the higher likelihood. The first is far better on smooth
    functions, the second on rugged ones (measured: Hartmann 6 and Levy 3).
    """
    mean, deviation = float(np.mean(values)), float(np.std(values))
    if deviation == 0:
        return None
    # Equal points, which could make the covariance matrix singular, become one with their average.
    x, index = np.unique(features, axis=0, return_inverse=True)
    index = index.ravel()
    y = (np.bincount(index, weights=(values - mean) / deviation) / np.bincount(index))[:, None]
    starts = _STARTS if len(x) <= _FEW else _STARTS_OF_MANY

    def fit_kernel(kernel: str) -> egobox.Gpx:
        correlation = getattr(egobox.CorrelationSpec, kernel)
        return egobox.GpMix(corr_spec=correlation, theta_n_start=starts, seed=seed).fit(x, y)

    processes = [_attempt(partial(fit_kernel, kernel)) for kernel in _KERNELS]
    candidates = [process for process in processes if process is not None]
    if not candidates:
        return None
    return Surrogate(max(candidates, key=lambda process: float(process.likelihoods[0])), mean, deviation)


@dataclass(frozen=True)
class Acquisition:
    """Scores points: a confidence bound on the loss, combined with the probability that a point is safe.

    `objective` models the loss, None while there is nothing to improve on. `safeties` model how far a safety metric is
    beyond its threshold (at most 0 is safe), and `required` is the probability of being safe that a point should have.
    `exploration` is the weight of the standard deviation in the lower confidence bound.
    """

    objective: Surrogate | None
    safeties: Sequence[Surrogate]
    required: float
    exploration: float

    def score(self, features: Matrix) -> Matrix:
        """A score per row, larger is better: the improvement, in standard deviations, plus the log of its safety."""
        total = np.zeros(len(features))
        if self.objective is not None:
            mean, deviation = self.objective.predict(features)
            total = (self.exploration * deviation - mean) / self.objective.deviation
        if self.safeties:
            safe = np.ones(len(features))
            for model in self.safeties:
                mean, deviation = model.predict(features)
                safe *= [0.5 * erfc(z) for z in mean / deviation / sqrt(2)]
            missing = np.maximum(min(self.required, _MAX_REQUIRED_SAFETY) - safe, 0.0)
            total = total + np.log(np.maximum(safe, 1e-300)) - _UNSAFE_PENALTY * missing
        return total


def _attempt(work: Callable[[], Result]) -> Result | None:
    """Return the result of `work`; None if its Rust code fails or panics."""
    try:
        with _silence_panics():
            return work()
    except RuntimeError:
        return None
    except BaseException as failure:
        # A Rust panic is no `Exception`, and its class cannot be imported.
        if type(failure).__name__ != "PanicException":
            raise
        return None


@contextmanager
def _silence_panics() -> Iterator[None]:
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
