"""The times of a schedule, in ns since 1970 and as datetimes."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from vertex_emulator.database.records import Schedule

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iterate_times_of_schedule(schedule: Schedule, after: int) -> Iterator[int]:
    """Yield the times of a schedule later than `after`, in ns since 1970."""
    # Imported here because an emulator without schedules needs no rules of cron.
    from vertex_api.cron import cron_times

    request = schedule.request
    for time in cron_times(request.cron, request.time_zone, convert_to_datetime(after)):
        yield (time - _EPOCH) // timedelta(microseconds=1) * 1000


def get_next_time_or_none(schedule: Schedule) -> int | None:
    """Return the next time of a schedule in ns since 1970; None if it is paused, or has no more."""
    return None if schedule.request.paused else next(iterate_times_of_schedule(schedule, schedule.handled_until), None)


def convert_to_datetime(time: int) -> datetime:
    """Return a time in ns since 1970 as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=time // 1000)
