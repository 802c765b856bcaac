import math
from itertools import combinations, pairwise
from random import Random
from statistics import median

import egobox
import pytest

from emulator.search import Observation, suggest, surrogate
from emulator.search.space import key
from tests.emulator.search.studies import (
    best,
    branin,
    branin_study,
    categorical,
    conditional,
    discrete,
    double,
    every_kind,
    integer,
    run,
    study,
    succeeded,
)


class PanicException(BaseException):
    """As PyO3's: not an Exception, and known by its name alone."""


def spread(seed, trials):
    """Observations of Branin at random points."""
    random = Random(seed)
    points = [{"x": random.uniform(-5, 10), "y": random.uniform(0, 15)} for _ in range(trials)]
    return [succeeded(point, branin(point)) for point in points]


def distance(one, other):
    """How far apart two points of Branin's square are, in widths of it."""
    return math.hypot(one["x"] - other["x"], one["y"] - other["y"]) / 15


def fits(monkeypatch, answer):
    """Replace the fit by `answer(domains, rows, losses)`; the list gets the arguments of every call."""
    calls = []

    def propose(domains, rows, losses, seed):
        calls.append((domains, rows, losses))
        return answer(domains, rows, losses)

    monkeypatch.setattr(surrogate, "propose", propose)
    return calls


def test_thirty_trials_find_branins_minimum_that_random_search_misses():
    model = [best(run(branin_study(), 30, seed, branin)) for seed in range(15)]
    random = [best(run(branin_study("RANDOM_SEARCH"), 30, seed, branin)) for seed in range(15)]
    assert median(model) < 0.01 < 0.3 < median(random)


@pytest.mark.parametrize("goal", ["MAXIMIZE", "GOAL_TYPE_UNSPECIFIED", None])
def test_a_goal_that_is_not_minimize_is_maximize(goal):
    def loss(point):
        return -branin(point)

    observations = run(branin_study(goal=goal), 25, 0, loss)
    assert max(observation.metrics["loss"] for observation in observations) > -0.5


def test_a_mixed_space_is_searched_to_its_optimum():
    study_spec = study(
        double("rate", 1e-5, 1, "UNIT_LOG_SCALE"),
        integer("layers", 1, 8),
        discrete("batch", 16, 32, 64, 128, scale="UNIT_LOG_SCALE"),
        categorical("optimizer", "sgd", "adam", "lion"),
    )

    def loss(point):
        rate = (math.log10(point["rate"]) + 3) ** 2
        layers = (point["layers"] - 6) ** 2 / 4
        return rate + layers + abs(math.log2(point["batch"]) - 6) / 2 + (point["optimizer"] != "adam")

    model = [best(run(study_spec, 30, seed, loss)) for seed in range(3)]
    random = [best(run(study_spec | {"algorithm": "RANDOM_SEARCH"}, 30, seed, loss)) for seed in range(3)]
    assert median(model) < 0.05 < 0.5 < median(random)


def test_the_best_branch_of_a_conditional_space_is_found():
    def loss(point):
        if point["optimizer"] != "adam":
            return 5
        return (math.log10(point["lr"]) + 4) ** 2 + (point.get("width", 0) != 32.5)

    assert best(run(conditional(), 30, 1, loss)) < 0.05


def test_one_metric_guides_the_search_and_others_do_not():
    study_spec = branin_study()
    study_spec["metrics"].append({"metricId": "latency", "goal": "MAXIMIZE"})
    observations = spread(1, 10)
    with_latency = [
        Observation(observation.parameters, "SUCCEEDED", {"latency": number} | observation.metrics)
        for number, observation in enumerate(observations)
    ]
    assert suggest(study_spec, observations, 1) == suggest(study_spec, with_latency, 1)


@pytest.mark.parametrize("parameters", [2, 4, 9])
def test_the_first_points_are_a_latin_hypercube(parameters):
    names = [f"p{number}" for number in range(parameters)]
    size = max(6, parameters + 2)
    study_spec = study(*(double(name, 0, size) for name in names))
    points = [observation.parameters for observation in run(study_spec, size, 5, lambda point: 1.0)]
    for name in names:
        assert sorted(int(point[name]) for point in points) == list(range(size))


def test_every_trial_counts_as_a_first_point_whatever_its_state(monkeypatch):
    calls = fits(monkeypatch, lambda *arguments: None)
    observations = spread(1, 2) + [Observation(o.parameters, "ACTIVE") for o in spread(2, 4)]
    suggest(branin_study(), observations[:5], 1)
    assert calls == []
    suggest(branin_study(), observations, 1)
    assert len(calls) == 1


