"""Requests to end a job: they are recorded in the database, and the reconcilers carry them out."""

from vertex_api.names import CUSTOM_JOB
from vertex_emulator.database import Transaction
from vertex_emulator.database.records import CANCELLED, CANCELLING, QUEUED, SUCCEEDED, Ending
from vertex_emulator.times import now_ns

_CODE_CANCELLED = 1


def request_cancellation_if_undecided(transaction: Transaction, job_id: str) -> None:
    """Request a job's cancellation. A queued custom job ends at once; a job whose ending is decided keeps it.

    A study that has stopped and waits for its last trials can still be cancelled.
    """
    _try_to_request_ending_or_end_if_queued(
        transaction, job_id, Ending(CANCELLED, _CODE_CANCELLED, "CANCELED", now_ns())
    )


def try_to_request_early_stop(transaction: Transaction, trial_job_id: str) -> bool:
    """Request that a trial's job ends early and succeeds. Return False if its ending is decided already.

    While its containers are being stopped, the job's state is CANCELLING and the trial's is STOPPING.
    """
    return _try_to_request_ending_or_end_if_queued(transaction, trial_job_id, Ending(SUCCEEDED, 0, "", now_ns()))


def _try_to_request_ending_or_end_if_queued(transaction: Transaction, job_id: str, ending: Ending) -> bool:
    job = transaction.jobs.get(job_id)
    if job is None or job.is_terminal or not (job.ending is None or job.is_stopped_study):
        return False
    # A custom job in the queue has no containers yet.
    if job.state == QUEUED and job.kind == CUSTOM_JOB:
        transaction.jobs.end(job, ending)
    else:
        transaction.jobs.update(job, state=CANCELLING, ending=ending)
    return True
