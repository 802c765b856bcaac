"""The clock and the times of schedules, and the runs that are due then: begun, or skipped with the reason."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from secrets import token_hex

from vertex_emulator.database import Transaction
from vertex_emulator.database.records import RunState, Schedule
from vertex_emulator.errors import ApiError
from vertex_emulator.times import now_ns, short_time

MAX_TIMES_AT_ONCE = 1000
CLOCK_SETTING = "schedules_clock"
_GRACE_NS = 60 * 10**9
"""How late a run may begin, so that a restart loses none: cron's unit of time."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_log = logging.getLogger("vertex_emulator.schedules")


def read_clock(transaction: Transaction) -> int:
    """Return the time for schedules in ns since 1970: that of the machine, or one that a test has set, which stands."""
    text = transaction.settings.get(CLOCK_SETTING)
    return now_ns() if text is None else int(text)


def is_clock_set(transaction: Transaction) -> bool:
    """Return whether the clock stands at a time that was set."""
    return transaction.settings.get(CLOCK_SETTING) is not None


def times(schedule: Schedule, after: int) -> Iterator[int]:
    """Yield the times of a schedule later than `after`, in ns since 1970; none while it is paused."""
    # Imported here because an emulator without schedules needs no rules of cron.
    from vertex_api.cron import cron_times

    request = schedule.request
    if not request.paused:
        for time in cron_times(request.cron, request.time_zone, _to_datetime(after)):
            yield (time - _EPOCH) // timedelta(microseconds=1) * 1000


def next_time(schedule: Schedule) -> int | None:
    """Return the next time of a schedule in ns since 1970; None if it is paused, or has no more."""
    return next(times(schedule, schedule.handled_until), None)


def _to_datetime(time: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time // 1000)


def new_run_id(time: int) -> str:
    """Return a new id of a run at a time in ns since 1970."""
    from vertex_api.schedules import new_run_id

    return new_run_id(_to_datetime(time), token_hex(4))


def begin_due(transaction: Transaction, schedule: Schedule, now: int) -> None:
    """Begin the runs of a schedule that are due at `now`, and skip its missed times as one.

    A time is missed if it is more than a minute past: the emulator did not run then, or its machine slept.
    """
    if schedule.request.paused:
        return
    on_time_after = max(schedule.handled_until, now - _GRACE_NS)
    missed = [*islice(_times_until(schedule, schedule.handled_until, on_time_after), MAX_TIMES_AT_ONCE)]
    if missed:
        reason = _missed_reason(missed)
        _log.warning("the schedule %s has %s", schedule.request.id, reason)
        transaction.schedules.add_run(schedule, new_run_id(missed[-1]), missed[-1], "SKIPPED", reason)
    due = [*_times_until(schedule, on_time_after, now)]
    _begin_at(transaction, schedule, due)
    if missed or due:
        transaction.schedules.set_handled_until(schedule, now)


def _missed_reason(missed: list[int]) -> str:
    """Return why there are no runs at the first missed times."""
    first, last = short_time(missed[0]), short_time(missed[-1])
    at_least = "at least " if len(missed) == MAX_TIMES_AT_ONCE else ""
    described = first if len(missed) == 1 else f"{at_least}{len(missed)} times from {first} to {last}"
    return f"missed {described}: the emulator was not running"


def begin_until(transaction: Transaction, schedule: Schedule, until: int) -> None:
    """Begin the runs at all times of a schedule up to `until`, as a clock that passes them does.

    Raises ApiError for more than a thousand.
    """
    due = [*islice(_times_until(schedule, schedule.handled_until, until), MAX_TIMES_AT_ONCE + 1)]
    if len(due) > MAX_TIMES_AT_ONCE:
        message = f"{schedule.name} has more than {MAX_TIMES_AT_ONCE} times until then; move the clock in smaller steps"
        raise ApiError("INVALID_ARGUMENT", message)
    _begin_at(transaction, schedule, due)
    transaction.schedules.set_handled_until(schedule, until)


def _times_until(schedule: Schedule, after: int, until: int) -> Iterator[int]:
    return takewhile(lambda time: time <= until, times(schedule, after))


def _begin_at(transaction: Transaction, schedule: Schedule, due: list[int]) -> None:
    for time in due:
        reason = overlap(transaction, schedule)
        state: RunState = "RUNNING" if reason is None else "SKIPPED"
        transaction.schedules.add_run(schedule, new_run_id(time), time, state, reason)


def overlap(transaction: Transaction, schedule: Schedule) -> str | None:
    """Return why the schedule's overlap lets no run begin now; None if one may."""
    if schedule.request.overlap == "allow":
        return None
    run = transaction.schedules.current_run(schedule)
    return None if run is None else f"the run {run.run_id} is still under way (overlap: skip)"
