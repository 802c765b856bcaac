import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vertex_emulator.search.studies import branin, branin_study, conditional, every_kind, integer, run, study
from vertex_emulator import search
from vertex_emulator.search import Observation, require_next_parameters

PROJECT = Path(__file__).parents[3]

NEXT_POINTS = """
import json, sys
from vertex_emulator.search import Observation, require_next_parameters
study_spec, seen, seed = json.load(sys.stdin)
observations = [Observation(*fields) for fields in seen]
print(json.dumps(require_next_parameters(study_spec, observations, seed)))
"""

LOADED = """
import sys
from vertex_emulator.search import require_next_parameters
metrics = [{"metricId": "loss"}]
number = {"parameterId": "p", "integerValueSpec": {"minValue": 1, "maxValue": 9}}
for algorithm in ("RANDOM_SEARCH", "GRID_SEARCH", "ALGORITHM_UNSPECIFIED"):
    require_next_parameters({"metrics": metrics, "parameters": [number], "algorithm": algorithm}, [], 1)
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
    here = require_next_parameters(study_spec, observations, 11)
    fields = [[dict(seen.parameters), seen.state, dict(seen.metrics)] for seen in observations]
    arguments = json.dumps([study_spec, fields, 11])
    assert [json.loads(python(NEXT_POINTS, arguments, hash_seed)) for hash_seed in ("1", "2")] == [here, here]


@pytest.mark.parametrize(
    ("algorithm", "trials"), [("ALGORITHM_UNSPECIFIED", 0), ("RANDOM_SEARCH", 0), ("RANDOM_SEARCH", 8)]
)
def test_another_seed_gives_another_point(algorithm, trials):
    observations = run(branin_study("RANDOM_SEARCH"), trials, 1, branin)
    points = {require_next_parameters(branin_study(algorithm), observations, seed)["x"] for seed in range(8)}
    assert len(points) == 8


def test_an_absent_algorithm_is_the_unspecified_one():
    observations = run(branin_study(), 8, 1, branin)
    default = require_next_parameters(branin_study(), observations, 1)
    assert default == require_next_parameters(branin_study("ALGORITHM_UNSPECIFIED"), observations, 1)
    assert default != require_next_parameters(branin_study("RANDOM_SEARCH"), observations, 1)


@pytest.mark.parametrize("seed", range(20))
def test_random_points_of_one_study_differ(seed):
    observations = run(branin_study("RANDOM_SEARCH"), 20, seed, branin)
    assert len({observation.parameters["x"] for observation in observations}) == 20


@pytest.mark.parametrize("seed", range(20))
def test_random_points_have_every_parameter_in_its_order(seed):
    study_spec = every_kind() | {"algorithm": "RANDOM_SEARCH"}
    assert list(require_next_parameters(study_spec, [], seed)) == [
        parameter["parameterId"] for parameter in study_spec["parameters"]
    ]


def test_a_trial_value_changes_the_next_point():
    study_spec = study(integer("layers", 1, 1000))
    points = [Observation({"layers": layers}, "SUCCEEDED", {"loss": layers}) for layers in range(100, 900, 100)]
    turned = [Observation(seen.parameters, "SUCCEEDED", {"loss": -seen.metrics["loss"]}) for seen in points]
    assert (
        require_next_parameters(study_spec, points, 1)["layers"]
        < 100
        < 800
        < require_next_parameters(study_spec, turned, 1)["layers"]
    )


def test_only_a_first_fit_loads_numpy_and_egobox():
    assert python(LOADED, "", "1") == "[]\n"


def test_the_exports_are_these():
    assert sorted(search.__all__) == [
        "EndedTrial",
        "Measurement",
        "Observation",
        "SearchSpaceExhausted",
        "require_next_parameters",
    ]


@pytest.mark.parametrize("algorithm", ["ALGORITHM_UNSPECIFIED", "RANDOM_SEARCH", "GRID_SEARCH"])
def test_a_default_value_is_without_effect(algorithm):
    plain, with_default = (
        study(
            {"parameterId": "layers", "integerValueSpec": {"minValue": 1, "maxValue": 9} | default}, algorithm=algorithm
        )
        for default in ({}, {"defaultValue": 5})
    )
    assert require_next_parameters(plain, [], 1) == require_next_parameters(with_default, [], 1)
