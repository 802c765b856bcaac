from random import Random

import numpy as np
import pytest

from tests.vertex_emulator.search.studies import (
    categorical,
    conditional,
    discrete,
    double,
    integer,
    parent,
    study,
    succeeded,
    under,
)
from vertex_emulator.search import require_next_parameters
from vertex_emulator.search.acquisition_maximization import draw_random_rows, perturb_rows
from vertex_emulator.search.parameter_space import Space
from vertex_emulator.search.point_encoder import PointEncoder
from vertex_emulator.search.random_search import draw_random_point


def assert_activation(parameters):
    """What `studies.conditional` allows: every active parameter, no other, each in the range of its branch."""
    expected = {"optimizer", "layers"}
    if parameters["optimizer"] == "sgd":
        expected |= {"momentum", "lr"}
        assert 0.1 <= parameters["lr"] <= 1
    elif parameters["optimizer"] == "adam":
        expected |= {"lr"}
        assert 1e-5 <= parameters["lr"] <= 1e-2
    if parameters["layers"] > 1:
        expected |= {"width"}
    assert set(parameters) == expected


@pytest.mark.parametrize("algorithm", ["RANDOM_SEARCH", "ALGORITHM_UNSPECIFIED"])
def test_a_child_appears_exactly_under_its_parent_value(algorithm):
    study_spec = conditional() | {"algorithm": algorithm}
    observations = []
    for number in range(24):
        parameters = require_next_parameters(study_spec, observations, 3)
        assert_activation(parameters)
        observations.append(succeeded(parameters, Random(number).random()))
    assert {observation.parameters["optimizer"] for observation in observations} == {"sgd", "adam", "none"}
    assert {observation.parameters["layers"] > 1 for observation in observations} == {True, False}


def test_children_with_different_ranges_are_separate_axes():
    assert [axis.id for axis in Space.from_specs(conditional()["parameters"]).distinct_parameters].count("lr") == 2


def test_children_of_one_range_share_an_axis():
    plain = integer("layers", 1, 2)
    with_child = parent(plain, under([2], double("dropout", 0, 1), "parentIntValues"))
    model = parent(categorical("model", "a", "b", "c"), under(["a"], plain), under(["b"], with_child))
    assert [axis.id for axis in Space.from_specs([model]).distinct_parameters] == ["model", "layers", "dropout"]


def test_a_grandchild_needs_an_active_child():
    grandchild = under(["yes"], integer("size", 5, 5))
    child = under([2], parent(categorical("deep", "yes", "no"), grandchild), "parentIntValues")
    space = Space.from_specs([parent(integer("layers", 1, 2), child)])
    assert list(space.enumerate_points()) == [
        {"layers": 1},
        {"layers": 2, "deep": "yes", "size": 5},
        {"layers": 2, "deep": "no"},
    ]


def test_a_discrete_parent_value_matches_within_1e_10():
    child = under([0.3], integer("size", 5, 5), "parentDiscreteValues")
    space = Space.from_specs([parent(discrete("rate", 0.1 + 0.2, 0.5), child)])
    assert list(space.enumerate_points()) == [{"rate": 0.1 + 0.2, "size": 5}, {"rate": 0.5}]


def test_a_space_without_continuum_is_finite():
    child = under(["a"], double("rate", 0, 1))
    assert not Space.from_specs([parent(categorical("kind", "a", "b"), child)]).is_finite
    assert Space.from_specs([categorical("kind", "a", "b"), double("fixed", 2, 2)]).is_finite


def test_a_random_point_depends_on_the_generator_alone():
    space = Space.from_specs(study(integer("a", 0, 10**9), double("b", 0, 1))["parameters"])
    assert (
        draw_random_point(space, Random(1))
        == draw_random_point(space, Random(1))
        != draw_random_point(space, Random(2))
    )


def test_candidates_hold_exactly_the_points_that_conditions_allow():
    space = Space.from_specs(conditional()["parameters"])
    encoder = PointEncoder(space)
    random = np.random.default_rng(1)
    drawn = draw_random_rows(encoder, 200, random)
    moved = perturb_rows(encoder, drawn, np.full(200, 0.3), random)
    for rows in (drawn, moved):
        for row in rows:
            point = encoder.decode_row(row)
            active = {axis.id for axis, cell in zip(encoder.varied_parameters, row, strict=True) if not np.isnan(cell)}
            assert active == {name for name in point if any(axis.id == name for axis in encoder.varied_parameters)}
            assert encoder.encode_point(point) == pytest.approx(list(row), nan_ok=True)


def test_features_have_category_columns_and_neutral_inactive_values():
    encoder = PointEncoder(Space.from_specs(conditional()["parameters"]))
    # Of optimizer sgd, adam, none the last; momentum and both ranges of lr inactive; one layer of 1 to 3; no width.
    [features] = encoder.convert_to_features(np.array([encoder.encode_point({"optimizer": "none", "layers": 1})]))
    assert features.tolist() == [0, 0, 1, 0.5, 0.5, 0.5, 0, 0.5]


def test_too_many_categories_share_one_column():
    long = categorical("long", *map(str, range(41)))
    encoder = PointEncoder(Space.from_specs([long, categorical("short", "a", "b")]))
    assert encoder.convert_to_features(np.array([[40.0, 1.0]])).tolist() == [[1.0, 0.0, 1.0]]
