"""The last scalars of an event file, of which the end is read."""

import math

import pytest

from tests.vertex_emulator.events import plain, raw_records, records, tensor
from vertex_api import events
from vertex_api.events import MAX_RECORD_BYTES, last

EVENTS = [plain("loss", 1, 4), tensor("acc", 1, dtype=1, float_val=[0.5]), plain("loss", 2, 2)]


@pytest.mark.parametrize("cut", [1, 5, 13, 30])
def test_an_end_begins_amid_a_record(cut: int) -> None:
    content = records([plain("first", 0, 1), *EVENTS])
    assert last(content, is_whole=True) == {"first": 1, "loss": 2, "acc": 0.5}
    assert last(content[cut:], is_whole=False) == {"loss": 2, "acc": 0.5}


def test_whatever_is_cut_off_raises_nothing() -> None:
    content = records(EVENTS)
    found = [last(content[start:end], is_whole=not start) for start in range(0, 90, 7) for end in range(len(content))]
    assert {} in found and {"loss": 4} in found


def test_a_tag_without_a_last_number_has_none() -> None:
    assert last(records([*EVENTS, plain("loss", 3, math.nan)]), is_whole=True) == {"acc": 0.5}


def test_records_that_are_no_events_are_skipped() -> None:
    parts = [b"\xff\xff", b"", b"x" * (MAX_RECORD_BYTES + 1), EVENTS[0].SerializeToString()]
    assert last(raw_records(parts), is_whole=True) == {"loss": 4}


def test_a_record_beyond_the_end_is_no_scalar() -> None:
    assert last(raw_records([b"x" * 100_000])[50:], is_whole=False) == {}


def test_fields_are_those_of_tensorflow() -> None:
    event = plain("loss", 7, 0.5, 12.25)
    event.summary.value[0].metadata.plugin_data.content = b"more"
    assert [*events.scalars(event.SerializeToString())] == [("loss", 7, 12.25, 0.5)]
