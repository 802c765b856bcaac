"""The next times of a schedule, as a preview shows them."""

from datetime import UTC, datetime

from components.schedules.next_times_rendering import find_next_time_text_or_none, render_next_times_line

NOW = datetime(2026, 10, 23, 12, tzinfo=UTC)


def test_the_next_three_times_are_those_of_the_zone_s_clocks() -> None:
    assert render_next_times_line("0 2 * * *", "Europe/Berlin", False, NOW) == (
        "next runs: Sat 2026-10-24 02:00 CEST, Sun 2026-10-25 02:00 CEST, Mon 2026-10-26 02:00 CET"
    )


def test_a_paused_schedule_says_that_it_does_not_run() -> None:
    line = render_next_times_line("0 2 * * *", "UTC", True, NOW)
    assert line.startswith("paused; without that, the next runs were: Sat 2026-10-24 02:00 UTC, ")


def test_the_next_time_is_in_utc() -> None:
    assert find_next_time_text_or_none("0 2 * * *", "Europe/Berlin", False, NOW) == "2026-10-24T00:00:00Z"
    assert find_next_time_text_or_none("0 2 * * *", "Europe/Berlin", True, NOW) is None
