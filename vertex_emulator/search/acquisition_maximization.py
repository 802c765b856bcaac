"""The maximization of the acquisition function: many start points, then ever smaller steps from the best ones."""

from math import log

import numpy as np
from numpy.random import Generator

from vertex_emulator.search.parameter_domains import Categories
from vertex_emulator.search.point_encoder import PointEncoder
from vertex_emulator.search.safe_confidence_bound import Acquisition
from vertex_emulator.search.surrogate_model import Matrix

_POINTS = 1000
# Step widths as shares of an axis, drawn log-uniformly between these bounds.
_GLOBAL_WIDTH_BOUNDS = (0.0005, 0.5)
_LOCAL_WIDTH_BOUNDS = (0.001, 0.1)
# Each round copies the best points, moves the copies, keeps the best of all, and halves the steps.
_KEPT, _COPIES, _ROUNDS, _FIRST_STEP = 8, 10, 14, 0.1
# The probability that a step moves a listed value to its neighbour, however small the step is.
_NEIGHBOUR_PROBABILITY = 0.5


def sample_points_globally_and_near_best(encoder: PointEncoder, rows_best_first: Matrix, random: Generator) -> Matrix:
    """Sample points from the whole space, and as many around the best trials (`rows_best_first`)."""
    global_rows = draw_random_rows(encoder, _POINTS, random)
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
        moved = perturb_rows(encoder, np.repeat(points[best_points], _COPIES, axis=0), widths, random)
        points = np.vstack([points[best_points], moved])
        scores = np.concatenate([scores[best_points], acquisition.compute_scores(encoder.convert_to_features(moved))])
    return points[np.argsort(-scores, kind="stable")]


def draw_random_rows(encoder: PointEncoder, count: int, random: Generator) -> Matrix:
    """Draw `count` random rows, uniform on the scales and among listed values."""
    return encoder.copy_with_nan_in_inactive_cells(_draw_random_rows_without_nan(encoder, count, random))


def perturb_rows(encoder: PointEncoder, rows: Matrix, widths: Matrix, random: Generator) -> Matrix:
    """Move each row on about half of its axes, at least one, by normal steps of the row's width."""
    count, columns = rows.shape
    moves = random.random((count, columns)) < max(0.5, 1 / columns)
    moves[np.arange(count), random.integers(columns, size=count)] = True
    fresh = _draw_random_rows_without_nan(encoder, count, random)
    start = np.where(np.isnan(rows), 0.5, rows)
    moved = np.clip(start + widths[:, None] * random.standard_normal(rows.shape), 0, 1)
    for column, listed in encoder.positions_by_discrete_column.items():
        if isinstance(encoder.varied_parameters[column].domain, Categories):
            keeps = random.random(count) < 1 - np.minimum(widths * 2, 0.3)
            drawn = listed[random.integers(len(listed), size=count)]
            moved[:, column] = np.where(keeps, start[:, column], drawn)
            continue
        at = np.abs(listed[None, :] - start[:, column, None]).argmin(axis=1)
        aside = np.clip(at + random.choice([-1, 1], size=count), 0, len(listed) - 1)
        nearest = np.abs(listed[None, :] - moved[:, column, None]).argmin(axis=1)
        moved[:, column] = listed[np.where(random.random(count) < _NEIGHBOUR_PROBABILITY, aside, nearest)]
    # An axis that was not active has no position to move from.
    moved = np.where(np.isnan(rows), fresh, moved)
    return encoder.copy_with_nan_in_inactive_cells(np.where(moves | np.isnan(rows), moved, rows))


def _draw_rows_around(
    encoder: PointEncoder, rows: Matrix, width_bounds: tuple[float, float], random: Generator
) -> Matrix:
    start_rows = rows[random.integers(len(rows), size=_POINTS)]
    low, high = map(log, width_bounds)
    return perturb_rows(encoder, start_rows, np.exp(random.uniform(low, high, size=_POINTS)), random)


def _draw_random_rows_without_nan(encoder: PointEncoder, count: int, random: Generator) -> Matrix:
    """Draw a cell for every axis, active or not."""
    rows = random.random((count, len(encoder.varied_parameters)))
    for column, listed in encoder.positions_by_discrete_column.items():
        rows[:, column] = listed[(rows[:, column] * len(listed)).astype(int)]
    return rows
