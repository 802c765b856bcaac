"""Asking for a job's end: a change in the database; the reconcilers do the rest."""

from vertex_api.kinds import CUSTOM_JOB
from vertex_emulator.database import Transaction
from vertex_emulator.database.records import CANCELLED, CANCELLING, QUEUED, SUCCEEDED, Ending
from vertex_emulator.times import now_ns

_CODE_CANCELLED = 1


def cancel(transaction: Transaction, job_id: str) -> None:
    """Ask for a job's end. A job whose end is decided already keeps it, and a queued one is over at once.

    A study that has stopped and waits for its last trials can still be cancelled.
    """
    _end(transaction, job_id, Ending(CANCELLED, _CODE_CANCELLED, "CANCELED", now_ns()))


def stop_early(transaction: Transaction, job_id: str) -> bool:
    """Ask for the end of a trial's job that has done enough: it succeeds; False when its end is decided already.

    While its containers are being stopped its state is CANCELLING, and the trial's STOPPING.
    """
    return _end(transaction, job_id, Ending(SUCCEEDED, 0, "", now_ns()))


def _end(transaction: Transaction, job_id: str, ending: Ending) -> bool:
    job = transaction.get_job(job_id)
    if job is None or job.is_terminal or not (job.ending is None or job.is_waiting_for_trials):
        return False
    # A custom job in the queue has no containers yet.
    if job.state == QUEUED and job.kind == CUSTOM_JOB:
        transaction.end_job(job, ending)
    else:
        transaction.update_job(job, state=CANCELLING, ending=ending)
    return True
