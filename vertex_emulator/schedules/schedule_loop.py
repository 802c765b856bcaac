"""The loop that begins the runs of schedules at their times, and submits their jobs.

It is level-triggered, like the scheduler of jobs: a change only wakes it, and what is to do is in the database. Without
schedules it has no thread; with some, its thread sleeps until the next time or a change.
"""

import logging
import threading

from vertex_emulator.database import Database
from vertex_emulator.schedules.due_runs import add_due_runs_and_skip_missed_times
from vertex_emulator.schedules.job_methods_protocol import JobMethods
from vertex_emulator.schedules.run_advancer import RunAdvancer
from vertex_emulator.schedules.schedule_times import get_next_time_or_none
from vertex_emulator.schedules.schedules_clock import is_clock_set, read_clock
from vertex_emulator.times import now_ns

_MAX_SLEEP_SECONDS = 30.0
"""A machine that sleeps stops timers, and its clock may be set: so the time is looked at again after this long."""
_RETRY_NS = 10 * 10**9
_log = logging.getLogger("vertex_emulator.schedules")


class ScheduleLoop:
    """Runs the schedules of a database by the API's methods on jobs."""

    def __init__(self, database: Database, jobs: JobMethods) -> None:
        self._database = database
        self._run_advancer = RunAdvancer(database, jobs)
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._awaited_job_ids: frozenset[str] | None = None  # None: each job

    def start_if_needed(self) -> None:
        """Start the thread if there are schedules."""
        with self._database.read() as transaction:
            has_schedules = bool(transaction.schedules.count_by_paused())
        with self._starting:
            if has_schedules and self._thread is None:
                self._database.changes.listen(self._wake_if_job_is_awaited)
                self._thread = threading.Thread(target=self._run_until_stopped, daemon=True, name="schedules")
                self._thread.start()

    def wake_or_start_if_needed(self) -> None:
        """Look at all schedules again, because they, their runs or their clock have changed."""
        self.start_if_needed()
        self._changed.set()

    def stop(self, timeout: float) -> None:
        """Stop the thread, waiting at most `timeout` seconds for what it is doing."""
        self._stopping.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def advance_and_get_next_time_or_none(self) -> int | None:
        """Do what is to do now; return when there is more to do, in ns since 1970, None after changes only."""
        self._awaited_job_ids = None  # whichever job ends while the runs are looked at, they are looked at again
        awaited, is_complete = self._advance_runs_and_get_awaited_ids_and_success()
        if self._add_due_runs_and_return_whether_any():
            awaited, is_complete = self._advance_runs_and_get_awaited_ids_and_success()
        self._awaited_job_ids = awaited
        with self._database.read() as transaction:
            schedules = [] if is_clock_set(transaction) else transaction.schedules.all()
        times = [time for schedule in schedules if (time := get_next_time_or_none(schedule)) is not None]
        return min([*times, *([] if is_complete else [now_ns() + _RETRY_NS])], default=None)

    def _advance_runs_and_get_awaited_ids_and_success(self) -> tuple[frozenset[str], bool]:
        """Advance all runs; return the ids of the jobs that they wait for, and whether no run raised an error."""
        awaited, is_complete = set[str](), True
        with self._database.read() as transaction:
            sequences = [run.sequence for run in transaction.schedules.unfinished_runs()]
        for sequence in sequences:
            try:
                job_id = self._run_advancer.advance_and_get_awaited_job_id_or_none(sequence)
            except Exception:  # noqa: BLE001 - an error of one run must not stop the others
                _log.exception("a run of a schedule cannot go on; it is tried again")
                is_complete = False
            else:
                awaited |= {job_id} if job_id else set()
        return frozenset(awaited), is_complete

    def _add_due_runs_and_return_whether_any(self) -> bool:
        with self._database.read() as transaction:
            now, schedules = read_clock(transaction), transaction.schedules.all()
        is_due = any((time := get_next_time_or_none(schedule)) is not None and time <= now for schedule in schedules)
        if is_due:
            with self._database.write() as transaction:
                now = read_clock(transaction)
                for schedule in transaction.schedules.all():
                    add_due_runs_and_skip_missed_times(transaction, schedule, now)
        return is_due

    def _wake_if_job_is_awaited(self, job_ids: frozenset[str]) -> None:
        if self._awaited_job_ids is None or job_ids & self._awaited_job_ids:
            self._changed.set()

    def _run_until_stopped(self) -> None:
        while True:
            self._changed.clear()  # before the look at what may have changed, or `stop` could be missed
            if self._stopping.is_set():
                return
            try:
                next_time = self.advance_and_get_next_time_or_none()
            except Exception:  # noqa: BLE001 - a full disk may have room later
                if self._stopping.is_set():
                    return  # the database may be closed already
                _log.exception("schedules cannot be looked at; they are looked at again")
                next_time = now_ns() + _RETRY_NS
            self._sleep_until_time_or_change(next_time)

    def _sleep_until_time_or_change(self, until: int | None) -> None:
        """Sleep until a time (ns since 1970) or a change."""
        while not self._changed.is_set() and (until is None or now_ns() < until):
            self._changed.wait(None if until is None else min((until - now_ns()) / 10**9, _MAX_SLEEP_SECONDS))
