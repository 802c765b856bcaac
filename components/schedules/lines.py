"""The lines of a preview on schedules: their next times, and what they cost at most. Reviews parse them."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

from vertex_api.estimates.cost import Cost

from ..schema.declared_schedule import DeclaredSchedule

_SHOWN_TIMES = 3
_NEXT_TIMES_STARTS = {False: "next runs: ", True: "paused; without that, the next runs were: "}
"""What the line begins with, by whether the schedule is paused."""
_COST_START, _COST_END = "Schedules in ", ", at most by list price:"
_COST_LINE = re.compile(r"  (\S+): (.+)")
_MONTHS = 12


def next_times_line(cron: str, time_zone: str, paused: bool, now: datetime) -> str:
    """Return the next three times of a schedule by the clocks of its zone, as one line."""
    # Imported here and below, because most stacks have no schedules.
    from vertex_api.cron import cron_times

    zone = ZoneInfo(time_zone)
    times = [
        f"{time.astimezone(zone):%a %Y-%m-%d %H:%M %Z}"
        for time in islice(cron_times(cron, time_zone, now), _SHOWN_TIMES)
    ]
    return _NEXT_TIMES_STARTS[paused] + ", ".join(times)


def is_next_times(text: str) -> bool:
    """Return whether a message of a preview is the line with the next times of a schedule."""
    return text.startswith(tuple(_NEXT_TIMES_STARTS.values()))


def cost_lines(region: str, schedules: Iterable[DeclaredSchedule], costs: Mapping[str, Cost]) -> list[str]:
    """Return a heading and a line for each schedule, none without schedules. `costs` are those of the jobs by name."""
    lines = [_cost_line(schedule, costs) for schedule in schedules]
    return [f"{_COST_START}{region}{_COST_END}", *lines] if lines else []


def parse_costs(preview_messages: Iterable[str]) -> dict[str, str]:
    """Return what schedules cost, as these lines among a preview's messages say it; nothing without them."""
    for message in preview_messages:
        lines = iter(message.splitlines())
        if any(line.startswith(_COST_START) and line.endswith(_COST_END) for line in lines):
            return {match[1]: match[2] for line in lines if (match := _COST_LINE.fullmatch(line))}
    return {}


def _cost_line(schedule: DeclaredSchedule, costs: Mapping[str, Cost]) -> str:
    from vertex_api.cron import times_per_year

    per_month = times_per_year(schedule.cron) / _MONTHS
    runs = f"{per_month:,.1f}".removesuffix(".0") + " runs a month"
    unpriced = [item for name in schedule.job_names for item in costs[name].unpriced]
    if unpriced:
        amount = f"no price on file for {', '.join(dict.fromkeys(unpriced))}, {runs}"
    else:
        usd = sum(costs[name].total for name in schedule.job_names)
        amount = f"{usd:,.2f} USD a run, {usd * per_month:,.2f} USD a month ({runs})"
    return f"  {schedule.name}: {amount}{', paused' if schedule.paused else ''}"
