"""The Gaussian process behind the default algorithm: egobox, and the care that it needs."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import egobox
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

_KERNELS = ("SQUARED_EXPONENTIAL", "MATERN52")
# From how many places the likelihood's maximum is searched for: the more points, the dearer and the less ambiguous.
_FEW, _STARTS, _STARTS_OF_MANY = 60, 10, 3
_SMALLEST_VARIANCE = 1e-18
_STDERR = 2
_one_at_a_time = threading.Lock()
Result = TypeVar("Result")


@dataclass(frozen=True)
class Surrogate:
    """A fitted model of one quantity over the space's features (0 to 1 each).

    The process knows the values less `mean` and divided by `spread`, their mean and standard deviation.
    """

    process: "egobox.Gpx"
    mean: float
    spread: float

    def predict(self, features: "Matrix") -> "tuple[Matrix, Matrix]":
        """Mean and standard deviation at each row."""
        import numpy as np

        variance = np.maximum(self.process.predict_var(features).ravel(), _SMALLEST_VARIANCE)
        return self.mean + self.spread * self.process.predict(features).ravel(), self.spread * np.sqrt(variance)

    def believing(self, features: "Matrix") -> "Surrogate":
        """The model as if each row had turned out as predicted, so that it is sure of them; itself when that fails."""
        updated = _unless_it_fails(lambda: self.process.update(features, self.process.predict(features)[:, None]))
        return self if updated is None else replace(self, process=updated)


def fit(features: "Matrix", values: "Matrix", seed: int) -> Surrogate | None:
    """A model of finite `values`, one per row of `features`; None when they are all the same, or the fit fails.

    The smoothest kernel or a rough one, whichever makes the values more likely: the first is far better on smooth
    functions and the second on rugged ones (measured: Hartmann 6 and Levy 3).
    """
    # Here and not above: they add tens of megabytes to a process that may never tune anything.
    import egobox
    import numpy as np

    mean, spread = float(np.mean(values)), float(np.std(values))
    if spread == 0:
        return None
    x, y = _averaged(features, (values - mean) / spread)

    starts = _STARTS if len(x) <= _FEW else _STARTS_OF_MANY

    def fitted(kernel: str) -> "egobox.Gpx":
        correlation = getattr(egobox.CorrelationSpec, kernel)
        return egobox.GpMix(corr_spec=correlation, theta_n_start=starts, seed=seed).fit(x, y)

    processes = [_unless_it_fails(partial(fitted, kernel)) for kernel in _KERNELS]
    known = [process for process in processes if process is not None]
    if not known:
        return None
    return Surrogate(max(known, key=lambda process: float(process.likelihoods[0])), mean, spread)


def _averaged(features: "Matrix", values: "Matrix") -> "tuple[Matrix, Matrix]":
    """Each point once, with the mean of its values: a point twice can make the covariance matrix singular."""
    import numpy as np

    distinct, index = np.unique(features, axis=0, return_inverse=True)
    index = index.ravel()
    sums = np.bincount(index, weights=values)
    return distinct, (sums / np.bincount(index))[:, None]


def _unless_it_fails(work: Callable[[], Result]) -> Result | None:
    """The result of `work`, None when Rust code refuses or panics in it."""
    try:
        with _panic_unprinted():
            return work()
    except RuntimeError:
        return None
    except BaseException as failure:
        # A Rust panic passes by `except Exception`, and its class cannot be imported.
        if type(failure).__name__ != "PanicException":
            raise
        return None


@contextmanager
def _panic_unprinted() -> Iterator[None]:
    """Keep Rust's panic message, which goes straight to file descriptor 2, off standard error.

    The descriptor is the whole process's: what other threads write to it meanwhile is held and passed on, unless a
    panic has mixed in.
    """
    with _one_at_a_time, tempfile.TemporaryFile() as held:
        stderr = os.dup(_STDERR)
        os.dup2(held.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(stderr, _STDERR)
            os.close(stderr)
        held.seek(0)
        os.write(_STDERR, held.read())
