"""The next trial of a study, by the study's own algorithm."""

from collections.abc import Sequence

from vertex_api.types import StudySpec
from vertex_emulator.search import bayesian, grid_search, random_search
from vertex_emulator.search.domain import Value
from vertex_emulator.search.observation import Observation
from vertex_emulator.search.space import Space


def suggest(study_spec: StudySpec, observations: Sequence[Observation], seed: int) -> dict[str, Value]:
    """The parameters of the next trial, active ones only: ints, floats (DOUBLE, DISCRETE) and strings by id.

    `study_spec` is canonical (an absent minValue or maxValue is 0, an absent enum is its UNSPECIFIED). `observations`
    holds every trial of the study in the order they were made, running ones too: asked twice with the same ones, it
    answers the same. `seed` is the study's, one for all its trials. ALGORITHM_UNSPECIFIED is Bayesian, as on Vertex
    (Google's page on hyperparameter tuning), and there every metric guides the search.

    Raises `SearchSpaceExhausted` when a grid has no further point, and ValueError when a grid has a DOUBLE parameter.
    """
    space = Space.of(study_spec["parameters"])
    match study_spec.get("algorithm", "ALGORITHM_UNSPECIFIED"):
        case "GRID_SEARCH":
            return grid_search.suggest(space, observations)
        case "RANDOM_SEARCH":
            return random_search.suggest(space, observations, seed)
        case _:
            return bayesian.suggest(space, study_spec, observations, seed)
