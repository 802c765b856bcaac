"""The admission of jobs: which ones leave the queue next."""

from collections.abc import Iterable, Mapping

from vertex_emulator.database import Transaction
from vertex_emulator.database.job_queue_statements import QueuedJob
from vertex_emulator.database.records import PENDING
from vertex_emulator.database.service_log_texts import LAUNCH_TEXTS, PROVISIONING_TEXTS


def admit_jobs(transaction: Transaction, capacity: int) -> list[str]:
    """Let the jobs out of the queue for which there is room; return their ids.

    `capacity` is the maximum number of running replicas.
    """
    admitted = select_admissible_jobs(
        transaction.queue.list_admission_candidates(capacity),
        transaction.queue.count_admitted_replicas_by_study_or_job(),
        capacity,
    )
    for queued_job in admitted:
        job = transaction.get_job(queued_job.id)
        assert job is not None
        transaction.queue.store_admission_time_of_study_or_job(job)
        transaction.update_and_get_job(job, state=PENDING)
        for text in (*PROVISIONING_TEXTS, *LAUNCH_TEXTS):
            transaction.log_service_message(job.id, text)
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
