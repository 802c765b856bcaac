"""Scalars: what Google's clients send becomes one canonical value, and everything else one clear message."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import TypeAdapter, ValidationError

from vertex_api import scalars

Colour = Annotated[Literal["COLOUR_UNSPECIFIED", "RED", "BLUE"], scalars.Numbered(0, 1, 5)]


def canonical(kind: Any, value: object) -> object:
    return TypeAdapter(kind).validate_python(value)


def refusal(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as failure:
        canonical(kind, value)
    (detail,) = failure.value.errors()
    return detail["msg"]


@pytest.mark.parametrize("kind", [scalars.Int32, scalars.Int64])
@pytest.mark.parametrize("given", [7, 7.0, "7"])
def test_every_form_of_whole_number_becomes_int(kind: Any, given: object) -> None:
    value = canonical(kind, given)
    assert (value, type(value)) == (7, int)


def test_large_int64_strings_stay_exact() -> None:
    assert canonical(scalars.Int64, "9007199254740993") == 9007199254740993


@pytest.mark.parametrize(
    "given", [1.5, "1.5", "", " 7", "seven", True, None, [1], {"a": 1}, float("nan"), float("inf")]
)
def test_non_whole_numbers_are_rejected_with_their_value(given: object) -> None:
    assert refusal(scalars.Int32, given) == f"{scalars.quote(given)} is not a whole number"


def test_whole_numbers_are_bounded_by_their_width() -> None:
    assert canonical(scalars.Int32, -(2**31) + 1) == -(2**31) + 1
    assert refusal(scalars.Int32, 2**31) == "2147483648 does not fit into 32 bits"
    assert canonical(scalars.Int64, 2**31) == 2**31
    assert refusal(scalars.Int64, "9223372036854775808") == "9223372036854775808 does not fit into 64 bits"


@pytest.mark.parametrize("given", [2, 2.0, "2", "2.0", "2e0"])
def test_every_form_of_number_becomes_float(given: object) -> None:
    value = canonical(scalars.Double, given)
    assert (value, type(value)) == (2.0, float)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("fast", '"fast" is not a number'),
        (True, "true is not a number"),
        ([1.0], "[1.0] is not a number"),
        ("NaN", "nan is not a finite number"),
        ("Infinity", "inf is not a finite number"),
    ],
)
def test_what_is_no_finite_number_is_refused(given: object, message: str) -> None:
    assert refusal(scalars.Double, given) == message


def test_non_strings_are_rejected_with_advice_to_quote() -> None:
    assert canonical(scalars.String, "0.10") == "0.10"
    assert refusal(scalars.String, 10) == '10 is not a string; write "10" in quotes'
    assert refusal(scalars.String, True) == 'true is not a string; write "true" in quotes'
    assert refusal(scalars.String, 0.5) == '0.5 is not a string; write "0.5" in quotes'


@pytest.mark.parametrize("given", [["a"], {"a": "b"}])
def test_lists_and_objects_get_no_quoting_advice(given: object) -> None:
    message = refusal(scalars.String, given)
    assert "is not a string" in message
    assert "quotes" not in message


def test_truth_is_a_boolean_and_nothing_else() -> None:
    assert canonical(scalars.Boolean, False) is False
    for given, shown in [("true", '"true"'), (1, "1"), (0.0, "0.0"), ("yes", '"yes"')]:
        assert refusal(scalars.Boolean, given) == f"{shown} is not true or false"


@pytest.mark.parametrize("given", ["3600s", "0s", "0.500s", "-1s"])
def test_canonical_durations_are_kept(given: str) -> None:
    assert canonical(scalars.Duration, given) == given


@pytest.mark.parametrize(("given", "written"), [("3600.0s", "3600s"), ("0.5s", "0.500s"), ("0060s", "60s")])
def test_equal_durations_become_canonical(given: str, written: str) -> None:
    assert canonical(scalars.Duration, given) == written


@pytest.mark.parametrize("given", ["1h", "3600", 3600, "3600S", "1.0123456789s", None])
def test_invalid_durations_are_rejected_with_an_example(given: object) -> None:
    message = f'{scalars.quote(given)} is not a duration; write seconds followed by s, such as "3600s"'
    assert refusal(scalars.Duration, given) == message


def test_invalid_timestamps_are_rejected_with_an_example() -> None:
    assert canonical(scalars.Timestamp, "2026-01-31T12:00:00Z") == "2026-01-31T12:00:00Z"
    assert canonical(scalars.Timestamp, "2026-01-31T12:00:00.123456789Z") == "2026-01-31T12:00:00.123456789Z"
    for given in ("yesterday", 5, None):
        assert refusal(scalars.Timestamp, given).endswith('is not a time; write it as "2026-01-31T12:00:00Z"')


@pytest.mark.parametrize("given", ["BLUE", 5, 5.0])
def test_enum_names_and_numbers_become_names(given: object) -> None:
    assert canonical(Colour, given) == "BLUE"


@pytest.mark.parametrize("given", ["blue", "5", 2, 5.5, True, None, []])
def test_invalid_enum_values_show_the_choices(given: object) -> None:
    assert refusal(Colour, given) == f"{scalars.quote(given)} is not one of RED, BLUE"


def test_output_only_fields_are_rejected() -> None:
    assert refusal(scalars.OutputOnly[scalars.String], "x") == "is set by the service; remove it"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ("a b", '"a b"'),
        ({"a": ["b", True, None]}, '{"a": ["b", true, null]}'),
    ],
)
def test_a_value_is_shown_as_json(value: object, text: str) -> None:
    assert scalars.quote(value) == text


def test_long_values_are_cut_to_60_characters() -> None:
    assert scalars.quote("x" * 58) == f'"{"x" * 58}"'
    shown = scalars.quote("x" * 59)
    assert len(shown) == 60
    assert shown.endswith("xxx...")
