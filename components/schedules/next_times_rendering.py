"""The next times of a schedule, as a preview shows them and as its status records them."""

from datetime import datetime
from itertools import islice

_SHOWN_TIMES = 3
_STARTS = {False: "next runs: ", True: "paused; without that, the next runs were: "}
"""What the line begins with, by whether the schedule is paused."""


def render_next_times_line(cron: str, time_zone: str, paused: bool, now: datetime) -> str:
    """Return the next three times of a schedule by the clocks of its zone, as one line."""
    # Imported here and below, because most stacks have no schedules.
    from vertex_api.schedules.cron import iterate_times
    from vertex_api.schedules.time_zones import get_time_zone

    zone = get_time_zone(time_zone)
    times = [
        f"{time.astimezone(zone):%a %Y-%m-%d %H:%M %Z}"
        for time in islice(iterate_times(cron, time_zone, now), _SHOWN_TIMES)
    ]
    return _STARTS[paused] + ", ".join(times)


def is_next_times_line(text: str) -> bool:
    """Return whether a message of a preview is the line with the next times of a schedule."""
    return text.startswith(tuple(_STARTS.values()))


def find_next_time_text_or_none(cron: str, time_zone: str, paused: bool, now: datetime) -> str | None:
    """Return when a schedule runs next, in UTC as RFC 3339; None for a paused one."""
    from vertex_api.schedules.cron import iterate_times

    if paused:
        return None
    time = next(iterate_times(cron, time_zone, now), None)
    return f"{time:%Y-%m-%dT%H:%M:%SZ}" if time else None
