"""The loop of schedules: it begins runs at their times, and submits their jobs, each once, whenever it is killed.

It is level-triggered, like the scheduler of jobs: a change only wakes it, and what is to do is in the database. Without
schedules it has no thread; with some, its thread sleeps until the next time or a change.
"""

import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from secrets import token_hex
from typing import Any

from vertex_api.job import TUNING_JOB, job_results
from vertex_api.names import KINDS, SUCCEEDED_STATES, ResourceName, short_state
from vertex_api.pipelines import backing_job_name
from vertex_api.schedules import ScheduledJob
from vertex_emulator.api.jobs import JobService
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Job, RunState, Schedule, ScheduleRun, SubmittedJob
from vertex_emulator.errors import ApiError, ScheduleRunEnded
from vertex_emulator.names import Location
from vertex_emulator.times import now_ns, short_time

_MAX_SLEEP_SECONDS = 30.0
"""A machine that sleeps stops timers, and its clock may be set: so the time is looked at again after this long."""
_RETRY_NS = 10 * 10**9
_RESULTS = ("name", "backingJob", "model", "modelDir", "bestTrial")
"""The results that other jobs can refer to: `Job.result_names` lists them."""
_log = logging.getLogger("vertex_emulator.schedules")


class ScheduleLoop:
    """Runs the schedules of a database by the API's methods on jobs."""

    def __init__(self, database: Database, jobs: JobService) -> None:
        self._database = database
        self._runner = _Runner(database, jobs)
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._awaited: frozenset[str] | None = None  # ids of jobs; None: each job

    def start(self) -> None:
        """Start the thread if there are schedules, and it does not run."""
        with self._database.read() as transaction:
            has_schedules = bool(transaction.schedules.count_by_paused())
        with self._starting:
            if has_schedules and self._thread is None:
                self._database.changes.listen(self._wake_for)
                self._thread = threading.Thread(target=self._run, daemon=True, name="schedules")
                self._thread.start()

    def wake(self) -> None:
        """Look at all schedules again, because they, their runs or their clock have changed."""
        self.start()
        self._changed.set()

    def stop(self, timeout: float) -> None:
        """Stop the thread, waiting at most `timeout` seconds for what it is doing."""
        self._stopping.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _wake_for(self, job_ids: frozenset[str]) -> None:
        if self._awaited is None or job_ids & self._awaited:
            self._changed.set()

    def _run(self) -> None:
        while True:
            self._changed.clear()  # before the look at what may have changed, or `stop` could be missed
            if self._stopping.is_set():
                return
            try:
                until = self.advance()
            except Exception:  # noqa: BLE001 - a full disk may have room later
                if self._stopping.is_set():
                    return  # the database may be closed already
                _log.exception("schedules cannot be looked at; they are looked at again")
                until = now_ns() + _RETRY_NS
            self._sleep(until)

    def _sleep(self, until: int | None) -> None:
        """Sleep until a time (ns since 1970) or a change."""
        while not self._changed.is_set() and (until is None or now_ns() < until):
            self._changed.wait(None if until is None else min((until - now_ns()) / 10**9, _MAX_SLEEP_SECONDS))

    def advance(self) -> int | None:
        """Do what is to do now; return when there is more to do, in ns since 1970, None after changes only."""
        self._awaited = None  # whichever job ends while the runs are looked at, they are looked at again
        awaited, is_complete = self._advance_runs()
        if self._begin_due():
            awaited, is_complete = self._advance_runs()
        self._awaited = awaited
        with self._database.read() as transaction:
            schedules = [] if is_clock_set(transaction) else transaction.schedules.all()
        times = [time for schedule in schedules if (time := next_time(schedule)) is not None]
        return min([*times, *([] if is_complete else [now_ns() + _RETRY_NS])], default=None)

    def _advance_runs(self) -> tuple[frozenset[str], bool]:
        """Advance all runs; return the ids of the jobs that they wait for, and whether no run raised an error."""
        awaited, is_complete = set[str](), True
        with self._database.read() as transaction:
            sequences = [run.sequence for run in transaction.schedules.unfinished_runs()]
        for sequence in sequences:
            try:
                job_id = self._runner.advance(sequence)
            except Exception:  # noqa: BLE001 - an error of one run must not stop the others
                _log.exception("a run of a schedule cannot go on; it is tried again")
                is_complete = False
            else:
                awaited |= {job_id} if job_id else set()
        return frozenset(awaited), is_complete

    def _begin_due(self) -> bool:
        """Begin the runs that are due; return whether there were any."""
        with self._database.read() as transaction:
            now, schedules = read_clock(transaction), transaction.schedules.all()
        is_due = any((time := next_time(schedule)) is not None and time <= now for schedule in schedules)
        if is_due:
            with self._database.write() as transaction:
                now = read_clock(transaction)
                for schedule in transaction.schedules.all():
                    begin_due(transaction, schedule, now)
        return is_due


