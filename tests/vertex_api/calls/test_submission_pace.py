"""The pace of submissions: what any minute holds, how long many take, and how threads share it."""

import pytest

from tests.vertex_api.clock import Clock
from vertex_api import retry
from vertex_api.retry import Pace, least_seconds

LIMITS = [1, 2, 7, 60, 600]


def turn_times(per_minute: int, count: int) -> list[float]:
    """The times at which calls go that all come at once."""
    pace = Pace(per_minute)
    return [pace.reserve(1000.0) for _ in range(count)]


@pytest.mark.parametrize("per_minute", LIMITS)
def test_no_minute_holds_more_than_the_limit(per_minute: int) -> None:
    times = turn_times(per_minute, 5 * per_minute + 1)
    after_a_minute = zip(times, times[per_minute:], strict=False)
    assert all(later - earlier >= 60 - 1e-6 for earlier, later in after_a_minute)


@pytest.mark.parametrize("per_minute", LIMITS)
def test_many_submissions_take_less_than_a_tenth_more(per_minute: int) -> None:
    assert turn_times(per_minute, 10 * per_minute)[-1] <= 1.1 * 60 * 10


def test_a_few_submissions_do_not_wait() -> None:
    assert turn_times(60, 5) == [0] * 5


def test_the_limit_of_a_minute_fits_into_it() -> None:
    assert turn_times(60, 60)[-1] < 60


def test_an_idle_minute_is_not_saved_up() -> None:
    pace = Pace(60)
    assert [pace.reserve(now) for now in [0.0] * 5 + [1000.0] * 5] == [0] * 10
    assert pace.reserve(1000.0) > 0


def test_the_estimate_is_the_last_turn() -> None:
    for count in (1, 5, 6, 240, 1000):
        assert least_seconds(count, 60) == pytest.approx(turn_times(60, count)[-1])


def test_a_wait_is_told_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told = Clock(), list[int]()
    monkeypatch.setattr(retry, "time", clock)
    pace = Pace(1, lambda turns: told.append(turns) if not clock.naps else None)
    pace.wait_for_turn()
    assert not told
    pace.wait_for_turn()
    assert told == [2]
    assert clock.naps == [60.0]