@pytest.mark.parametrize("seed", range(4))
def test_trials_that_run_side_by_side_keep_apart(seed):
    observations = spread(seed, 15)
    running = []
    for _ in range(4):
        told = [*observations, *(Observation(point, "ACTIVE") for point in running)]
        running.append(suggest(branin_study(), told, seed))
    assert min(distance(one, other) for one, other in combinations(running, 2)) > 0.05


def test_a_running_trial_counts_as_the_mean_and_an_infeasible_one_as_the_worst(monkeypatch):
    calls = fits(monkeypatch, lambda *arguments: None)
    point = {"x": 1.0, "y": 1.0}
    observations = [succeeded(point, value) for value in (1, 2, 3, 6)]
    odd = [
        Observation(point, "ACTIVE"),
        Observation(point, "INFEASIBLE", {"loss": 0.0}),
        succeeded(point, math.nan),
        Observation(point, "SUCCEEDED", {"other": 0.0}),
    ]
    suggest(branin_study(), [*observations, *odd], 1)
    suggest(branin_study(goal="MAXIMIZE"), [*observations, *odd], 1)
    assert calls[0][2] == [1, 2, 3, 6, 3, 6, 6, 6]
    assert calls[1][2] == [-1, -2, -3, -6, -3, -1, -1, -1]


def test_the_search_leaves_a_region_where_trials_fail():
    """The better values lie beyond x = 4, where every trial is infeasible."""
    study_spec, observations = branin_study(), []
    for _ in range(30):
        point = suggest(study_spec, observations, 2)
        failed = point["x"] > 4
        observations.append(Observation(point, "INFEASIBLE") if failed else succeeded(point, -point["x"]))
    latest = [observation for observation in observations[-15:] if observation.state == "INFEASIBLE"]
    assert len(latest) < 15 / 2
    assert min(observation.metrics["loss"] for observation in observations if observation.metrics) < -3


@pytest.mark.parametrize(
    "values",
    [
        [math.nan],
        [math.inf, -math.inf, math.nan],
        [math.nan, 1.0, 2.0],
        [1.0],
        [1e308, -1e308, 1.0],
        [1e308, 1.7e308],
        [0.0, 5e-324, 1e100],
        [1.0, 2.0, 3.0, 1e30],
    ],
    ids=str,
)
@pytest.mark.parametrize("state", ["SUCCEEDED", "INFEASIBLE", "ACTIVE"])
def test_no_value_and_no_state_stops_the_search(values, state):
    observations = []
    for number in range(14):
        point = suggest(branin_study(), observations, 1)
        assert -5 <= point["x"] <= 10 and 0 <= point["y"] <= 15
        other = "SUCCEEDED" if number % 3 else state
        observations.append(Observation(point, other, {"loss": values[number % len(values)]}))
    assert len({key(observation.parameters) for observation in observations}) == 14


def test_a_diverged_trial_does_not_hide_the_rest_from_the_model(monkeypatch):
    calls = fits(monkeypatch, lambda *arguments: None)
    point = {"x": 1.0, "y": 1.0}
    suggest(branin_study(), [succeeded(point, value) for value in (1, 2, 3, 4, 5, 100, 1e9, 1e12)], 1)
    losses = calls[0][2]
    assert losses[:5] == [1, 2, 3, 4, 5]
    assert all(earlier < later for earlier, later in pairwise(losses))
    assert losses[-1] < 1000


def test_a_search_where_one_end_of_the_space_diverges_still_finds_the_minimum():
    def loss(point):
        end = (point["x"] + 5) / 15
        return branin(point) if end < 0.75 else 10 ** (2 + 8 * end)

    assert median(best(run(branin_study(), 30, seed, loss)) for seed in range(5)) < 0.1


def test_a_panic_of_the_library_gives_a_random_point(monkeypatch):
    class Panicking:
        def __init__(self, *args, **options): ...

        def suggest(self, *args, **options):
            raise PanicException("GP training failure")

    observations = spread(1, 10)
    modelled = suggest(branin_study(), observations, 1)
    monkeypatch.setattr(egobox, "Egor", Panicking)
    point = suggest(branin_study(), observations, 1)
    assert -5 <= point["x"] <= 10 and 0 <= point["y"] <= 15
    assert point != modelled
    assert point == suggest(branin_study(), observations, 1) != suggest(branin_study(), observations, 2)


