"""The next trial of a study, by the study's own algorithm: a grid, random points, or Bayesian optimization."""

from collections.abc import Sequence

from vertex_api.types import StudySpec
from vertex_emulator.errors import SearchSpaceExhausted
from vertex_emulator.search import bayesian
from vertex_emulator.search.space import Observation, Point, Space, point_key


def suggest(study_spec: StudySpec, observations: Sequence[Observation], seed: int) -> Point:
    """Suggest the active parameters of the next trial by id: ints, floats (DOUBLE, DISCRETE) and strings.

    `study_spec` is canonical (an absent minValue or maxValue is 0, an absent enum is its UNSPECIFIED). `observations`
    holds every trial of the study in order of creation, running ones too. Equal arguments give equal parameters.
    `seed` is the study's, one for all its trials. ALGORITHM_UNSPECIFIED is Bayesian, as on Vertex
    (Google's page on hyperparameter tuning), and there every metric guides the search.

    Raises `SearchSpaceExhausted` when a grid has no further point, and ValueError when a grid has a DOUBLE parameter.
    """
    space = Space.parse(study_spec["parameters"])
    match study_spec.get("algorithm", "ALGORITHM_UNSPECIFIED"):
        case "GRID_SEARCH":
            return _next_grid_point(space, observations)
        case "RANDOM_SEARCH":
            return space.draw(bayesian.seeded(seed, "random", len(observations)))
        case _:
            return bayesian.suggest(space, study_spec, observations, seed)


def _next_grid_point(space: Space, observations: Sequence[Observation]) -> Point:
    """The first point without a trial, in the order of the study's parameters and of their values."""
    seen = {point_key(observation.parameters) for observation in observations}
    for point in space.points():
        if point_key(point) not in seen:
            return point
    raise SearchSpaceExhausted(f"all {len(seen)} points of the grid have a trial")
