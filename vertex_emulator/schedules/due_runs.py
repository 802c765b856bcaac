"""The runs that are due at the times of schedules: begun, or skipped with the reason."""

import logging
from dataclasses import dataclass
from itertools import islice, takewhile
from secrets import token_hex

from vertex_emulator.database import Transaction
from vertex_emulator.database.records import RunState, Schedule
from vertex_emulator.errors import TooManyScheduleTimes
from vertex_emulator.schedules.schedule_times import convert_to_datetime, iterate_times_of_schedule
from vertex_emulator.times import short_time

MAX_TIMES_AT_ONCE = 1000
_GRACE_NS = 60 * 10**9
"""How late a run may begin, so that a restart loses none: cron's unit of time."""
_log = logging.getLogger("vertex_emulator.schedules")


@dataclass(frozen=True)
class MissedTimes:
    """The times that a schedule has missed, in ns since 1970; there may be more than `count`."""

    count: int
    first: int
    last: int

    @property
    def reason(self) -> str:
        """Why there are no runs at these times."""
        first, last = short_time(self.first), short_time(self.last)
        at_least = "at least " if self.count == MAX_TIMES_AT_ONCE else ""
        times = first if self.count == 1 else f"{at_least}{self.count} times from {first} to {last}"
        return f"missed {times}: the emulator was not running"


def add_due_runs_and_skip_missed_times(transaction: Transaction, schedule: Schedule, now: int) -> None:
    """Begin the runs of a schedule that are due at `now`, and skip its missed times as one.

    A time is missed if it is more than a minute past: the emulator did not run then, or its machine slept.
    """
    if schedule.request.paused:
        return
    on_time_after = max(schedule.handled_until, now - _GRACE_NS)
    missed = _find_missed_times_or_none(schedule, on_time_after)
    if missed is not None:
        _log.warning("the schedule %s has %s", schedule.request.id, missed.reason)
        transaction.schedules.add_run(schedule, generate_run_id(missed.last), missed.last, "SKIPPED", missed.reason)
    due = [*takewhile(lambda time: time <= now, iterate_times_of_schedule(schedule, on_time_after))]
    _add_runs_at_times(transaction, schedule, due)
    if missed is not None or due:
        transaction.schedules.set_handled_until(schedule, now)


def add_all_runs_until(transaction: Transaction, schedule: Schedule, until: int) -> None:
    """Begin the runs at all times of a schedule up to `until`, as a clock that passes them does.

    Raises TooManyScheduleTimes.
    """
    if not schedule.request.paused:
        times = takewhile(lambda time: time <= until, iterate_times_of_schedule(schedule, schedule.handled_until))
        due = [*islice(times, MAX_TIMES_AT_ONCE + 1)]
        if len(due) > MAX_TIMES_AT_ONCE:
            message = (
                f"{schedule.name} has more than {MAX_TIMES_AT_ONCE} times until then; move the clock in smaller steps"
            )
            raise TooManyScheduleTimes(message)
        _add_runs_at_times(transaction, schedule, due)
    transaction.schedules.set_handled_until(schedule, until)


def generate_run_id(time: int) -> str:
    """Generate the id of a run at a time in ns since 1970."""
    from vertex_api.schedules import new_run_id

    return new_run_id(convert_to_datetime(time), token_hex(4))


def describe_overlap_or_none(transaction: Transaction, schedule: Schedule) -> str | None:
    """Describe why the schedule's overlap lets no run begin now; None if one may."""
    if schedule.request.overlap == "allow":
        return None
    run = transaction.schedules.current_run(schedule)
    return None if run is None else f"the run {run.run_id} is still under way (overlap: skip)"


def _find_missed_times_or_none(schedule: Schedule, until: int) -> MissedTimes | None:
    times = takewhile(lambda time: time <= until, iterate_times_of_schedule(schedule, schedule.handled_until))
    missed = [*islice(times, MAX_TIMES_AT_ONCE)]
    return MissedTimes(len(missed), missed[0], missed[-1]) if missed else None


def _add_runs_at_times(transaction: Transaction, schedule: Schedule, times: list[int]) -> None:
    for time in times:
        reason = describe_overlap_or_none(transaction, schedule)
        state: RunState = "RUNNING" if reason is None else "SKIPPED"
        transaction.schedules.add_run(schedule, generate_run_id(time), time, state, reason)
