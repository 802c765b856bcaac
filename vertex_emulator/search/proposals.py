"""The search for the point of the highest score: many points at once, then ever smaller steps from the best."""

from math import log
from typing import TYPE_CHECKING

from vertex_emulator.search.acquisition import Acquisition
from vertex_emulator.search.candidates import Candidates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

_POINTS = 1000
# Steps are drawn between these widths, each size as likely as the next, in shares of an axis.
_WIDTHS_EVERYWHERE = (0.0005, 0.5)
_WIDTHS_NEAR = (0.001, 0.1)
# The best few points are copied, the copies moved, the best few of all kept, and the steps halved.
_KEPT, _COPIES, _ROUNDS, _FIRST_STEP = 8, 10, 14, 0.1


def everywhere(candidates: Candidates, best: "Matrix", random: "np.random.Generator") -> "Matrix":
    """Points all over the space, and as many around the best trials (rows, the best first)."""
    import numpy as np

    return np.vstack([candidates.draw(_POINTS, random), _around(candidates, best, _WIDTHS_EVERYWHERE, random)])


def near_the_best(candidates: Candidates, best: "Matrix", random: "np.random.Generator") -> "Matrix":
    """Points around the best trial alone."""
    return _around(candidates, best[:1], _WIDTHS_NEAR, random)


def refined(
    candidates: Candidates, acquisition: Acquisition, points: "Matrix", random: "np.random.Generator"
) -> "Matrix":
    """Better points than `points`, the one of the highest score first."""
    import numpy as np

    scores = acquisition.scores(candidates.features(points))
    for step in range(_ROUNDS):
        top = np.argsort(-scores, kind="stable")[:_KEPT]
        widths = np.full(len(top) * _COPIES, _FIRST_STEP / 2**step)
        moved = candidates.near(np.repeat(points[top], _COPIES, axis=0), widths, random)
        points = np.vstack([points[top], moved])
        scores = np.concatenate([scores[top], acquisition.scores(candidates.features(moved))])
    return points[np.argsort(-scores, kind="stable")]


def _around(
    candidates: Candidates, rows: "Matrix", widths: tuple[float, float], random: "np.random.Generator"
) -> "Matrix":
    import numpy as np

    chosen = rows[random.integers(len(rows), size=_POINTS)]
    return candidates.near(chosen, np.exp(random.uniform(log(widths[0]), log(widths[1]), size=_POINTS)), random)
