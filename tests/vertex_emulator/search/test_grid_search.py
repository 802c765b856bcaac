import pytest

from tests.vertex_emulator.search.studies import categorical, discrete, double, integer, parent, study, under
from vertex_emulator.errors import SearchSpaceExhausted
from vertex_emulator.search import Observation, require_next_parameters
from vertex_emulator.search.parameter_space import build_point_key


def grid(*parameters):
    return study(*parameters, algorithm="GRID_SEARCH")


def walk(study_spec, states=("SUCCEEDED", "ACTIVE", "INFEASIBLE")):
    """The points in turn, until the grid is exhausted."""
    observations = []
    for number in range(100):
        try:
            parameters = require_next_parameters(study_spec, observations, number)
        except SearchSpaceExhausted as end:
            return [observation.parameters for observation in observations], str(end)
        observations.append(Observation(parameters, states[number % len(states)]))
    raise AssertionError("a grid of less than 100 points has no end")


def test_a_grid_has_every_point_exactly_once():
    points, end = walk(grid(integer("layers", 1, 3), discrete("rate", 0.1, 0.2), categorical("kind", "a", "b")))
    expected = [
        {"layers": layers, "rate": rate, "kind": kind} for layers in (1, 2, 3) for rate in (0.1, 0.2) for kind in "ab"
    ]
    assert points == expected
    assert end == "all 12 points of the grid have a trial"


def test_a_grid_has_only_points_that_conditions_allow():
    kind = parent(
        categorical("kind", "tree", "net"),
        under(["tree"], integer("depth", 1, 2)),
        under(["net"], discrete("width", 8, 16, 32)),
    )
    points, _ = walk(grid(kind, integer("fold", 0, 1)))
    assert len(points) == len(set(map(build_point_key, points))) == 2 * 2 + 3 * 2
    assert {tuple(point) for point in points} == {("kind", "depth", "fold"), ("kind", "width", "fold")}


def test_a_grid_continues_at_the_first_missing_point():
    study_spec = grid(integer("layers", 1, 4))
    seen = [Observation({"layers": layers}, "SUCCEEDED") for layers in (4, 1, 3)]
    assert require_next_parameters(study_spec, seen, 0) == {"layers": 2}


def test_a_huge_grid_is_not_built_in_full():
    assert require_next_parameters(grid(integer("a", 1, 10**12), integer("b", 1, 10**12)), [], 0) == {"a": 1, "b": 1}


def test_a_grid_refuses_a_double_and_names_it():
    with pytest.raises(ValueError, match=r"the points of rate cannot be enumerated.*discreteValueSpec"):
        require_next_parameters(grid(integer("layers", 1, 3), double("rate", 0, 1)), [], 0)
