"""Times of files, which containers set as they like."""

import pytest

from vertex_emulator.times import format_time


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (-1, "1969-12-31T23:59:59.000000Z"),
        (2**62, "9999-12-31T23:59:59.000000Z"),
        (-(2**62), "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_any_time_has_a_text(seconds: int, text: str) -> None:
    assert format_time(seconds * 10**9) == text
