"""Which values of events are scalars."""

import math
import struct
from typing import Any

import pytest

from tests.vertex_emulator.event_files.events import plain, tensor
from vertex_emulator.event_files.scalar_events import MAX_TAG_BYTES, Scalar, iterate_scalars


def scalars(event: Any) -> list[Scalar]:
    return [*iterate_scalars(event.SerializeToString())]


def test_plain_values_are_read_with_step_and_time() -> None:
    event = plain("loss", 7, 0.5, wall_time=123.25)
    event.summary.value.add(tag="accuracy", simple_value=0.75)
    assert scalars(event) == [Scalar("loss", 7, 123.25, 0.5), Scalar("accuracy", 7, 123.25, 0.75)]


@pytest.mark.parametrize(
    "fields",
    [
        {"dtype": 1, "float_val": [2.5]},
        {"dtype": 1, "tensor_content": struct.pack("<f", 2.5)},
        {"dtype": 2, "double_val": [2.5]},
        {"dtype": 2, "tensor_content": struct.pack("<d", 2.5)},
    ],
)
def test_tensors_with_one_number_are_scalars(fields: dict[str, Any]) -> None:
    assert scalars(tensor("loss", 3, **fields)) == [Scalar("loss", 3, 1000.0, 2.5)]


@pytest.mark.parametrize(
    ("plugin", "fields"),
    [
        ("scalars", {"dtype": 1, "float_val": [1.0, 2.0]}),
        ("scalars", {"dtype": 1}),
        ("scalars", {"dtype": 7, "string_val": [b"text"]}),
        ("histograms", {"dtype": 1, "float_val": [1.0]}),
    ],
)
def test_other_tensors_are_no_scalars(plugin: str, fields: dict[str, Any]) -> None:
    assert scalars(tensor("loss", 3, plugin, **fields)) == []


def test_impossible_times_and_long_tags_are_left_out() -> None:
    for time in (math.nan, math.inf, -1.0, 1e300):
        assert scalars(plain("loss", 1, 0.5, time)) == [Scalar("loss", 1, 0.0, 0.5)]
    assert scalars(plain("é" * (MAX_TAG_BYTES // 2), 1, 0.5)) != []
    assert scalars(plain("é" * (MAX_TAG_BYTES // 2 + 1), 1, 0.5)) == []


def test_a_record_that_is_no_event_is_reported() -> None:
    with pytest.raises(ValueError, match="no event"):
        [*iterate_scalars(b"\xff\xff")]
