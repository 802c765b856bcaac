"""The server side of the emulator's own command line: the methods that its commands call."""

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vertex_api.names import CUSTOM_JOB, TRAINING_PIPELINE
from vertex_emulator import event_files
from vertex_emulator.api.injected_request_faults import InjectedRequestFaults
from vertex_emulator.api.job_replica_listing import get_job_state_and_replicas
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import Job, requested_replicas
from vertex_emulator.errors import ApiError, DebuggerUnavailable, InvalidFault
from vertex_emulator.faults import MAX_PENDING_FAULTS, InjectedFault
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.pruning.job_pruning import prune_jobs_and_get_report
from vertex_emulator.replicas.debugpy_injection import require_debugpy_folder
from vertex_emulator.replicas.executor_protocol import Executor
from vertex_emulator.schedules.schedules_clock import is_clock_set, read_clock
from vertex_emulator.times import now_ns, short_time


@dataclass(frozen=True)
class CliBackendService:
    """The methods behind `status`, `stop`, `logs`, `shell`, `tensorboard`, `inject` and `prune`.

    `capacity` is in replicas; `wake` tells the scheduler that the job with an id has changed.
    """

    database: Database
    executor: Executor
    data: DataFolder
    capacity: int
    request_faults: InjectedRequestFaults
    wake: Callable[[str], None]

    def get_emulator_status(self) -> dict[str, Any]:
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
            "network": self.executor.describe_reachable_networks(),
            "schedules": {"active": schedules.get(False, 0), "paused": schedules.get(True, 0), "clock": clock},
            "faults": [{"remaining": count, "fault": fault.to_json()} for count, fault in faults],
        }

    def get_job_state_and_log_source(self, job_id: str) -> dict[str, Any]:
        """Return `name`, `state` and `error` of a job, and whose `log` to read.

        That is `job`, `trial` or None, the names of its `tasks`, and `maxTrial` (0 without trials). A trial's job logs
        to its study, and a pipeline to its job; before it has one, `tasks` and `maxTrial` are None. Raises ApiError
        NOT_FOUND.
        """
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
            progress = transaction.pipelines.get(job_id)
            if job is None:
                raise ApiError("NOT_FOUND", f"There is no job {job_id} here.")
            logged_id = progress.job if progress else job.owner[1]
            logged_job = transaction.jobs.get(logged_id)
            if logged_job is not None and logged_job.kind == TRAINING_PIPELINE:
                logged_job = None  # its job does not exist yet
        error = job.ending.message if job.is_terminal and job.ending else ""
        log = {
            "job": logged_id,
            "trial": job.trial,
            "tasks": None if logged_job is None else _list_task_names_in_log(logged_job),
            "maxTrial": None if logged_job is None else int(logged_job.spec.get("maxTrialCount", 0)),
        }
        return {"name": job.name, "state": job.state, "error": error, "log": log}

    def get_job_state_and_replicas(self, job_id: str) -> dict[str, Any]:
        """Return the replicas behind a job, see `get_job_state_and_replicas`. Raises ApiError."""
        return get_job_state_and_replicas(self.database, self.executor, job_id)

    def get_job_name_and_event_file_folders(self, job_id: str) -> dict[str, Any]:
        """Return the `name` of a job and its `folders` of event files: `name`, `uri`, local `path`, `hasEventFiles`.

        A study has one for each trial, with the trial's name. Raises ApiError NOT_FOUND.
        """
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
            if job is None:
                raise ApiError("NOT_FOUND", f"There is no job {job_id} here.")
            folders = event_files.log_folders(transaction, job)
        tree = BucketTree(self.data.buckets)
        return {
            "name": job.name,
            "folders": [
                {
                    "name": folder.name,
                    "uri": folder.uri,
                    "path": str(tree.path(folder.uri)),
                    "hasEventFiles": bool(event_files.find(tree, folder.uri)),
                }
                for folder in folders
            ],
        }

    def stop_emulator(self) -> dict[str, Any]:
        """Stop this process in order, as SIGTERM does."""
        os.kill(os.getpid(), signal.SIGTERM)
        return {}

    def prune_jobs(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Remove the jobs that ended more than `ageSeconds` ago, and return what was `removed`. Raises ApiError.

        With `outputs`, their output folders are removed too; with `dryRun`, nothing is.
        """
        age = body.get("ageSeconds")
        if type(age) is not int or not 0 <= age < 1 << 40:
            raise ApiError("INVALID_ARGUMENT", f"ageSeconds is {age!r}; it must be a number of seconds")
        is_dry_run = bool(body.get("dryRun", False))
        before = now_ns() - age * 10**9
        outputs = bool(body.get("outputs", False))
        report = prune_jobs_and_get_report(self.database, self.data, before, outputs, is_dry_run, self.wake)
        return {"removed": asdict(report)}

    def clear_faults(self) -> dict[str, Any]:
        """Delete all pending faults; return how many there were."""
        with self.database.write() as transaction:
            cleared = transaction.faults.clear()
        self.request_faults.reload_from_database()
        return {"cleared": cleared}

    def inject_fault(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add a fault for jobs and requests to come, unless too many are pending. Raises ApiError."""
        try:
            fault = InjectedFault.parse(body)
            if fault.kind == "debug":
                require_debugpy_folder()
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
        self.request_faults.reload_from_database()
        return {"fault": fault.to_json()}


def _list_task_names_in_log(job: Job) -> list[str]:
    """List the tasks that write to the log of a custom job or a study."""
    replicas = requested_replicas(CUSTOM_JOB, {"jobSpec": job.spec.get("jobSpec") or job.spec["trialJobSpec"]})
    return ["service", *(replica.task_name for replica in replicas)]
