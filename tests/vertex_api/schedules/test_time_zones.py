"""Time zones of schedules: names of the tz database, and where their clocks change."""

from datetime import UTC, datetime

import pytest

from vertex_api.cron import _clock_changes, zone_problem


@pytest.mark.parametrize("name", ["UTC", "Etc/UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "GMT"])
def test_names_of_the_database_have_no_problem(name: str) -> None:
    assert zone_problem(name) is None


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
    assert message in (zone_problem(name) or "")


def test_clock_changes_are_found_to_the_hour() -> None:
    assert list(_clock_changes("Europe/Berlin", 2024)) == [
        datetime(2024, 3, 31, 0, tzinfo=UTC),
        datetime(2024, 10, 27, 0, tzinfo=UTC),
    ]
    assert list(_clock_changes("UTC", 2024)) == []
