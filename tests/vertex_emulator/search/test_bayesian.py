import math
from itertools import combinations, pairwise
from random import Random
from statistics import median

import pytest

from tests.vertex_emulator.search.studies import (
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
from vertex_emulator.search import Observation, suggest, surrogate
from vertex_emulator.search.space import point_key


def spread(seed, trials):
    """Observations of Branin at random points."""
    random = Random(seed)
    points = [{"x": random.uniform(-5, 10), "y": random.uniform(0, 15)} for _ in range(trials)]
    return [succeeded(point, branin(point)) for point in points]


def distance(one, other):
    """How far apart two points of Branin's square are, in widths of it."""
    return math.hypot(one["x"] - other["x"], one["y"] - other["y"]) / 15


def fits(monkeypatch):
    """Let every fit fail; the list gets the features and values of every call."""
    calls = []

    def fit(features, values, seed):
        calls.append((features.tolist(), values.tolist()))

    monkeypatch.setattr(surrogate, "fit", fit)
    return calls


def test_thirty_trials_beat_random_search_on_branin():
    model = [best(run(branin_study(), 30, seed, branin)) for seed in range(3)]
    random = [best(run(branin_study("RANDOM_SEARCH"), 30, seed, branin)) for seed in range(15)]
    assert median(model) < 0.01 < 0.3 < median(random)


@pytest.mark.parametrize("goal", ["MAXIMIZE", "GOAL_TYPE_UNSPECIFIED", None])
def test_goal_that_is_not_minimize_is_maximize(goal):
    def loss(point):
        return -branin(point)

    observations = run(branin_study(goal=goal), 25, 0, loss)
    assert max(observation.metrics["loss"] for observation in observations) > -0.5


def test_mixed_space_is_searched_to_its_optimum():
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

    model = [best(run(study_spec, 30, seed, loss)) for seed in range(1)]
    random = [best(run(study_spec | {"algorithm": "RANDOM_SEARCH"}, 30, seed, loss)) for seed in range(3)]
    assert median(model) < 0.05 < 0.5 < median(random)


def test_conditional_space_best_branch_is_found():
    def loss(point):
        if point["optimizer"] != "adam":
            return 5
        return (math.log10(point["lr"]) + 4) ** 2 + (point.get("width", 0) != 32.5)

    assert best(run(conditional(), 30, 1, loss)) < 0.05


@pytest.mark.parametrize("parameters", [2, 4, 9])
def test_first_points_are_latin_hypercube(parameters):
    names = [f"p{number}" for number in range(parameters)]
    size = max(6, parameters + 2)
    study_spec = study(*(double(name, 0, size) for name in names))
    points = [observation.parameters for observation in run(study_spec, size, 5, lambda point: 1.0)]
    for name in names:
        assert sorted(int(point[name]) for point in points) == list(range(size))


def test_trials_of_any_state_count_as_first_points(monkeypatch):
    calls = fits(monkeypatch)
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
    distances = sorted(distance(one, other) for one, other in combinations(running, 2))
    # Two may look into one spot, the best one.
    assert distances[0] > 0.001
    assert distances[1] > 0.1


def test_infeasible_trial_counts_as_worst(monkeypatch):
    calls = fits(monkeypatch)
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
    assert calls[0][1] == [1, 2, 3, 6, 6, 6, 6]
    assert calls[1][1] == [-1, -2, -3, -6, -1, -1, -1]


def test_running_trial_point_is_avoided():
    observations = spread(3, 15)
    next_point = suggest(branin_study(), observations, 1)
    running = [*observations, Observation(next_point, "ACTIVE")]
    believed = suggest(branin_study(), running, 1)
    assert distance(believed, next_point) > 0.001


def test_search_leaves_region_where_trials_fail():
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
def test_no_value_and_no_state_stops_search(values, state):
    observations = []
    for number in range(10):
        point = suggest(branin_study(), observations, 1)
        assert -5 <= point["x"] <= 10 and 0 <= point["y"] <= 15
        other = "SUCCEEDED" if number % 3 else state
        observations.append(Observation(point, other, {"loss": values[number % len(values)]}))
    assert len({point_key(observation.parameters) for observation in observations}) == 10


def test_diverged_trial_does_not_dwarf_others(monkeypatch):
    calls = fits(monkeypatch)
    point = {"x": 1.0, "y": 1.0}
    suggest(branin_study(), [succeeded(point, value) for value in (1, 2, 3, 4, 5, 100, 1e9, 1e12)], 1)
    losses = calls[0][1]
    assert losses[:5] == [1, 2, 3, 4, 5]
    assert all(earlier < later for earlier, later in pairwise(losses))
    assert losses[-1] < 1000


def test_partly_diverging_space_is_still_minimized():
    def loss(point):
        end = (point["x"] + 5) / 15
        return branin(point) if end < 0.75 else 10 ** (2 + 8 * end)

    assert median(best(run(branin_study(), 30, seed, loss)) for seed in range(3)) < 0.1


def test_fit_that_fails_gives_random_point(monkeypatch):
    observations = spread(1, 10)
    modelled = suggest(branin_study(), observations, 1)
    fits(monkeypatch)
    point = suggest(branin_study(), observations, 1)
    assert -5 <= point["x"] <= 10 and 0 <= point["y"] <= 15
    assert point != modelled
    assert point == suggest(branin_study(), observations, 1) != suggest(branin_study(), observations, 2)


@pytest.mark.parametrize("state", ["ACTIVE", "INFEASIBLE", "SUCCEEDED"])
def test_tried_point_is_not_proposed_again(state):
    study_spec = study(integer("a", 0, 9), integer("b", 0, 9))

    def loss(point):
        return (point["a"] - 3) ** 2 + (point["b"] - 7) ** 2

    observations = run(study_spec, 10, 1, loss)
    taken = suggest(study_spec, observations, 1)
    told = [*observations, Observation(taken, state, {"loss": float(loss(taken))})]
    assert suggest(study_spec, told, 1) not in [observation.parameters for observation in told]


def test_finite_space_is_exhausted_before_repeating():
    study_spec = study(integer("layers", 1, 4), categorical("kind", "a", "b", "c"), discrete("fixed", 7))
    observations = run(study_spec, 12, 3, lambda point: point["layers"] + (point["kind"] == "b"))
    points = {point_key(observation.parameters) for observation in observations}
    assert len(points) == 12
    assert point_key(suggest(study_spec, observations, 3)) in points


def test_large_space_last_point_is_found():
    study_spec = study(integer("layers", 1, 5000))
    observations = [Observation({"layers": layers}, "INFEASIBLE") for layers in range(1, 5001) if layers != 4321]
    assert suggest(study_spec, observations, 3) == {"layers": 4321}


def test_single_point_needs_no_fit(monkeypatch):
    calls = fits(monkeypatch)
    study_spec = study(double("rate", 0.5, 0.5), categorical("kind", "only"))
    only = {"rate": 0.5, "kind": "only"}
    observations = [succeeded(only, float(value)) for value in range(9)]
    assert suggest(study_spec, observations, 3) == only
    assert calls == []


def test_fixed_parameter_is_kept_from_model(monkeypatch):
    calls = fits(monkeypatch)
    study_spec = study(integer("fixed", 7, 7), double("rate", 0, 1), categorical("kind", "only"))
    observations = run(study_spec, 6, 3, lambda point: point["rate"])
    point = suggest(study_spec, observations, 3)
    assert (point["fixed"], point["kind"]) == (7, "only")
    assert [len(features[0]) for features, _ in calls] == [1]


def test_fit_uses_best_and_newest_trials(monkeypatch):
    calls = fits(monkeypatch)
    random = Random(1)
    observations = [
        succeeded({"x": random.uniform(-5, 10), "y": number / 100}, float(number)) for number in range(1000)
    ]
    suggest(branin_study(), observations, 1)
    [(features, losses)] = calls
    assert [row[1] * 15 for row in features] == pytest.approx([n / 100 for n in [*range(50), *range(950, 1000)]])
    assert losses[:50] == list(range(50))


@pytest.mark.parametrize("seed", range(3))
def test_fitted_values_keep_their_types(seed):
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


def front_study(*metrics):
    return study(double("x", 0, 1), double("y", 0, 1)) | {"metrics": list(metrics)}


def test_two_objectives_are_searched_along_whole_front():
    # Both distances are small only on the line from (0.2, 0.5) to (0.8, 0.5): that is the front.
    def trial(parameters):
        x, y = parameters["x"], parameters["y"]
        return {"near": math.hypot(x - 0.2, y - 0.5), "far": -math.hypot(x - 0.8, y - 0.5)}

    def on_the_front(algorithm):
        study_spec = front_study({"metricId": "near", "goal": "MINIMIZE"}, {"metricId": "far", "goal": "MAXIMIZE"})
        observations = []
        for _ in range(30):
            parameters = suggest(study_spec | {"algorithm": algorithm}, observations, 3)
            observations.append(Observation(parameters, "SUCCEEDED", trial(parameters)))
        return [o.parameters["x"] for o in observations if abs(o.parameters["y"] - 0.5) < 0.03]

    found = on_the_front("ALGORITHM_UNSPECIFIED")
    assert len(found) > 2 * len(on_the_front("RANDOM_SEARCH"))
    for begin in (0.2, 0.4, 0.6):
        assert any(begin <= x <= begin + 0.2 for x in found)


def test_missing_metric_counts_as_worst(monkeypatch):
    calls = fits(monkeypatch)
    study_spec = front_study({"metricId": "loss", "goal": "MINIMIZE"}, {"metricId": "cost", "goal": "MINIMIZE"})
    points = [{"x": number / 10, "y": 0.5} for number in range(8)]
    values = [{"loss": 1.0 + n} for n in range(8)]
    observations = [Observation(p, "SUCCEEDED", v) for p, v in zip(points, values, strict=True)]
    suggest(study_spec, observations, 1)
    assert calls[0][1] == [1.0 + n for n in range(8)]
    some = [value | ({"cost": 5.0 - n} if n < 4 else {}) for n, value in enumerate(values)]
    suggest(study_spec, [Observation(p, "SUCCEEDED", v) for p, v in zip(points, some, strict=True)], 1)
    # Those without a cost are worse in both objectives than the first, whose cost of 5 is the worst known one.
    assert min(calls[1][1][4:]) > calls[1][1][0]


SAFETY = {"metricId": "heat", "goal": "MINIMIZE", "safetyConfig": {"safetyThreshold": 0.5}}


def safe_share(algorithm, fraction):
    """The better `gain` lies at large x, where from 0.5 on the trials are unsafe: the best safe trial and the share."""
    safety = SAFETY | {"safetyConfig": SAFETY["safetyConfig"] | fraction}
    study_spec = front_study({"metricId": "gain", "goal": "MAXIMIZE"}, safety) | {"algorithm": algorithm}
    observations = []
    for _ in range(25):
        point = suggest(study_spec, observations, 5)
        observations.append(Observation(point, "SUCCEEDED", {"gain": point["x"], "heat": point["x"]}))
    late = observations[8:]
    safe = [observation for observation in late if observation.metrics["heat"] <= 0.5]
    return max(observation.metrics["gain"] for observation in safe), len(safe) / len(late)


def test_safety_metric_bounds_search():
    best_safe, share = safe_share("ALGORITHM_UNSPECIFIED", {})
    assert best_safe > 0.49
    assert share > 0.4
    careful, careful_share = safe_share("ALGORITHM_UNSPECIFIED", {"desiredMinSafeTrialsFraction": 1.0})
    assert careful > 0.45
    assert careful_share > 0.8


def test_without_safe_trials_search_seeks_safety():
    study_spec = front_study({"metricId": "gain", "goal": "MAXIMIZE"}, SAFETY)
    points = [{"x": 0.6 + number / 40, "y": number / 10} for number in range(9)]
    observations = [Observation(p, "SUCCEEDED", {"gain": p["x"], "heat": p["x"]}) for p in points]
    for _ in range(6):
        point = suggest(study_spec, observations, 1)
        observations.append(Observation(point, "SUCCEEDED", {"gain": point["x"], "heat": point["x"]}))
    assert min(observation.metrics["heat"] for observation in observations) <= 0.5
