"""Cron expressions as Cloud Scheduler takes them, and the times that they mean in a time zone.

Cloud Scheduler's page "Cron job format and time zone" describes the format: unix-cron of five fields, with names of
months and days in capital letters, and without seconds, `L`, `#` or `@daily`. At changes of daylight saving time,
cronsim does as Debian's cron: a time that does not exist is the first moment after it, and one that occurs twice is the
first of the two. Expressions whose minute or hour begins with `*` follow the hours as they pass.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from vertex_api.names import did_you_mean

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_TERM = re.compile(r"(?P<first>\*|\w+)(-(?P<last>\w+))?(/(?P<step>\w+))?")
_FORM = "write five fields: minute, hour, day of the month, month, day of the week, such as 0 2 * * MON-FRI"
_MAX_EXPRESSION_LENGTH = 500
_REFERENCE_YEAR = 2024
_REFERENCE_START = datetime(_REFERENCE_YEAR, 1, 1, tzinfo=UTC) - timedelta(minutes=1)
_YEAR = timedelta(days=365)
_YEARS_WITH_ONE_LEAP_DAY = 4
_MAX_TIMES = 6000  # those of each minute of the days around a clock change
_AROUND_CHANGE = timedelta(days=2)


@dataclass(frozen=True)
class _CronField:
    """A field of an expression: its values, and the `names` that stand for `min_value` and those after it."""

    label: str
    min_value: int
    max_value: int
    names: tuple[str, ...] = ()

    def parse(self, text: str) -> int | None:
        if text in self.names:
            return self.min_value + self.names.index(text)
        value = int(text) if re.fullmatch("[0-9]{1,4}", text) else -1
        return value if self.min_value <= value <= self.max_value else None

    def problem(self, text: str) -> str | None:
        return next(filter(None, map(self._term_problem, text.split(","))), None)

    def _term_problem(self, term: str) -> str | None:
        match = _TERM.fullmatch(term)
        if not match or (match["first"] == "*" and match["last"]):
            return f'the {self.label} is "{term}", and must be *, a value, a range such as 1-5, or a step such as */2'
        values = [text for text in (match["first"], match["last"]) if text and text != "*"]
        for value in values:
            if self.parse(value) is None:
                return f'the {self.label} is "{value}", and must be {self._allowed(value)}'
        if match["last"] and not self._is_ascending(*values):
            return f'the {self.label} has the range "{term}", whose end must be above its beginning'
        if match["step"]:
            if len(values) == 1:
                end = f"{values[0]}-{self.max_value}/{match['step']}"
                return f'the {self.label} is "{term}", and a step needs a range or *: write {end}'
            step = int(match["step"]) if re.fullmatch("[0-9]{1,4}", match["step"]) else 0
            if not 1 <= step <= self.max_value:
                return f'the {self.label} has the step "{match["step"]}", which must be 1 to {self.max_value}'
        return None

    def _is_ascending(self, first: str, last: str) -> bool:
        low, high = self.parse(first), self.parse(last)
        return low is not None and high is not None and low < high

    def _allowed(self, invalid_value: str) -> str:
        numbers = f"{self.min_value} to {self.max_value}"
        if not self.names:
            return numbers
        meant = did_you_mean(invalid_value, self.names) if invalid_value.upper() in self.names else ""
        return f"{numbers}, or {self.names[0]} to {self.names[-1]}{meant}"


_FIELDS = (
    _CronField("minute", 0, 59),
    _CronField("hour", 0, 23),
    _CronField("day of the month", 1, 31),
    _CronField("month", 1, 12, _MONTHS),
    _CronField("day of the week", 0, 7, _DAYS),
)


def cron_problem(text: str) -> str | None:
    """Return what is wrong with a cron expression, and None for one that Cloud Scheduler takes and that has times."""
    shown = text if len(text) <= _MAX_EXPRESSION_LENGTH else f"{text[:_MAX_EXPRESSION_LENGTH]}…"
    parts = [part for part in text.split(" ") if part]
    if text.startswith("@"):
        return f'"{shown}" is an abbreviation; {_FORM}'
    if len(parts) != len(_FIELDS) or shown != text:
        return f'"{shown}" has {len(parts)} field{"s" * (len(parts) != 1)}; {_FORM}'
    for field, part in zip(_FIELDS, parts, strict=True):
        if problem := field.problem(part):
            return f'"{text}": {problem}'
    days = (parts[2], parts[4])
    if "*" not in days and any(part.startswith("*") for part in days):
        message = "both days are given, one by a step of *; write the step of a range, such as 1-31/2"
        return f'"{text}": {message}, as Cloud Scheduler does not say whether such days must both be right'
    try:
        next(CronSim(text, _REFERENCE_START))
    except (CronSimError, StopIteration):
        return f'"{text}": no month {parts[3]} has a day {parts[2]}, so there is no such time'
    return None


def cron_times(cron: str, time_zone: str, after: datetime) -> Iterator[datetime]:
    """Return the times of a valid expression in a time zone that are later than `after`, in UTC and ascending.

    There is no end to them as a rule. `after` has a time zone.
    """
    start = after.astimezone(ZoneInfo(time_zone))
    # cronsim drops which of two equal wall clock times `after` is, so its first times can be earlier.
    return (time for each in CronSim(cron, start) if (time := each.astimezone(UTC)) > after)


def shortest_gap(cron: str, time_zone: str) -> timedelta:
    """Return the shortest time between two times of a valid expression, changes of daylight saving time included.

    It is that of a fixed year, so that it does not depend on the day of a preview.
    """
    changes = _clock_changes(time_zone, _REFERENCE_YEAR)
    periods = [
        (_REFERENCE_START, _REFERENCE_START + _YEAR),
        *((change - _AROUND_CHANGE, change + _AROUND_CHANGE) for change in changes),
    ]
    gaps = (
        later - earlier
        for start, end in periods
        for earlier, later in pairwise(islice(_times_between(cron, time_zone, start, end), _MAX_TIMES))
    )
    return min(gaps, default=_YEAR)


def times_per_year(cron: str) -> float:
    """Return how many times of a valid expression a year has on average, clock changes aside."""
    minute, hour, *days = cron.split()
    hours_and_minutes = CronSim(f"{minute} {hour} * * *", _REFERENCE_START)
    end = _REFERENCE_START.replace(year=_REFERENCE_START.year + _YEARS_WITH_ONE_LEAP_DAY)
    matching_days = _times_between(f"0 0 {' '.join(days)}", "UTC", _REFERENCE_START, end)
    per_day = len(hours_and_minutes.hours) * len(hours_and_minutes.minutes)
    return sum(1 for _ in matching_days) * per_day / _YEARS_WITH_ONE_LEAP_DAY


def _times_between(cron: str, time_zone: str, start: datetime, end: datetime) -> Iterator[datetime]:
    return takewhile(lambda time: time < end, cron_times(cron, time_zone, start))


_MAX_ZONE_LENGTH = 100


@cache
def _zone_names() -> frozenset[str]:
    # Of the package, and not those of this machine: so all machines accept the same, and 20 ms sooner.
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split()) - {"Factory"}


def zone_problem(text: str) -> str | None:
    """Return what is wrong with the name of a time zone, None for one of the tz database."""
    if text in _zone_names():
        return None
    shown = text[:_MAX_ZONE_LENGTH]
    cities = {name.rpartition("/")[2]: name for name in sorted(_zone_names())}
    if meant := cities.get(text.rpartition("/")[2].replace(" ", "_")):
        return f'"{shown}" is not a time zone; did you mean {meant}?'
    suggestion = did_you_mean(shown, _zone_names())
    if not suggestion.startswith("; did you mean"):
        suggestion = "; write a name of the tz database, such as Europe/Berlin or UTC"
    return f'"{shown}" is not a time zone{suggestion}'


def _clock_changes(time_zone: str, year: int) -> Iterator[datetime]:
    """Find the hours of a year, in UTC, in which the clocks of a valid time zone change."""
    zone, start = ZoneInfo(time_zone), datetime(year, 1, 1, tzinfo=UTC)
    days = (start + timedelta(days=day) for day in range(367))
    for day, next_day in pairwise(days):
        if day.astimezone(zone).utcoffset() != next_day.astimezone(zone).utcoffset():
            hours = (day + timedelta(hours=hour) for hour in range(25))
            for hour, next_hour in pairwise(hours):
                if hour.astimezone(zone).utcoffset() != next_hour.astimezone(zone).utcoffset():
                    yield hour
