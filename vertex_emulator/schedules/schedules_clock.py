"""The clock of schedules: that of the machine, or one that a test has set, which stands until it is moved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_emulator.database import Database, Transaction
from vertex_emulator.errors import ApiError, TooManyScheduleTimes
from vertex_emulator.schedules.due_runs import add_all_runs_until
from vertex_emulator.times import now_ns, parse_time, short_time

_SETTING = "schedules_clock"
_MIN_TIME, _MAX_TIME = (parse_time(f"{year}-01-01T00:00:00Z") or 0 for year in (1970, 2200))


def read_clock(transaction: Transaction) -> int:
    """Return the time for schedules, in ns since 1970."""
    text = transaction.settings.get(_SETTING)
    return now_ns() if text is None else int(text)


def is_clock_set(transaction: Transaction) -> bool:
    """Return whether the clock stands at a time that was set."""
    return transaction.settings.get(_SETTING) is not None


@dataclass(frozen=True)
class ScheduleClockService:
    """The emulator's own methods on the clock; `wake` tells the loop of schedules that something has changed."""

    database: Database
    wake: Callable[[], None]

    def set_time_and_begin_passed_runs(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Let the schedules' clock stand at `time`; the runs at all times that it passes begin. Raises ApiError."""
        text = body.get("time")
        time = parse_time(text) if isinstance(text, str) else None
        if time is None or not _MIN_TIME <= time < _MAX_TIME:
            message = f"time is {str(text)[:100]!a}; it must be like 2026-11-22T02:00:00Z, in 1970 to 2199"
            raise ApiError("INVALID_ARGUMENT", message)
        with self.database.write() as transaction:
            latest = transaction.schedules.latest_run()
            if latest is not None and time < latest[0].time:
                run, schedule = latest
                message = f"time is before the run {run.run_id} of {schedule.request.id}; move the clock forward"
                raise ApiError("FAILED_PRECONDITION", message)
            for schedule in transaction.schedules.all():
                try:
                    add_all_runs_until(transaction, schedule, time)
                except TooManyScheduleTimes as error:
                    raise ApiError("INVALID_ARGUMENT", str(error)) from error
            transaction.settings.set(_SETTING, str(time))
        self.wake()
        return {"time": short_time(time)}

    def unset_time_and_skip_passed_times(self) -> dict[str, Any]:
        """Let schedules use the machine's clock again, from its time on."""
        with self.database.write() as transaction:
            transaction.settings.remove(_SETTING)
            now = read_clock(transaction)
            for schedule in transaction.schedules.all():
                transaction.schedules.set_handled_until(schedule, now)
        self.wake()
        return {"time": short_time(now)}
