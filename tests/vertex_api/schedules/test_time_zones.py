"""Time zones of schedules: names of the tz database, and where their clocks change."""

from datetime import UTC, datetime

import pytest

from vertex_api.schedules.time_zones import (
    describe_time_zone_problem_or_none,
    iterate_hours_of_clock_changes,
)


@pytest.mark.parametrize("name", ["UTC", "Etc/UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "GMT"])
def test_names_of_the_database_have_no_problem(name: str) -> None:
    assert describe_time_zone_problem_or_none(name) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("europe/berlin", '"europe/berlin" is not a time zone; did you mean Europe/Berlin?'),
        ("Berlin", '"Berlin" is not a time zone; did you mean Europe/Berlin?'),
        ("America/New York", '"America/New York" is not a time zone; did you mean America/New_York?'),
        ("UTC+2", '"UTC+2" is not a time zone'),
        ("", '"" is not a time zone; write a name of the tz database, such as Europe/Berlin or UTC'),
        ("../../etc/passwd", '"../../etc/passwd" is not a time zone; write'),
        ("localtime", '"localtime" is not a time zone'),
        ("x" * 9999, "is not a time zone; write"),
    ],
)
def test_other_names_are_refused_with_the_nearest(name: str, message: str) -> None:
    assert message in (describe_time_zone_problem_or_none(name) or "")


def test_clock_changes_are_found_to_the_hour() -> None:
    assert list(iterate_hours_of_clock_changes("Europe/Berlin", 2024)) == [
        datetime(2024, 3, 31, 0, tzinfo=UTC),
        datetime(2024, 10, 27, 0, tzinfo=UTC),
    ]
    assert list(iterate_hours_of_clock_changes("UTC", 2024)) == []
