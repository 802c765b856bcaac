"""The replicas behind a job: its own, those of its running trials, or those of a pipeline's job."""

from collections.abc import Iterator
from typing import Any

from vertex_api.names import HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError, ExecutorUnavailable
from vertex_emulator.replicas.executor_protocol import Executor


def get_job_state_and_replicas(database: Database, executor: Executor, job_id: str) -> dict[str, Any]:
    """Return `name` and `state` of a job, and its `replicas`, for commands that use its containers.

    A replica has the custom `job` that it belongs to, the number of its `trial` or None, its `task`, and its
    `container` if that runs, else None. Trials that have ended are not among them. Raises ApiError.
    """
    with database.read() as transaction:
        job = transaction.jobs.get(job_id)
        if job is None:
            raise ApiError("NOT_FOUND", f"There is no job {job_id} here.")
        custom_jobs = list(_iterate_own_backing_or_unfinished_trial_jobs(transaction, job))
    try:
        replicas = [
            each
            for custom_job in custom_jobs
            for each in _iterate_serialized_replicas_with_containers(executor, custom_job)
        ]
    except ExecutorUnavailable as error:
        raise ApiError("UNAVAILABLE", str(error)) from error
    return {"name": job.name, "state": job.state, "replicas": replicas}


def _iterate_own_backing_or_unfinished_trial_jobs(transaction: Transaction, job: Job) -> Iterator[Job]:
    progress = transaction.pipelines.get(job.id)
    backing = transaction.jobs.get(progress.job) if progress is not None else None
    job = backing or job
    if job.kind == HYPERPARAMETER_TUNING_JOB:
        yield from transaction.jobs.running_trials(job.id).values()
    else:
        yield job


def _iterate_serialized_replicas_with_containers(executor: Executor, job: Job) -> Iterator[dict[str, Any]]:
    statuses = {} if job.is_terminal else executor.get_replica_statuses(job.id)
    for replica in job.current_replicas:
        status = statuses.get(replica)
        is_running = status is not None and status.phase == "running"
        container = executor.get_container_name(job.id, replica) if is_running else None
        yield {"job": job.id, "trial": job.trial, "task": replica.task_name, "container": container}
