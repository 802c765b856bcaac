"""The maximization of the acquisition function: many start points, then ever smaller steps from the best ones."""

from math import log

import numpy as np
from numpy.random import Generator

from vertex_emulator.search.acquisition_function import Acquisition
from vertex_emulator.search.point_encoding_and_sampling import PointEncoder
from vertex_emulator.search.surrogate_model import Matrix

_POINTS = 1000
# Step widths as shares of an axis, drawn log-uniformly between these bounds.
_GLOBAL_WIDTH_BOUNDS = (0.0005, 0.5)
_LOCAL_WIDTH_BOUNDS = (0.001, 0.1)
# Each round copies the best points, moves the copies, keeps the best of all, and halves the steps.
_KEPT, _COPIES, _ROUNDS, _FIRST_STEP = 8, 10, 14, 0.1


def sample_points_globally_and_near_best(encoder: PointEncoder, rows_best_first: Matrix, random: Generator) -> Matrix:
    """Sample points from the whole space, and as many around the best trials (`rows_best_first`)."""
    global_rows = encoder.draw_random_rows(_POINTS, random)
    return np.vstack([global_rows, _draw_rows_around(encoder, rows_best_first, _GLOBAL_WIDTH_BOUNDS, random)])


def sample_points_near_best_trial(encoder: PointEncoder, rows_best_first: Matrix, random: Generator) -> Matrix:
    """Sample points around the best trial only."""
    return _draw_rows_around(encoder, rows_best_first[:1], _LOCAL_WIDTH_BOUNDS, random)


def refine_and_rank_points(
    encoder: PointEncoder, acquisition: Acquisition, points: Matrix, random: Generator
) -> Matrix:
    """Improve `points` by local steps, and return the result with the highest score first."""
    scores = acquisition.compute_scores(encoder.convert_to_features(points))
    for step in range(_ROUNDS):
        best_points = np.argsort(-scores, kind="stable")[:_KEPT]
        widths = np.full(len(best_points) * _COPIES, _FIRST_STEP / 2**step)
        moved = encoder.perturb_rows(np.repeat(points[best_points], _COPIES, axis=0), widths, random)
        points = np.vstack([points[best_points], moved])
        scores = np.concatenate([scores[best_points], acquisition.compute_scores(encoder.convert_to_features(moved))])
    return points[np.argsort(-scores, kind="stable")]


def _draw_rows_around(
    encoder: PointEncoder, rows: Matrix, width_bounds: tuple[float, float], random: Generator
) -> Matrix:
    start_rows = rows[random.integers(len(rows), size=_POINTS)]
    low, high = map(log, width_bounds)
    return encoder.perturb_rows(start_rows, np.exp(random.uniform(low, high, size=_POINTS)), random)
