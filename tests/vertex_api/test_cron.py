"""Cron expressions and time zones, as Cloud Scheduler takes them."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from vertex_api.cron import _clock_changes, cron_problem, cron_times, shortest_gap, times_per_year, zone_problem


def list_local_times(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The next times after a local one, as the zone's clocks show them, with their offset from UTC."""
    start = datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone))
    times = islice(cron_times(cron, zone, start), count)
    return [f"{time.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M%z}" for time in times]


@pytest.mark.parametrize(
    "cron",
    [
        "0 2 * * *",
        "*/5 * * * *",
        "0-59/10 0-23/2 * * *",
        "1,2,30-40 0 1,15 JAN-MAR,12 *",
        "0 0 * * MON-FRI",
        "0 0 * * 7",
        "0 0 1 * SAT",
        "0 0 31 2 MON",
        "0 0 29 2 *",
        "0  2 * * *",
    ],
)
def test_expressions_of_cloud_scheduler_have_no_problem(cron: str) -> None:
    assert cron_problem(cron) is None


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        ("", '"" has 0 fields; write five fields'),
        ("nightly", '"nightly" has 1 field; write five fields'),
        ("0 0 2 * * *", "has 6 fields; write five fields"),
        ("@daily", '"@daily" is an abbreviation; write five fields'),
        ("0 2 * *\n*", "has 4 fields"),
        ("60 2 * * *", 'the minute is "60", and must be 0 to 59'),
        ("0 24 * * *", 'the hour is "24", and must be 0 to 23'),
        ("0 2 0 * *", 'the day of the month is "0", and must be 1 to 31'),
        ("0 2 * 13 *", 'the month is "13", and must be 1 to 12, or JAN to DEC'),
        ("0 2 * * 8", 'the day of the week is "8", and must be 0 to 7, or SUN to SAT'),
        ("0 2 * * mon", 'the day of the week is "mon", and must be 0 to 7, or SUN to SAT; did you mean MON?'),
        ("0 2 * * MONDAY", 'the day of the week is "MONDAY"'),
        ("0 2 L * *", 'the day of the month is "L"'),
        ("0 2 * * 5L", 'the day of the week is "5L"'),
        ("0 2 * * MON#1", 'the day of the week is "MON#1"'),
        ("0 2 ? * MON", 'the day of the month is "?"'),
        ("0 2 * * FRI-MON", 'the range "FRI-MON", whose end must be above its beginning'),
        ("5/15 * * * *", 'the minute is "5/15", and a step needs a range or *: write 5-59/15'),
        ("*/0 * * * *", 'the minute has the step "0", which must be 1 to 59'),
        ("*/90 * * * *", 'the minute has the step "90", which must be 1 to 59'),
        ("*-5 * * * *", 'the minute is "*-5"'),
        ("1,,2 * * * *", 'the minute is ""'),
        ("٣ 2 * * *", 'the minute is "٣"'),
        ("0 2 */2 * MON", "both days are given, one by a step of *"),
        ("0 2 30 2 *", "no month 2 has a day 30"),
        ("0 2 31 4,JUN *", "no month 4,JUN has a day 31"),
        (f"{'1,' * 999}1 * * * *", "has 5 fields; write five fields"),
    ],
)
def test_other_expressions_are_refused_with_their_field(cron: str, message: str) -> None:
    assert message in (cron_problem(cron) or "")


@pytest.mark.parametrize(
    ("zone", "cron", "after", "times"),
    [
        # The hour from 2 to 3 does not exist: a time in it is the moment when it would have begun.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-03-28 00:00",
            ["2026-03-28 02:30+0100", "2026-03-29 03:00+0200", "2026-03-30 02:30+0200"],
        ),
        ("America/New_York", "0 2 * * *", "2026-03-07 12:00", ["2026-03-08 03:00-0400", "2026-03-09 02:00-0400"]),
        # It occurs twice: the first of the two counts.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-10-24 12:00",
            ["2026-10-25 02:30+0200", "2026-10-26 02:30+0100"],
        ),
        ("America/New_York", "30 1 * * *", "2026-10-31 12:00", ["2026-11-01 01:30-0400", "2026-11-02 01:30-0500"]),
        # Clocks of Lord Howe Island change by half an hour, those of Havana at midnight.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03 12:00",
            ["2026-10-04 02:30+1100", "2026-10-05 02:15+1100"],
        ),
        ("America/Havana", "0 0 * * *", "2026-03-07 12:00", ["2026-03-08 01:00-0400", "2026-03-09 00:00-0400"]),
        # An expression with `*` follows the hours as they pass.
        (
            "Europe/Berlin",
            "0 * * * *",
            "2026-10-25 01:30",
            ["2026-10-25 02:00+0200", "2026-10-25 02:00+0100", "2026-10-25 03:00+0100"],
        ),
        ("Europe/Berlin", "0 * * * *", "2026-03-29 01:30", ["2026-03-29 03:00+0200", "2026-03-29 04:00+0200"]),
        ("Asia/Tokyo", "0 2 * * *", "2026-03-28 12:00", ["2026-03-29 02:00+0900"]),
    ],
)
def test_times_follow_both_changes_of_the_clock(zone: str, cron: str, after: str, times: list[str]) -> None:
    assert list_local_times(cron, zone, after, len(times)) == times


