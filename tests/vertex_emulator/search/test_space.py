import math
from collections import Counter
from random import Random
from statistics import median

import numpy as np
import pytest

from tests.vertex_emulator.search.studies import (
    SCALES,
    categorical,
    conditional,
    discrete,
    double,
    every_kind,
    integer,
    parent,
    study,
    succeeded,
    under,
)
from vertex_emulator.search import proposals, suggest
from vertex_emulator.search.space import RealInterval, Space, build_domain, from_unit, to_unit

PARAMETERS = every_kind()["parameters"]


def draws(parameter, count=2001):
    random = Random(7)
    domain = build_domain(parameter)
    return [domain.at_quantile(random.random()) for _ in range(count)]


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter["parameterId"])
def test_drawn_value_fits_its_type_and_bounds(parameter):
    domain = build_domain(parameter)
    values = [*draws(parameter), domain.at_quantile(0), domain.at_quantile(1 - 2**-53)]
    match next(name for name in parameter if name.endswith("ValueSpec")):
        case "doubleValueSpec":
            bounds = parameter["doubleValueSpec"]
            assert all(type(value) is float for value in values)
            assert all(bounds["minValue"] <= value <= bounds["maxValue"] for value in values)
        case "integerValueSpec":
            assert all(type(value) is int for value in values)
            assert set(values) == set(range(2, 10))
        case "discreteValueSpec":
            assert all(type(value) is float for value in values)
            assert set(values) == {0.5, 2.0, 64.0}
        case "categoricalValueSpec":
            assert set(values) == {"sgd", "adam", "lion"}


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter["parameterId"])
def test_value_survives_conversion_to_its_position(parameter):
    domain = build_domain(parameter)
    for value in draws(parameter, 200):
        again = domain.nearest(domain.position(value))
        assert again == (pytest.approx(value, rel=1e-12) if isinstance(domain, RealInterval) else value)
        assert type(again) is type(value)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter["parameterId"])
def test_position_outside_scale_stays_in_bounds(parameter):
    domain = build_domain(parameter)
    values = list(domain) if domain.count is not None else [domain.lower, domain.upper]
    assert domain.nearest(-0.001) == values[0]
    assert domain.nearest(float(len(values))) == values[-1]


@pytest.mark.parametrize(("kind", "lower"), [(double, 1), (integer, 0.5)])
def test_median_draw_lies_at_mid_scale(kind, lower):
    """The middle is the geometric mean of the bounds on a log scale; an integer stands for half a step either way."""

    def middle(scale):
        return median(draws(kind("size", 1, 10_000, scale)))

    geometric = math.sqrt(lower * 10_000)
    assert middle("UNIT_LOG_SCALE") == pytest.approx(geometric, rel=0.25)
    assert 10_001 - middle("UNIT_REVERSE_LOG_SCALE") == pytest.approx(geometric, rel=0.25)
    assert middle("UNIT_LINEAR_SCALE") == middle("SCALE_TYPE_UNSPECIFIED") == pytest.approx(5000, rel=0.05)


def test_absent_scale_is_linear():
    parameter = double("size", 1, 9)
    del parameter["scaleType"]
    assert build_domain(parameter).at_quantile(0.5) == 5


@pytest.mark.parametrize("lower", [1, -4])
def test_integers_are_equally_likely_on_linear_scale(lower):
    counts = Counter(draws(integer("size", lower, lower + 3), 8000))
    assert sorted(counts) == list(range(lower, lower + 4))
    assert all(count == pytest.approx(2000, rel=0.1) for count in counts.values())


def test_discrete_values_are_equally_likely_on_every_scale():
    counts = Counter(draws(discrete("size", 1, 2, 1000, scale="UNIT_LOG_SCALE"), 6000))
    assert all(count == pytest.approx(2000, rel=0.1) for count in counts.values())


def test_log_scale_spaces_discrete_values_by_logarithm():
    domain = build_domain(discrete("size", 1, 10, 100, scale="UNIT_LOG_SCALE"))
    assert [domain.position(value) for value in domain] == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize("kind", ["doubleValueSpec", "integerValueSpec"])
def test_absent_bound_is_zero(kind):
    assert build_domain({"parameterId": "size", kind: {"maxValue": 2}}).at_quantile(0) == 0
    assert build_domain({"parameterId": "size", kind: {"minValue": -2}}).at_quantile(0.999999) == pytest.approx(
        0, abs=1e-5
    )


