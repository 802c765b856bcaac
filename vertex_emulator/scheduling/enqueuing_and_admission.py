"""The queue of jobs: how a client's or a pipeline's job enters it, and which jobs leave it next (admission)."""

from collections.abc import Iterable, Mapping
from typing import Any

from vertex_api.jobspec import with_boot_disks
from vertex_api.names import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_emulator.database import Transaction
from vertex_emulator.database.jobs import LAUNCH_TEXTS, PROVISIONING_TEXTS, QueuedJob
from vertex_emulator.database.records import PENDING, Job
from vertex_emulator.names import Location
from vertex_emulator.scheduling.unsupported_fields import render_approximation_warnings


def enqueue_job(
    transaction: Transaction,
    job_id: str,
    kind: Kind,
    location: Location,
    spec: Mapping[str, Any],
    warnings: Iterable[str] = (),
) -> Job:
    """Add a job to the queue and log its first messages: a warning per approximated field, then `warnings`.

    As on the service, the job has boot disks from now on.
    """
    if kind != TRAINING_PIPELINE:
        spec = {**spec, kind.spec_field: with_boot_disks(spec[kind.spec_field])}
    job = transaction.jobs.add(job_id, kind, location, spec)
    transaction.jobs.log(job_id, "Waiting for job to be provisioned.")
    if kind == HYPERPARAMETER_TUNING_JOB:
        transaction.jobs.log(job_id, "Vertex AI is setting up this job.")
    notes = render_approximation_warnings(kind, spec) if kind != TRAINING_PIPELINE else []
    for text in [*notes, *warnings]:
        transaction.jobs.log(job_id, text, "WARNING")
    return job


def admit_jobs_and_get_ids(transaction: Transaction, capacity: int) -> list[str]:
    """Let the jobs out of the queue for which there is room; return their ids.

    `capacity` is the maximum number of running replicas.
    """
    admitted = select_admissible_jobs(
        transaction.queue.candidates(capacity),
        transaction.queue.occupied(),
        capacity,
    )
    for queued_job in admitted:
        job = transaction.jobs.get(queued_job.id)
        assert job is not None
        transaction.queue.record_admission(job)
        transaction.jobs.update(job, state=PENDING)
        for text in (*PROVISIONING_TEXTS, *LAUNCH_TEXTS):
            transaction.jobs.log(job.id, text)
    return [queued_job.id for queued_job in admitted]


def select_admissible_jobs(
    queued_jobs: Iterable[QueuedJob], running_replicas_by_owner: Mapping[str, int], capacity: int
) -> list[QueuedJob]:
    """Return the queued jobs to start now, in order; `capacity` is the maximum number of running replicas.

    A study with all its trials is one owner, and so is each other job. The owner with the fewest running replicas comes
    first. Among equals it is the one that has waited longest: a job since its creation, a study since its last trial
    left the queue. No job overtakes: if the first job does not fit, its room is reserved for it. A job that is larger
    than the machine runs alone.

    So no job starves. While an owner runs nothing, only owners that have waited longer go before it, each study once.
    Neither a stream of small jobs nor the new trials of a study delay a large job.
    """
    remaining = list(queued_jobs)  # `min` returns the first of equal jobs, so their order is kept
    replicas_by_owner = dict(running_replicas_by_owner)
    admitted = []
    while remaining:
        job_to_admit = min(remaining, key=lambda job: (replicas_by_owner.get(job.owner, 0), job.since))
        total = sum(replicas_by_owner.values())
        if total and total + job_to_admit.slots > capacity:
            break
        remaining.remove(job_to_admit)
        replicas_by_owner[job_to_admit.owner] = replicas_by_owner.get(job_to_admit.owner, 0) + job_to_admit.slots
        admitted.append(job_to_admit)
    return admitted
