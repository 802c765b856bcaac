"""Time zones of schedules: names of the tz database, as Cloud Scheduler takes them, and when their clocks change."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import pairwise
from zoneinfo import ZoneInfo

from vertex_api.name_suggestions import suggestion_or_known_names_text

_MAX_NAME_LENGTH = 100


@cache
def _load_known_time_zone_names() -> frozenset[str]:
    # Of the package, and not those of this machine: so all machines accept the same, and 20 ms sooner.
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split()) - {"Factory"}


def describe_time_zone_problem_or_none(text: str) -> str | None:
    """Return what is wrong with the name of a time zone, None for one of the tz database."""
    if text in _load_known_time_zone_names():
        return None
    shown = text[:_MAX_NAME_LENGTH]
    cities = {name.rpartition("/")[2]: name for name in sorted(_load_known_time_zone_names())}
    if meant := cities.get(text.rpartition("/")[2].replace(" ", "_")):
        return f'"{shown}" is not a time zone; did you mean {meant}?'
    suggestion = suggestion_or_known_names_text(shown, _load_known_time_zone_names())
    if not suggestion.startswith("; did you mean"):
        suggestion = "; write a name of the tz database, such as Europe/Berlin or UTC"
    return f'"{shown}" is not a time zone{suggestion}'


def get_time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its valid name."""
    return ZoneInfo(name)


def iterate_hours_of_clock_changes(time_zone: str, year: int) -> Iterator[datetime]:
    """Find the hours of a year, in UTC, in which the clocks of a valid time zone change."""
    zone, start = get_time_zone(time_zone), datetime(year, 1, 1, tzinfo=UTC)
    days = (start + timedelta(days=day) for day in range(367))
    for day, next_day in pairwise(days):
        if day.astimezone(zone).utcoffset() != next_day.astimezone(zone).utcoffset():
            hours = (day + timedelta(hours=hour) for hour in range(25))
            for hour, next_hour in pairwise(hours):
                if hour.astimezone(zone).utcoffset() != next_hour.astimezone(zone).utcoffset():
                    yield hour