@pytest.mark.parametrize(
    ("parameter", "count"),
    [
        (double("size", 0, 1), None),
        (double("size", 1, 1), 1),
        (integer("size", -2, 2), 5),
        (discrete("size", 1, 2.5), 2),
        (categorical("size", "s", "m", "l"), 3),
    ],
)
def test_count_of_domains_values(parameter, count):
    domain = build_domain(parameter)
    assert domain.count == count
    if count is None:
        with pytest.raises(ValueError, match=r"the numbers from 0.0 to 1.0 cannot be listed"):
            list(domain)
    else:
        assert len(list(domain)) == count


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("lower", "upper"), [(1e-8, 1e12), (0.1, 0.3), (3, 3), (1e-300, 1e300)])
def test_rounding_keeps_value_in_its_bounds(scale, lower, upper):
    for step in range(1001):
        assert lower <= from_unit(step / 1000, lower, upper, scale) <= upper
    smallest = 1e-12 * (upper if scale == "UNIT_REVERSE_LOG_SCALE" else lower)
    assert from_unit(0, lower, upper, scale) == pytest.approx(lower, abs=smallest)
    assert from_unit(1, lower, upper, scale) == pytest.approx(upper)


def test_fixed_value_lies_at_mid_scale():
    assert {to_unit(3, 3, 3, scale) for scale in SCALES} == {0.5}


def test_largest_integers_stay_in_their_bounds():
    values = draws(integer("size", 1, 2**63 - 1, "UNIT_LOG_SCALE"))
    assert all(1 <= value <= 2**63 - 1 for value in values)
    assert math.log2(median(values)) == pytest.approx(31.5, abs=2)


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
def test_child_appears_exactly_under_its_parent_value(algorithm):
    study_spec = conditional() | {"algorithm": algorithm}
    observations = []
    for number in range(24):
        parameters = suggest(study_spec, observations, 3)
        assert_activation(parameters)
        observations.append(succeeded(parameters, Random(number).random()))
    assert {observation.parameters["optimizer"] for observation in observations} == {"sgd", "adam", "none"}
    assert {observation.parameters["layers"] > 1 for observation in observations} == {True, False}


def test_children_with_different_ranges_are_separate_axes():
    assert [axis.id for axis in Space.parse(conditional()["parameters"]).axes].count("lr") == 2


def test_children_of_one_range_share_axis():
    plain = integer("layers", 1, 2)
    with_child = parent(plain, under([2], double("dropout", 0, 1), "parentIntValues"))
    model = parent(categorical("model", "a", "b", "c"), under(["a"], plain), under(["b"], with_child))
    assert [axis.id for axis in Space.parse([model]).axes] == ["model", "layers", "dropout"]


def test_grandchild_needs_active_child():
    grandchild = under(["yes"], integer("size", 5, 5))
    child = under([2], parent(categorical("deep", "yes", "no"), grandchild), "parentIntValues")
    space = Space.parse([parent(integer("layers", 1, 2), child)])
    assert list(space.points()) == [
        {"layers": 1},
        {"layers": 2, "deep": "yes", "size": 5},
        {"layers": 2, "deep": "no"},
    ]


def test_discrete_parent_value_matches_within_1e_10():
    child = under([0.3], integer("size", 5, 5), "parentDiscreteValues")
    space = Space.parse([parent(discrete("rate", 0.1 + 0.2, 0.5), child)])
    assert list(space.points()) == [{"rate": 0.1 + 0.2, "size": 5}, {"rate": 0.5}]


def test_space_without_continuum_is_finite():
    child = under(["a"], double("rate", 0, 1))
    assert not Space.parse([parent(categorical("kind", "a", "b"), child)]).is_finite
    assert Space.parse([categorical("kind", "a", "b"), double("fixed", 2, 2)]).is_finite


def test_random_point_depends_on_generator_alone():
    space = Space.parse(study(integer("a", 0, 10**9), double("b", 0, 1))["parameters"])
    assert space.draw(Random(1)) == space.draw(Random(1)) != space.draw(Random(2))


def test_candidates_hold_exactly_points_that_conditions_allow():
    space = Space.parse(conditional()["parameters"])
    encoder = proposals.Encoder(space)
    random = np.random.default_rng(1)
    drawn = proposals.draw(encoder, 200, random)
    moved = proposals.move(encoder, drawn, np.full(200, 0.3), random)
    for rows in (drawn, moved):
        for row in rows:
            point = encoder.decode(row)
            active = {axis.id for axis, cell in zip(encoder.columns, row, strict=True) if not np.isnan(cell)}
            assert active == {name for name in point if any(axis.id == name for axis in encoder.columns)}
            assert encoder.encode(point) == pytest.approx(list(row), nan_ok=True)


def test_features_have_category_columns_and_neutral_inactive_values():
    encoder = proposals.Encoder(Space.parse(conditional()["parameters"]))
    # Of optimizer sgd, adam, none the last; momentum and both ranges of lr inactive; one layer of 1 to 3; no width.
    [features] = encoder.features(np.array([encoder.encode({"optimizer": "none", "layers": 1})]))
    assert features.tolist() == [0, 0, 1, 0.5, 0.5, 0.5, 0, 0.5]


def test_too_many_categories_share_one_column():
    long = categorical("long", *map(str, range(41)))
    encoder = proposals.Encoder(Space.parse([long, categorical("short", "a", "b")]))
    assert encoder.features(np.array([[40.0, 1.0]])).tolist() == [[1.0, 0.0, 1.0]]