def test_a_point_that_has_a_trial_is_not_proposed_again(monkeypatch):
    observations = spread(1, 10)
    calls = fits(monkeypatch, lambda *arguments: [0.5, 0.5])
    center = {"x": 2.5, "y": 7.5}
    assert suggest(branin_study(), observations, 1) == center
    for state in ("ACTIVE", "INFEASIBLE", "SUCCEEDED"):
        other = suggest(branin_study(), [*observations, Observation(center, state, {"loss": 1.0})], 1)
        assert distance(other, center) > 0.01
    assert len(calls) == 4


def test_a_finite_space_is_tried_in_full_before_a_point_comes_again():
    study_spec = study(integer("layers", 1, 4), categorical("kind", "a", "b", "c"), discrete("fixed", 7))
    observations = run(study_spec, 12, 3, lambda point: point["layers"] + (point["kind"] == "b"))
    points = {key(observation.parameters) for observation in observations}
    assert len(points) == 12
    assert key(suggest(study_spec, observations, 3)) in points


def test_the_last_free_point_of_a_large_finite_space_is_found():
    study_spec = study(integer("layers", 1, 5000))
    observations = [Observation({"layers": layers}, "INFEASIBLE") for layers in range(1, 5001) if layers != 4321]
    assert suggest(study_spec, observations, 3) == {"layers": 4321}


def test_a_space_of_one_point_gives_it_without_a_fit(monkeypatch):
    calls = fits(monkeypatch, lambda *arguments: None)
    study_spec = study(double("rate", 0.5, 0.5), categorical("kind", "only"))
    only = {"rate": 0.5, "kind": "only"}
    observations = [succeeded(only, float(value)) for value in range(9)]
    assert suggest(study_spec, observations, 3) == only
    assert calls == []


def test_a_parameter_with_one_value_is_kept_from_the_model_and_not_from_the_trial(monkeypatch):
    calls = fits(monkeypatch, lambda *arguments: [0.25])
    study_spec = study(integer("fixed", 7, 7), double("rate", 0, 1), categorical("kind", "only"))
    observations = run(study_spec, 6, 3, lambda point: point["rate"])
    assert suggest(study_spec, observations, 3) == {"fixed": 7, "rate": 0.25, "kind": "only"}
    assert [len(rows[0]) for _, rows, _ in calls] == [1]


def test_a_fit_is_given_the_best_and_the_newest_of_many_trials(monkeypatch):
    calls = fits(monkeypatch, lambda *arguments: None)
    random = Random(1)
    observations = [
        succeeded({"x": random.uniform(-5, 10), "y": number / 100}, float(number)) for number in range(1000)
    ]
    suggest(branin_study(), observations, 1)
    [(_, rows, losses)] = calls
    assert len(rows) == 150
    assert [row[1] * 15 for row in rows] == pytest.approx([n / 100 for n in [*range(75), *range(925, 1000)]])
    assert losses[:75] == list(range(75))


def test_an_inactive_parameter_stands_in_the_middle_for_the_model(monkeypatch):
    calls = fits(monkeypatch, lambda domains, rows, losses: rows[0])
    observations = [succeeded({"optimizer": "none", "layers": 1}, float(value)) for value in range(8)]
    suggest(conditional(), observations, 1)
    [(_, rows, _)] = calls
    optimizer, momentum, lr_sgd, lr_adam, layers, width = rows[0]
    assert (optimizer, layers) == (2, 0)
    assert (momentum, lr_sgd, lr_adam) == pytest.approx((0.5, 0.5, 0.5))
    assert width in (0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_values_of_every_kind_keep_their_types_in_a_fitted_study(seed):
    def assert_type(name, value):
        kind = name.rstrip("0123456789")
        assert type(value) is {"integer": int, "categorical": str}.get(kind, float)

    study_spec = every_kind()
    observations = run(study_spec, 18, seed, lambda point: Random(str(point)).random())
    allowed = {parameter["parameterId"]: parameter for parameter in study_spec["parameters"]}
    for observation in observations:
        assert set(observation.parameters) == set(allowed)
        for name, value in observation.parameters.items():
            assert_type(name, value)
            for spec, limits in allowed[name].items():
                if spec.endswith("ValueSpec") and "values" in limits:
                    assert value in limits["values"]
                elif spec.endswith("ValueSpec"):
                    assert limits["minValue"] <= value <= limits["maxValue"]
