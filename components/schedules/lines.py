"""The line of a preview with the next times of a schedule. Reviews find it."""

from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

_SHOWN_TIMES = 3
_NEXT_TIMES_STARTS = {False: "next runs: ", True: "paused; without that, the next runs were: "}
"""What the line begins with, by whether the schedule is paused."""


def next_times_line(cron: str, time_zone: str, paused: bool, now: datetime) -> str:
    """Return the next three times of a schedule by the clocks of its zone, as one line."""
    # Imported here, because most stacks have no schedules.
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
