import math
from collections import Counter
from random import Random
from statistics import median

import pytest

from tests.vertex_emulator.search.studies import SCALES, categorical, discrete, double, every_kind, integer
from vertex_emulator.search.parameter_domains import RealInterval, build_domain
from vertex_emulator.search.parameter_scales import scale_from_unit, scale_to_unit

PARAMETERS = every_kind()["parameters"]


def draws(parameter, count=2001):
    random = Random(7)
    domain = build_domain(parameter)
    return [domain.get_value_at_quantile(random.random()) for _ in range(count)]


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter["parameterId"])
def test_a_drawn_value_fits_its_type_and_bounds(parameter):
    domain = build_domain(parameter)
    values = [*draws(parameter), domain.get_value_at_quantile(0), domain.get_value_at_quantile(1 - 2**-53)]
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
def test_a_value_survives_conversion_to_its_position(parameter):
    domain = build_domain(parameter)
    for value in draws(parameter, 200):
        again = domain.find_nearest_value(domain.get_unit_position_or_index(value))
        assert again == (pytest.approx(value, rel=1e-12) if isinstance(domain, RealInterval) else value)
        assert type(again) is type(value)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter["parameterId"])
def test_a_position_outside_the_scale_stays_in_bounds(parameter):
    domain = build_domain(parameter)
    values = list(domain) if domain.count is not None else [domain.lower, domain.upper]
    assert domain.find_nearest_value(-0.001) == values[0]
    assert domain.find_nearest_value(float(len(values))) == values[-1]


@pytest.mark.parametrize(("kind", "lower"), [(double, 1), (integer, 0.5)])
def test_the_median_draw_lies_at_mid_scale(kind, lower):
    """The middle is the geometric mean of the bounds on a log scale; an integer stands for half a step either way."""

    def middle(scale):
        return median(draws(kind("size", 1, 10_000, scale)))

    geometric = math.sqrt(lower * 10_000)
    assert middle("UNIT_LOG_SCALE") == pytest.approx(geometric, rel=0.25)
    assert 10_001 - middle("UNIT_REVERSE_LOG_SCALE") == pytest.approx(geometric, rel=0.25)
    assert middle("UNIT_LINEAR_SCALE") == middle("SCALE_TYPE_UNSPECIFIED") == pytest.approx(5000, rel=0.05)


def test_an_absent_scale_is_linear():
    parameter = double("size", 1, 9)
    del parameter["scaleType"]
    assert build_domain(parameter).get_value_at_quantile(0.5) == 5


@pytest.mark.parametrize("lower", [1, -4])
def test_integers_are_equally_likely_on_a_linear_scale(lower):
    counts = Counter(draws(integer("size", lower, lower + 3), 8000))
    assert sorted(counts) == list(range(lower, lower + 4))
    assert all(count == pytest.approx(2000, rel=0.1) for count in counts.values())


def test_discrete_values_are_equally_likely_on_every_scale():
    counts = Counter(draws(discrete("size", 1, 2, 1000, scale="UNIT_LOG_SCALE"), 6000))
    assert all(count == pytest.approx(2000, rel=0.1) for count in counts.values())


def test_a_log_scale_spaces_discrete_values_by_logarithm():
    domain = build_domain(discrete("size", 1, 10, 100, scale="UNIT_LOG_SCALE"))
    assert [domain.get_unit_position_or_index(value) for value in domain] == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize("kind", ["doubleValueSpec", "integerValueSpec"])
def test_an_absent_bound_is_zero(kind):
    assert build_domain({"parameterId": "size", kind: {"maxValue": 2}}).get_value_at_quantile(0) == 0
    assert build_domain({"parameterId": "size", kind: {"minValue": -2}}).get_value_at_quantile(
        0.999999
    ) == pytest.approx(0, abs=1e-5)


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
def test_the_count_of_a_domains_values(parameter, count):
    domain = build_domain(parameter)
    assert domain.count == count
    if count is None:
        with pytest.raises(ValueError, match=r"the numbers from 0.0 to 1.0 cannot be listed"):
            list(domain)
    else:
        assert len(list(domain)) == count


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("lower", "upper"), [(1e-8, 1e12), (0.1, 0.3), (3, 3), (1e-300, 1e300)])
def test_rounding_keeps_a_value_in_its_bounds(scale, lower, upper):
    for step in range(1001):
        assert lower <= scale_from_unit(step / 1000, lower, upper, scale) <= upper
    smallest = 1e-12 * (upper if scale == "UNIT_REVERSE_LOG_SCALE" else lower)
    assert scale_from_unit(0, lower, upper, scale) == pytest.approx(lower, abs=smallest)
    assert scale_from_unit(1, lower, upper, scale) == pytest.approx(upper)


def test_a_fixed_value_lies_at_mid_scale():
    assert {scale_to_unit(3, 3, 3, scale) for scale in SCALES} == {0.5}


def test_the_largest_integers_stay_in_their_bounds():
    values = draws(integer("size", 1, 2**63 - 1, "UNIT_LOG_SCALE"))
    assert all(1 <= value <= 2**63 - 1 for value in values)
    assert math.log2(median(values)) == pytest.approx(31.5, abs=2)
