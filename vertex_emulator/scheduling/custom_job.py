"""The reconciler of custom jobs: it takes a job from PENDING to its end.

Each step compares the database with the containers, does what is missing, and can be repeated: after a crash in the
middle of a step, the next process takes the same step again.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.jobs import LAUNCH_TEXTS
from vertex_emulator.database.records import FAILED, PENDING, QUEUED, RUNNING, SUCCEEDED, Ending, Job, Replica
from vertex_emulator.errors import ImageUnavailable, ReplicaCannotStart
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.replicas import logs, size, spec
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.replicas.logs import LogLine, SavedLog
from vertex_emulator.replicas.spec import Home
from vertex_emulator.scheduling import failures, findings, outcome
from vertex_emulator.scheduling.meter import Meter
from vertex_emulator.scheduling.outcome import PRIMARY, Restart, SecondStart, Statuses
from vertex_emulator.times import now_ns

STOP_GRACE_SECONDS = 5.0
_KILL_RETRY_SECONDS = 1.0
_SAVE_RETRY_SECONDS = 5.0
_LAST_WORDS_NS = 10**9
"""Before its end, a program says what it has not found."""
_log = logging.getLogger("vertex_emulator.jobs")


@dataclass(frozen=True)
class Hooks:
    """What a job's containers get from other parts of the emulator.

    `home` returns how they find Google's services; `open_debug_ports` and
    `close_debug_ports` (by the job's id) are called when debugged replicas have started, and when a job has ended.
    """

    home: Callable[[Job], Home] = lambda _job: Home()
    open_debug_ports: Callable[[Job], None] = lambda _job: None
    close_debug_ports: Callable[[str], None] = lambda _job_id: None


@dataclass(frozen=True)
class Reconciler:
    """Advances custom jobs; `wake` schedules a step for another job."""

    database: Database
    executor: Executor
    data: DataFolder
    wake: Callable[[str], None]
    hooks: Hooks
    meter: Meter
    _signalled: set[tuple[str, Replica]] = field(default_factory=set)

    def advance(self, job: Job) -> float | None:
        """Take the next step; return after how many seconds to take another, or None to wait for a change."""
        if job.is_terminal:
            return self._clean_up(job)
        if job.ending is not None:
            return self._stop(job, job.ending, self.executor.statuses(job.id))
        if job.state == QUEUED:
            return self._wait_in_queue(job)
        if job.state == PENDING or job.restarts.restarting_since is not None:
            return self._launch(job)
        return self._watch(job)

    def _wait_in_queue(self, job: Job) -> float | None:
        deadline = outcome.queue_deadline(job)
        if deadline is None or now_ns() < deadline:
            return None if deadline is None else (deadline - now_ns()) / 10**9
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is not None and current.state == QUEUED:
                transaction.jobs.end(current, failures.stockout(job, now_ns()))
        return None

    def _launch(self, job: Job) -> float | None:
        """Start the replicas at their current attempts, once all earlier attempts have ended."""
        stockout = outcome.stockout_time(job)
        if stockout is not None:
            if now_ns() < stockout:
                return (stockout - now_ns()) / 10**9
            return self._end(job, failures.stockout(job, now_ns()))

        restarting_since = job.restarts.restarting_since
        if restarting_since is not None:
            statuses = self.executor.statuses(job.id)
            ending = outcome.timeout(job, now_ns())
            if ending is not None:
                return self._end(job, ending, statuses)
            earlier_attempts = outcome.running(statuses) - set(job.current_replicas)
            delay = self._signal(job, earlier_attempts, restarting_since)
            if delay is not None:
                return delay
        return self._start(job)

    def _start(self, job: Job) -> float | None:
        """Start the replicas, or end the job if one of them cannot start."""
        image, replica = "", PRIMARY
        try:
            host, metric_id = self.executor.host(), self._first_metric(job)
            home = self.hooks.home(job)

            images = set[str]()
            # Specs are checked first and built again to start: together, those of a hundred replicas fill the memory.
            for replica in job.current_replicas:
                images.add(spec.build(job, replica, self.data, host, metric_id, home).image)
            for image in sorted(images):
                if not self.executor.ensure_image(job.id, image):
                    return None

            for replica in job.current_replicas:
                self.executor.start(spec.build(job, replica, self.data, host, metric_id, home))
            self.hooks.open_debug_ports(job)
        except ImageUnavailable as error:
            return self._end(job, failures.image_unavailable(job, image, str(error), now_ns()))
        except ReplicaCannotStart as error:
            return self._end(job, failures.not_started(job, replica, str(error), now_ns()))

        self._record_running(job, host, home.note)
        self.meter.follow(job.id, job.current_replicas)
        if job.study is not None:
            self.wake(job.study)
        # The executor reports each exit, also one before this moment.
        return 0.0 if job.fault is not None else (outcome.deadline(job) - now_ns()) / 10**9

    def _record_running(self, job: Job, host: size.Host, note: str) -> None:
        """Record that the replicas run, unless the job has been ended meanwhile."""
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is not None and current.ending is None and not current.is_terminal:
                if current.state == PENDING:
                    transaction.jobs.log(job.id, "Job is running.")
                if current.started is None:
                    for text in (
                        *size.warnings(job.spec["jobSpec"]["workerPoolSpecs"], host),
                        *filter(None, [note]),
                    ):
                        transaction.jobs.log(job.id, text, "WARNING")
                restarts = replace(current.restarts, restarting_since=None)
                started = current.started or now_ns()
                transaction.jobs.update(current, state=RUNNING, started=started, restarts=restarts)

    def _first_metric(self, job: Job) -> str | None:
        if job.study is None:
            return None
        with self.database.read() as transaction:
            study = transaction.jobs.get(job.study)
        return study.spec["studySpec"]["metrics"][0]["metricId"] if study is not None else None

    def _watch(self, job: Job) -> float | None:
        """End or restart a running job, if its replicas' statuses say so."""
        now = now_ns()
        statuses = self.executor.statuses(job.id)

        def read_traceback(replica: Replica) -> str:
            lines = self.executor.read_log(job.id, replica)
            return failures.last_traceback(line.text for line in lines if line.stream == "e")

        decided = outcome.decide(job, statuses, now, read_traceback)
        if isinstance(decided, SecondStart):
            if self.executor.restart(job.id, decided.replica):
                return 0.0
            decided = decided.ending_if_impossible
        if isinstance(decided, Ending):
            return self._end(job, decided, statuses)
        if isinstance(decided, Restart):
            self._restart(job, decided)
            return None
        self.meter.follow(job.id, outcome.running(statuses))  # of replicas that an earlier process has started
        deadline = outcome.deadline(job)
        fault_time = outcome.next_fault_time(job, statuses)
        return (min(deadline, fault_time or deadline) - now) / 10**9

    def _restart(self, job: Job, restart: Restart) -> None:
        """Record a restart, unless the job has changed since it was decided."""
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is None or current.ending is not None or current.restarts != job.restarts:
                return
            transaction.jobs.log(job.id, restart.log_message, "WARNING")
            if restart.whole_job:
                for text in LAUNCH_TEXTS:
                    transaction.jobs.log(job.id, text)
            state = PENDING if restart.whole_job else RUNNING
            transaction.jobs.update(current, state=state, restarts=restart.history)
        self.wake(job.id)

    def _end(self, job: Job, ending: Ending, statuses: Statuses | None = None) -> float | None:
        """Record an ending, if replicas have to be stopped first, and stop them."""
        statuses = self.executor.statuses(job.id) if statuses is None else statuses
        if outcome.running(statuses):
            recorded = self.record_ending(job, ending)
            if recorded is None:
                return None
            ending = recorded
        return self._stop(job, ending, statuses)

    def record_ending(self, job: Job, ending: Ending) -> Ending | None:
        """Record how a job ends unless that is recorded already; return its ending, None if it ended or is deleted."""
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is None or current.is_terminal:
                return None
            return current.ending or transaction.jobs.update(current, ending=ending).ending

    def _stop(self, job: Job, ending: Ending, statuses: Statuses) -> float | None:
        """Stop the replicas; end the job once none runs."""
        delay = self._signal(job, outcome.running(statuses), ending.at)
        if delay is not None:
            return delay
        used = self.meter.finish(job, statuses)
        found = [*self._findings(job, ending, statuses)]
        with self.database.write() as transaction:
            current = transaction.jobs.get(job.id)
            if current is not None and not current.is_terminal:
                transaction.usage.put(job.id, used)
                for text in found:
                    transaction.jobs.log(job.id, text, "WARNING")
                replicas = [{**asdict(replica), **asdict(status)} for replica, status in sorted(statuses.items())]
                transaction.jobs.end(current, current.ending or ending, replica_outcomes=replicas)
        # Other jobs may start now; the next step saves the logs and removes the containers.
        self.wake(job.id)
        if job.study is not None:
            self.wake(job.study)
        return None

    def _findings(self, job: Job, ending: Ending, statuses: Statuses) -> Iterator[str]:
        """Yield what the containers tell beyond their exit codes: of a failure, or of what a success has lost.

        Trials of a study are alike, and the first speaks for all.
        """
        current = [(replica, status) for replica, status in sorted(statuses.items()) if replica in job.current_replicas]
        if ending.state == SUCCEEDED:
            yield from findings.missed_fault(job, (ending.at - (job.started or ending.at)) / 10**9)
        if ending.state == SUCCEEDED and job.trial in (None, 1):
            yield from findings.unlike_storage(job, BucketTree(self.data.buckets))
            for replica, _ in current:
                # The first replica of a pool saves models.
                if replica.index == 0 and (remains := self.executor.remains(job.id, replica)):
                    yield from findings.lost_outputs(job, replica, remains)
                    yield from findings.ignored_args(replica, remains)
        elif ending.state == FAILED:
            # One that could not start has an exit code too, and neither an end nor a log.
            failed = next((each for each in current if each[1].finished and each[1].exit_code), None)
            if failed is not None:
                replica, status = failed
                lines = self.executor.read_log(job.id, replica, (status.finished or 0) - _LAST_WORDS_NS)
                texts = [line.text for line in lines]
                yield from findings.missing_code(texts, lambda: self.executor.remains(job.id, replica))
                yield from findings.missing_bucket(texts, BucketTree(self.data.buckets))

    def _signal(self, job: Job, running: set[Replica], stopping_since: int) -> float | None:
        """Signal replicas: SIGTERM, or SIGKILL after the grace period from `stopping_since` (ns); return the delay."""
        remaining = STOP_GRACE_SECONDS - (now_ns() - stopping_since) / 10**9
        for replica in running:
            if remaining <= 0:
                self.executor.signal(job.id, replica, "SIGKILL")
            elif (job.id, replica) not in self._signalled:
                self.executor.signal(job.id, replica, "SIGTERM")
                self._signalled.add((job.id, replica))
        if not running:
            return None
        return remaining if remaining > 0 else _KILL_RETRY_SECONDS

    def _clean_up(self, job: Job) -> float | None:
        """Save the logs of an ended job, then remove its containers. On a full disk they stay until then."""
        self.hooks.close_debug_ports(job.id)
        for ended in job.replica_outcomes:
            replica = Replica(ended["pool"], ended["index"], ended["attempt"])
            self._signalled.discard((job.id, replica))
            saved = SavedLog(self.data.logs, job.id, replica)
            if not saved.exists:
                try:
                    saved.save(self._read_whole_log(job, replica))
                except OSError as error:
                    _log.warning("the log of %s of job %s cannot be saved yet: %s", replica.task_name, job.id, error)
                    return _SAVE_RETRY_SECONDS
        self.executor.remove(job.id)
        return None

    def _read_whole_log(self, job: Job, replica: Replica) -> Iterator[LogLine]:
        """Read a replica's log; if it reached its limit, say so in the job's log, as lines may have been dropped."""
        counter = logs.SizeCounter()
        yield from counter.count(self.executor.read_log(job.id, replica))
        if counter.bytes < logs.MIN_LIMIT_BYTES:
            return
        limit = self.executor.log_limit(job.id, replica)
        if limit is not None and counter.bytes >= limit:
            with self.database.write() as transaction:
                transaction.jobs.log(job.id, logs.limit_warning(replica.task_name, limit), "WARNING")
