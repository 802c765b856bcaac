"""The emulator's own methods, which its command line calls."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_emulator import event_files, usage
from vertex_emulator.api.faults import RequestFaults
from vertex_emulator.api.schedule_loop import is_clock_set, read_clock
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import RUNNING, Job, requested_replicas
from vertex_emulator.errors import ApiError, DebuggerUnavailable, ExecutorUnavailable, InvalidFault, JobAmbiguous
from vertex_emulator.faults import MAX_PENDING_FAULTS, InjectedFault
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.inside.permissions import Permissions, described
from vertex_emulator.pruning import prune_jobs
from vertex_emulator.replicas import debugger
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.times import now_ns, short_time

STRIKES = ("preempt", "oom", "restart")
_MAX_KNOWN = 1000
"""Faults that hit a job that runs already."""


@dataclass(frozen=True)
class EmulatorService:
    """The methods behind `status`, `stop`, `logs`, `shell`, `tensorboard`, `inject` and `prune`.

    `capacity` is in replicas; `wake` tells the scheduler that the job with an id has changed. A `reference` to a job is
    what `Jobs.find` takes.
    """

    database: Database
    executor: Executor
    data: DataFolder
    capacity: int
    faults: RequestFaults
    wake: Callable[[str], None]
    permissions: Permissions
    _remembered: list[tuple[int, usage.State]] = field(default_factory=list)

    def status(self) -> dict[str, Any]:
        """Return job counts by state (without jobs of trials), replicas, what they reach, schedules, and faults."""
        with self.database.read() as transaction:
            counts = transaction.jobs.count_by_state()
            active = len(transaction.jobs.unfinished())
            slots = sum(transaction.queue.occupied().values())
            faults = transaction.faults.pending()
            schedules = transaction.schedules.count_by_paused()
            clock = short_time(read_clock(transaction)) if is_clock_set(transaction) else None
        return {
            "data": str(self.data.root),
            "jobs": counts,
            "unfinished": active,
            "replicas": {"running": slots, "capacity": self.capacity},
            "network": self.executor.describe_networks(),
            "obstacle": self.executor.obstacle,
            "schedules": {"active": schedules.get(False, 0), "paused": schedules.get(True, 0), "clock": clock},
            "faults": [{"remaining": count, "fault": fault.to_json()} for count, fault in faults],
        }

    def stop(self) -> dict[str, Any]:
        """Stop this process in order, as SIGTERM does."""
        os.kill(os.getpid(), signal.SIGTERM)
        return {}

    def prune(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Remove the jobs that ended more than `ageSeconds` ago, and return what was `removed`. Raises ApiError.

        With `outputs`, their output folders are removed too; with `dryRun`, nothing is.
        """
        age = body.get("ageSeconds")
        if type(age) is not int or not 0 <= age < 1 << 40:
            raise ApiError("INVALID_ARGUMENT", f"ageSeconds is {age!r}; it must be a number of seconds")
        is_dry_run = bool(body.get("dryRun", False))
        before = now_ns() - age * 10**9
        outputs = bool(body.get("outputs", False))
        return {"removed": asdict(prune_jobs(self.database, self.data, before, outputs, is_dry_run, self.wake))}

    def inject(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add a fault for jobs and requests to come, unless too many are pending. Raises ApiError.

        `known` in the answer are names of jobs so far, if none of them is one that the fault would hit.
        """
        try:
            fault = InjectedFault.parse(body)
            if fault.kind == "debug":
                debugger.require_debugpy()
        except InvalidFault as error:
            raise ApiError("INVALID_ARGUMENT", str(error)) from error
        except DebuggerUnavailable as error:
            raise ApiError("FAILED_PRECONDITION", str(error)) from error
        with self.database.write() as transaction:
            # The creation of a job looks at all of them.
            if len(transaction.faults.pending()) >= MAX_PENDING_FAULTS:
                message = f"{MAX_PENDING_FAULTS} faults are pending, which is the most: remove them with --clear"
                raise ApiError("FAILED_PRECONDITION", message)
            transaction.faults.add(fault)
            known = transaction.jobs.display_names(_MAX_KNOWN) if fault.name != "*" else []
        self.faults.reload()
        return {"fault": fault.to_json(), "known": [] if any(map(fault.matches, known)) else known}

    def strike(self, reference: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Let a fault of a `kind` of STRIKES hit a running custom job, or that of a pipeline, at once. Raises ApiError.

        `oom` and `restart` kill its first replica without notice, for its memory or as if its machine were lost.
        """
        if (kind := body.get("kind")) not in STRIKES:
            raise ApiError("INVALID_ARGUMENT", f"kind is {kind!r}; it must be {', '.join(STRIKES)}")
        with self.database.read() as transaction:
            job = _require_job(transaction, reference)
            running = [each for each in usage.custom_jobs(transaction, job) if each.study is None]
        idle = ApiError("FAILED_PRECONDITION", f"{job.name} is no custom job or pipeline with a replica that runs")
        if not running or running[0].state != RUNNING:
            raise idle
        (struck,) = running
        first = struck.current_replicas[0]
        try:
            status = self.executor.statuses(struck.id).get(first)
            if status is None or status.phase != "running" or status.started is None:
                raise idle
            if kind != "restart":
                fault = InjectedFault(kind, after=max(now_ns() - status.started, 0) / 10**9)
                with self.database.write() as transaction:
                    transaction.jobs.update(_require_job(transaction, struck.id), fault=fault)
            if kind != "preempt":
                self.executor.signal(struck.id, first, "SIGKILL")
        except ExecutorUnavailable as error:
            raise ApiError("UNAVAILABLE", str(error)) from error
        self.wake(struck.id)
        return {}

    def clear_faults(self) -> dict[str, Any]:
        """Delete all pending faults; return how many there were, and those of them that had hit nothing."""
        with self.database.write() as transaction:
            missed = [fault.to_json() for remaining, fault in transaction.faults.pending() if remaining == fault.count]
            cleared = transaction.faults.clear()
        self.faults.reload()
        return {"cleared": cleared, "missed": missed}

    def job(self, reference: str) -> dict[str, Any]:
        """Return what `describe` does."""
        return describe(self.database, reference)

    def replicas(self, reference: str) -> dict[str, Any]:
        """Return `name` and `state` of a job, and its `replicas`, for commands that use its containers.

        They are its own, those of its running trials, or those of a pipeline's job. A replica has the custom `job` that
        it belongs to, the number of its `trial` or None, its `task`, and its `container` if that runs, else None.
        Raises ApiError.
        """
        with self.database.read() as transaction:
            job = _require_job(transaction, reference)
            custom_jobs = list(_custom_jobs(transaction, job))
        try:
            replicas = [replica for each in custom_jobs for replica in self._containers(each)]
        except ExecutorUnavailable as error:
            raise ApiError("UNAVAILABLE", str(error)) from error
        return {"name": job.name, "state": job.state, "replicas": replicas}

    def _containers(self, job: Job) -> Iterator[dict[str, Any]]:
        statuses = {} if job.is_terminal else self.executor.statuses(job.id)
        for replica in job.current_replicas:
            status = statuses.get(replica)
            is_running = status is not None and status.phase == "running"
            container = self.executor.container_name(job.id, replica) if is_running else None
            yield {"job": job.id, "trial": job.trial, "task": replica.task_name, "container": container}

    def remember(self) -> dict[str, Any]:
        """Remember what buckets have, for the `usage` of the jobs that are created next."""
        self._remembered[:] = [(now_ns(), usage.state(self.data.buckets))]
        return {}

    def usage(self, reference: str) -> dict[str, Any]:
        """Return the `name` of a job, what its `replicas` have used (see `usage.describe`), `buckets`, `permissions`.

        Buckets are those with files that were read or written while it ran, by whomever, and since what is remembered
        of them. What that needs of IAM is among the permissions. Raises ApiError NOT_FOUND.
        """
        with self.database.read() as transaction:
            job = _require_job(transaction, reference)
            each = [(custom, transaction.usage.of(custom.id)) for custom in usage.custom_jobs(transaction, job)]
        replicas = [replica for custom, used in each for replica in usage.describe(custom, used)]
        touched: dict[str, list[usage.Touch]] = {}
        if job.started is not None:
            before = next((state for at, state in self._remembered if at <= job.created), None)
            touched = usage.touched(self.data.buckets, job.started, job.ended or now_ns(), before)
        needs = self.permissions.of([custom for custom, _ in each], usage.permissions(touched))
        return {
            "name": job.name,
            "replicas": replicas,
            "buckets": sorted(touched),
            "permissions": [*described(needs)],
        }

    def log_folders(self, reference: str) -> dict[str, Any]:
        """Return the `name` of a job and its `folders` of event files: `name`, `uri`, local `path`, `hasEventFiles`.

        A study has one for each trial, with the trial's name. Raises ApiError NOT_FOUND.
        """
        with self.database.read() as transaction:
            job = _require_job(transaction, reference)
            folders = event_files.log_folders(transaction, job)
        return event_files.describe(BucketTree(self.data.buckets), job, folders)


def describe(database: Database, reference: str) -> dict[str, Any]:
    """Return `name`, `state` and `error` of a job, and whose `log` to read.

    That is `job`, `trial` or None, the names of its `tasks`, and `maxTrial` (0 without trials). A trial's job logs
    to its study, and a pipeline to its job; before it has one, `tasks` and `maxTrial` are None. Raises ApiError
    NOT_FOUND.
    """
    with database.read() as transaction:
        job = _require_job(transaction, reference)
        progress = transaction.pipelines.get(job.id)
        logged_id = progress.job if progress else job.owner[1]
        logged = transaction.jobs.get(logged_id)
    if logged is not None and logged.kind == TRAINING_PIPELINE:
        logged = None  # its job does not exist yet
    log = {
        "job": logged_id,
        "trial": job.trial,
        "tasks": None if logged is None else _logging_tasks(logged),
        "maxTrial": None if logged is None else int(logged.spec.get("maxTrialCount", 0)),
    }
    error = job.ending.message if job.is_terminal and job.ending else ""
    return {"name": job.name, "state": job.state, "error": error, "log": log}


def _require_job(transaction: Transaction, reference: str) -> Job:
    try:
        job = transaction.jobs.find(reference)
    except JobAmbiguous as error:
        raise ApiError("FAILED_PRECONDITION", str(error)) from error
    if job is None:
        raise ApiError(
            "NOT_FOUND",
            f"There is no job {reference} here. One that was deleted, replaced or pruned is gone with its log, and "
            "those of `vertex-training run` and `rehearse` are gone with their run.",
        )
    return job


def _logging_tasks(job: Job) -> list[str]:
    """Return the tasks that write to the log of a custom job or a study."""
    replicas = requested_replicas(CUSTOM_JOB, {"jobSpec": job.spec.get("jobSpec") or job.spec["trialJobSpec"]})
    return ["service", *(replica.task_name for replica in replicas)]


def _custom_jobs(transaction: Transaction, job: Job) -> Iterator[Job]:
    """Yield the jobs whose replicas run for a job: itself, the job of a pipeline, or those of unfinished trials."""
    progress = transaction.pipelines.get(job.id)
    backing = transaction.jobs.get(progress.job) if progress is not None else None
    job = backing or job
    if job.kind == HYPERPARAMETER_TUNING_JOB:
        yield from transaction.jobs.running_trials(job.id).values()
    else:
        yield job
