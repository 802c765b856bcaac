import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vertex_emulator.search.studies import (
    branin,
    branin_study,
    categorical,
    conditional,
    discrete,
    double,
    every_kind,
    integer,
    parent,
    run,
    study,
    under,
)
from vertex_emulator import search
from vertex_emulator.errors import SearchSpaceExhausted
from vertex_emulator.search import Observation, suggest
from vertex_emulator.search.space import point_key

PROJECT = Path(__file__).parents[3]

NEXT_POINTS = """
import json, sys
from vertex_emulator.search import Observation, suggest
study_spec, seen, seed = json.load(sys.stdin)
observations = [Observation(*fields) for fields in seen]
print(json.dumps(suggest(study_spec, observations, seed)))
"""

LOADED = """
import sys
from vertex_emulator.search import suggest
metrics = [{"metricId": "loss"}]
number = {"parameterId": "p", "integerValueSpec": {"minValue": 1, "maxValue": 9}}
for algorithm in ("RANDOM_SEARCH", "GRID_SEARCH", "ALGORITHM_UNSPECIFIED"):
    suggest({"metrics": metrics, "parameters": [number], "algorithm": algorithm}, [], 1)
print(sorted({"numpy", "egobox"} & set(sys.modules)))
"""


def python(code, text, hash_seed):
    environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("trials", [0, 3, 20])
@pytest.mark.parametrize("algorithm", ["ALGORITHM_UNSPECIFIED", "RANDOM_SEARCH"])
def test_equal_arguments_give_equal_points_in_every_process(algorithm, trials):
    def loss(point):
        return float(len(str(point)))

    study_spec = conditional() | {"algorithm": algorithm}
    observations = run(study_spec, trials, 11, loss)
    here = suggest(study_spec, observations, 11)
    fields = [[dict(seen.parameters), seen.state, dict(seen.metrics)] for seen in observations]
    arguments = json.dumps([study_spec, fields, 11])
    assert [json.loads(python(NEXT_POINTS, arguments, hash_seed)) for hash_seed in ("1", "2")] == [here, here]


@pytest.mark.parametrize(
    ("algorithm", "trials"), [("ALGORITHM_UNSPECIFIED", 0), ("RANDOM_SEARCH", 0), ("RANDOM_SEARCH", 8)]
)
def test_another_seed_gives_another_point(algorithm, trials):
    observations = run(branin_study("RANDOM_SEARCH"), trials, 1, branin)
    points = {suggest(branin_study(algorithm), observations, seed)["x"] for seed in range(8)}
    assert len(points) == 8


def test_absent_algorithm_is_unspecified_one():
    observations = run(branin_study(), 8, 1, branin)
    default = suggest(branin_study(), observations, 1)
    assert default == suggest(branin_study("ALGORITHM_UNSPECIFIED"), observations, 1)
    assert default != suggest(branin_study("RANDOM_SEARCH"), observations, 1)


@pytest.mark.parametrize("seed", range(20))
def test_random_points_of_one_study_differ(seed):
    observations = run(branin_study("RANDOM_SEARCH"), 20, seed, branin)
    assert len({observation.parameters["x"] for observation in observations}) == 20


@pytest.mark.parametrize("seed", range(20))
def test_random_points_have_every_parameter_in_its_order(seed):
    study_spec = every_kind() | {"algorithm": "RANDOM_SEARCH"}
    assert list(suggest(study_spec, [], seed)) == [parameter["parameterId"] for parameter in study_spec["parameters"]]


def test_trial_value_changes_next_point():
    study_spec = study(integer("layers", 1, 1000))
    points = [Observation({"layers": layers}, "SUCCEEDED", {"loss": layers}) for layers in range(100, 900, 100)]
    turned = [Observation(seen.parameters, "SUCCEEDED", {"loss": -seen.metrics["loss"]}) for seen in points]
    assert suggest(study_spec, points, 1)["layers"] < 100 < 800 < suggest(study_spec, turned, 1)["layers"]


def test_only_first_fit_loads_numpy_and_egobox():
    assert python(LOADED, "", "1") == "[]\n"


def test_exports_are_these():
    assert sorted(search.__all__) == [
        "EndedTrial",
        "Measurement",
        "Observation",
        "SearchSpaceExhausted",
        "suggest",
    ]


@pytest.mark.parametrize("algorithm", ["ALGORITHM_UNSPECIFIED", "RANDOM_SEARCH", "GRID_SEARCH"])
def test_default_value_is_without_effect(algorithm):
    plain, with_default = (
        study(
            {"parameterId": "layers", "integerValueSpec": {"minValue": 1, "maxValue": 9} | default}, algorithm=algorithm
        )
        for default in ({}, {"defaultValue": 5})
    )
    assert suggest(plain, [], 1) == suggest(with_default, [], 1)


def grid(*parameters):
    return study(*parameters, algorithm="GRID_SEARCH")


def walk(study_spec, states=("SUCCEEDED", "ACTIVE", "INFEASIBLE")):
    """The points in turn, until the grid is exhausted."""
    observations = []
    for number in range(100):
        try:
            parameters = suggest(study_spec, observations, number)
        except SearchSpaceExhausted as end:
            return [observation.parameters for observation in observations], str(end)
        observations.append(Observation(parameters, states[number % len(states)]))
    raise AssertionError("a grid of less than 100 points has no end")


def test_grid_has_every_point_exactly_once():
    points, end = walk(grid(integer("layers", 1, 3), discrete("rate", 0.1, 0.2), categorical("kind", "a", "b")))
    expected = [
        {"layers": layers, "rate": rate, "kind": kind} for layers in (1, 2, 3) for rate in (0.1, 0.2) for kind in "ab"
    ]
    assert points == expected
    assert end == "all 12 points of the grid have a trial"


def test_grid_has_only_points_that_conditions_allow():
    kind = parent(
        categorical("kind", "tree", "net"),
        under(["tree"], integer("depth", 1, 2)),
        under(["net"], discrete("width", 8, 16, 32)),
    )
    points, _ = walk(grid(kind, integer("fold", 0, 1)))
    assert len(points) == len(set(map(point_key, points))) == 2 * 2 + 3 * 2
    assert {tuple(point) for point in points} == {("kind", "depth", "fold"), ("kind", "width", "fold")}


def test_grid_continues_at_first_missing_point():
    study_spec = grid(integer("layers", 1, 4))
    seen = [Observation({"layers": layers}, "SUCCEEDED") for layers in (4, 1, 3)]
    assert suggest(study_spec, seen, 0) == {"layers": 2}


def test_huge_grid_is_not_built_in_full():
    assert suggest(grid(integer("a", 1, 10**12), integer("b", 1, 10**12)), [], 0) == {"a": 1, "b": 1}


def test_grid_refuses_double_and_names_it():
    with pytest.raises(ValueError, match=r"the points of rate cannot be enumerated.*discreteValueSpec"):
        suggest(grid(integer("layers", 1, 3), double("rate", 0, 1)), [], 0)