@pytest.mark.parametrize(
    ("cron", "after", "times"),
    [
        ("0 2 31 * *", "2026-01-31 12:00", ["2026-03-31", "2026-05-31", "2026-07-31"]),
        ("0 2 28-31 2 *", "2028-02-01 00:00", ["2028-02-28", "2028-02-29", "2029-02-28"]),
        ("0 2 29 2 *", "2026-01-01 00:00", ["2028-02-29", "2032-02-29"]),
        # Both days given: either is enough.
        ("0 2 1 * SAT", "2026-07-30 00:00", ["2026-08-01", "2026-08-08", "2026-08-15"]),
        ("0 2 1 * MON", "2026-07-30 00:00", ["2026-08-01", "2026-08-03", "2026-08-10"]),
        ("0 2 * JAN,JUL SUN", "2026-07-30 00:00", ["2027-01-03", "2027-01-10"]),
        ("0 2 * * 0", "2026-07-30 00:00", ["2026-08-02"]),
        ("0 2 * * 7", "2026-07-30 00:00", ["2026-08-02"]),
    ],
)
def test_days_are_those_of_unix_cron(cron: str, after: str, times: list[str]) -> None:
    assert [time[:10] for time in list_local_times(cron, "UTC", after, len(times))] == times


def test_all_times_are_later_than_the_start() -> None:
    second_half_past_two = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)  # of Berlin's two that night
    first, second = islice(cron_times("45 2 * * *", "Europe/Berlin", second_half_past_two), 2)
    assert (first, second) == (datetime(2026, 10, 26, 1, 45, tzinfo=UTC), datetime(2026, 10, 27, 1, 45, tzinfo=UTC))
    assert next(cron_times("0 2 * * *", "UTC", first.replace(hour=2, minute=0))) == datetime(
        2026, 10, 27, 2, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("cron", "zone", "gap"),
    [
        ("* * * * *", "UTC", timedelta(minutes=1)),
        ("0 2 * * *", "UTC", timedelta(days=1)),
        ("0 2 * * *", "Europe/Berlin", timedelta(hours=23)),
        ("30 0-23 * * *", "Europe/Berlin", timedelta(minutes=30)),
        ("0 2,5 * * *", "Australia/Sydney", timedelta(hours=2)),
        ("0 2 * * SUN", "UTC", timedelta(days=7)),
        ("0 2 29 2 *", "UTC", timedelta(days=365)),
    ],
)
def test_the_shortest_gap_includes_clock_changes(cron: str, zone: str, gap: timedelta) -> None:
    assert shortest_gap(cron, zone) == gap


def test_times_per_year_are_an_average() -> None:
    assert times_per_year("0 2 * * *") == pytest.approx(365.25)
    assert times_per_year("*/30 * * JAN *") == 48 * 31
    assert times_per_year("0 2,3 1 * *") == 24
    assert times_per_year("0 0 29 2 *") == 0.25


@pytest.mark.parametrize("name", ["UTC", "Etc/UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "GMT"])
def test_names_of_the_database_have_no_problem(name: str) -> None:
    assert zone_problem(name) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("europe/berlin", '"europe/berlin" is not a time zone; did you mean Europe/Berlin?'),
        ("Berlin", '"Berlin" is not a time zone; did you mean Europe/Berlin?'),
        ("New York", '"New York" is not a time zone; did you mean America/New_York?'),
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
