"""The maximization of the acquisition function: many start points, then ever smaller steps from the best ones."""

from math import log

import numpy as np

from vertex_emulator.search.acquisition_function import Acquisition
from vertex_emulator.search.point_encoding import PointEncoder
from vertex_emulator.search.surrogate_model import Matrix

_POINTS = 1000
# Step widths as shares of an axis, drawn log-uniformly between these bounds.
_GLOBAL_WIDTHS = (0.0005, 0.5)
_LOCAL_WIDTHS = (0.001, 0.1)
# Each round copies the best points, moves the copies, keeps the best of all, and halves the steps.
_KEPT, _COPIES, _ROUNDS, _FIRST_STEP = 8, 10, 14, 0.1


def sample_globally_and_near_best(encoder: PointEncoder, best_rows: Matrix, random: np.random.Generator) -> Matrix:
    """Sample points from the whole space, and as many around the best trials (rows, the best first)."""
    return np.vstack([encoder.draw_rows(_POINTS, random), _sample_around(encoder, best_rows, _GLOBAL_WIDTHS, random)])


def sample_near_best_trial(encoder: PointEncoder, best_rows: Matrix, random: np.random.Generator) -> Matrix:
    """Sample points around the best trial only."""
    return _sample_around(encoder, best_rows[:1], _LOCAL_WIDTHS, random)


def refine_and_rank_points(
    encoder: PointEncoder, acquisition: Acquisition, points: Matrix, random: np.random.Generator
) -> Matrix:
    """Improve `points` by local steps, and return the result with the highest score first."""
    scores = acquisition.compute_scores(encoder.convert_to_features(points))
    for step in range(_ROUNDS):
        best_points = np.argsort(-scores, kind="stable")[:_KEPT]
        widths = np.full(len(best_points) * _COPIES, _FIRST_STEP / 2**step)
        moved = encoder.perturb(np.repeat(points[best_points], _COPIES, axis=0), widths, random)
        points = np.vstack([points[best_points], moved])
        scores = np.concatenate([scores[best_points], acquisition.compute_scores(encoder.convert_to_features(moved))])
    return points[np.argsort(-scores, kind="stable")]


def _sample_around(
    encoder: PointEncoder, rows: Matrix, widths: tuple[float, float], random: np.random.Generator
) -> Matrix:
    start_rows = rows[random.integers(len(rows), size=_POINTS)]
    return encoder.perturb(start_rows, np.exp(random.uniform(log(widths[0]), log(widths[1]), size=_POINTS)), random)
