"""The next trial of a study, by the study's own algorithm."""

from collections.abc import Sequence

from vertex_api.types import StudySpec
from vertex_emulator.search import bayesian_search, grid_search, random_search
from vertex_emulator.search.measurements_and_observations import Observation
from vertex_emulator.search.parameter_domains import Value
from vertex_emulator.search.parameter_space import Space


def require_next_parameters(study_spec: StudySpec, observations: Sequence[Observation], seed: int) -> dict[str, Value]:
    """Suggest the active parameters of the next trial by id: ints, floats (DOUBLE, DISCRETE) and strings.

    `study_spec` is canonical (an absent minValue or maxValue is 0, an absent enum is its UNSPECIFIED). `observations`
    holds every trial of the study in order of creation, running ones too. Equal arguments give equal parameters.
    `seed` is the study's, one for all its trials. ALGORITHM_UNSPECIFIED is Bayesian, as on Vertex
    (Google's page on hyperparameter tuning), and there every metric guides the search.

    Raises `SearchSpaceExhausted` when a grid has no further point, and ValueError when a grid has a DOUBLE parameter.
    """
    space = Space.from_specs(study_spec["parameters"])
    match study_spec.get("algorithm", "ALGORITHM_UNSPECIFIED"):
        case "GRID_SEARCH":
            return grid_search.require_unseen_grid_point(space, observations)
        case "RANDOM_SEARCH":
            return random_search.suggest_random_point(space, len(observations), seed)
        case _:
            return bayesian_search.suggest_bayesian_point(space, study_spec, observations, seed)