@dataclass(frozen=True)
class _Runner:
    """Advances runs: their jobs are submitted one after another, as the ones before succeed.

    A job and its record in the run are stored in one transaction, so each is submitted once.
    """

    database: Database
    jobs: JobService

    def advance(self, run_sequence: int) -> str | None:
        """Submit what a run can submit; return the id of the job that it then waits for, None if it has ended."""
        while True:
            with self.database.read() as transaction:
                run = transaction.schedules.get_run(run_sequence)
                schedule = None if run is None else transaction.schedules.of_run(run)
            if run is None or schedule is None or run.state != "RUNNING":
                return None
            submitted = run.submitted
            succeeded = {name for name, job in submitted.items() if job.has_succeeded}
            job = next((job for job in run.jobs if job.name not in succeeded), None)
            if job is None:
                self._end(run, "SUCCEEDED")
            elif job.name not in submitted:
                self._submit(schedule, run, job)
            elif awaited := self._follow(run, job.name):
                return awaited

    def _submit(self, schedule: Schedule, run: ScheduleRun, job: ScheduledJob) -> None:
        # Imported here, as all that only an emulator with schedules needs.
        from vertex_api.schedules import fill_results, fill_run_id, result_references

        def record(transaction: Transaction, created: Job) -> None:
            current = transaction.schedules.get_run(run.sequence)
            if current is None or current.state != "RUNNING" or job.name in current.submitted:
                raise ScheduleRunEnded(f"the run {run.run_id} needs no {job.name} any more")
            transaction.schedules.set_submitted(current, job.name, SubmittedJob(created.name))

        try:
            body = fill_run_id(job.body, run.run_id)
            if result_references(body):
                body = fill_results(body, self._values(run))
            if missing := result_references(body):
                names = ", ".join(f"${{jobs.{name}}}" for name in missing)
                self._end(run, "FAILED", f"{job.name} was not submitted: there is no {names}")
                return
            self.jobs.create(KINDS[job.collection], schedule.location, body, record, job.allow)
        except ApiError as error:
            self._end(run, "FAILED", f"{job.name} was not submitted: {error.message.strip()}")
        except ScheduleRunEnded as error:
            _log.info("%s", error)

    def _follow(self, run: ScheduleRun, name: str) -> str | None:
        """Store how a submitted job of a run has ended; return its id if it has not."""
        submitted = run.submitted[name]
        job_id = ResourceName.parse(submitted.resource_name).id
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
        if job is None:
            self._end(run, "FAILED", f"{name} was deleted")
        elif not job.is_terminal:
            return job_id
        elif job.state not in SUCCEEDED_STATES:
            message = f": {job.ending.message}" if job.ending and job.ending.message else ""
            self._end(run, "FAILED", f"{name} is {short_state(job.state)}{message}")
        else:
            model_dir = self._results(submitted.resource_name).get("modelDir")
            with self.database.write() as transaction:
                ended = replace(submitted, has_succeeded=True, model_dir=model_dir)
                transaction.schedules.set_submitted(run, name, ended)
        return None

    def _end(self, run: ScheduleRun, state: RunState, reason: str | None = None) -> None:
        with self.database.write() as transaction:
            transaction.schedules.end_run(run, state, reason)
        if reason:
            _log.warning("the run %s has failed: %s", run.run_id, reason)

    def _values(self, run: ScheduleRun) -> dict[str, Any]:
        """Return the results of a run's jobs so far by `NAME.RESULT`, as in `${jobs.tune.bestTrial.parameters.lr}`.

        Raises ApiError if one of the jobs is gone.
        """
        return {
            f"{name}.{path}": value
            for name, job in run.submitted.items()
            for path, value in _flatten(self._results(job.resource_name))
        }

    def _results(self, resource_name: str) -> dict[str, Any]:
        """Return the results of a job. Raises ApiError if it is gone."""
        job = self._get(resource_name)
        backing_name = backing_job_name(job)
        backing_job = self._get(backing_name) if backing_name else {}
        complete_job = {**job, TUNING_JOB: backing_job} if "studySpec" in backing_job else job
        return {"name": resource_name, **job_results(complete_job)}

    def _get(self, resource_name: str) -> Mapping[str, Any]:
        name = ResourceName.parse(resource_name)
        return self.jobs.get(name.kind, Location(name.project, name.region), name.id)


def _flatten(results: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in _RESULTS:
        value = results.get(name)
        if name != "bestTrial":
            yield from [(name, value)] if value is not None else []
        elif value is not None:
            yield "bestTrial.id", value["id"]
            for table in ("parameters", "metrics"):
                yield from ((f"bestTrial.{table}.{key}", each) for key, each in value[table].items())


MAX_TIMES_AT_ONCE = 1000
CLOCK_SETTING = "schedules_clock"
_GRACE_NS = 60 * 10**9
"""How late a run may begin, so that a restart loses none: cron's unit of time."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
