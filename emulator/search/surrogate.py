"""The Gaussian process behind the default algorithm: egobox, and the care that it needs."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import TYPE_CHECKING

from emulator.search.domain import Categories, Domain, Integers, Interval

if TYPE_CHECKING:
    import egobox

# More integers than this are a continuum to the model.
_LISTED_POSITIONS = 1000
# Each category costs the model a dimension: 40 take half a second a suggestion, 200 take 9 (measured).
_CATEGORY_DIMENSIONS = 40

_STDERR = 2
_one_at_a_time = threading.Lock()


def propose(
    domains: Sequence[Domain], rows: Sequence[Sequence[float]], losses: Sequence[float], seed: int
) -> list[float] | None:
    """The position where a small loss is most promising, one number per domain; None when the fit fails.

    `rows` are positions (`Domain.position`), `losses` finite numbers of at least two different sizes. Prints nothing.
    """
    # Here and not above: they add tens of megabytes to a process that may never tune anything.
    import egobox
    import numpy as np

    losses_at: dict[tuple[float, ...], list[float]] = defaultdict(list)
    for row, loss in zip(rows, losses, strict=True):
        losses_at[tuple(row)].append(loss)  # the same point twice can make the covariance matrix singular
    x = np.array(list(losses_at))
    y = np.array([[fmean(repeated)] for repeated in losses_at.values()])
    # SLSQP: as good as the default optimiser on Branin, Hartmann 6, Rosenbrock and Ackley in half the time (measured).
    model = egobox.Egor(_columns(domains), infill_optimizer=egobox.InfillOptimizer.SLSQP)
    try:
        with _panic_unprinted():
            [proposed] = model.suggest(x, y, seed=seed)
    except BaseException as failure:
        # A Rust panic passes by `except Exception`, and its class cannot be imported.
        if type(failure).__name__ != "PanicException":
            raise
        return None
    return [float(position) for position in proposed]


def _columns(domains: Sequence[Domain]) -> list[egobox.XSpec]:
    import egobox

    unordered = _unordered(domains)
    columns = []
    for index, domain in enumerate(domains):
        if index in unordered:
            columns.append(egobox.XSpec(egobox.XType.ENUM, [float(len(unordered[index].values))]))
        elif isinstance(domain, Interval) or (isinstance(domain, Integers) and domain.count > _LISTED_POSITIONS):
            columns.append(egobox.XSpec(egobox.XType.FLOAT, [0.0, 1.0]))
        else:
            columns.append(egobox.XSpec(egobox.XType.ORD, [domain.position(value) for value in domain]))
    return columns


def _unordered(domains: Sequence[Domain]) -> dict[int, Categories]:
    """The categorical domains that the model can afford to see without an order, the short ones first."""
    categorical = [(index, domain) for index, domain in enumerate(domains) if isinstance(domain, Categories)]
    affordable = {}
    dimensions = 0
    for index, domain in sorted(categorical, key=lambda entry: entry[1].count):
        dimensions += domain.count
        if dimensions <= _CATEGORY_DIMENSIONS:
            affordable[index] = domain
    return affordable


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
