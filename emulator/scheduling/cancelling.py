"""Cancelling a job: a change in the store; the reconcilers do the rest."""

from __future__ import annotations

from emulator.records import CANCELLED, CANCELLING, QUEUED, Ending
from emulator.store import Transaction
from emulator.times import now_ns
from vertex.kinds import CUSTOM_JOB

_CODE_CANCELLED = 1


def cancel(change: Transaction, job_id: str) -> None:
    """Ask for a job's end. A job whose end is decided already keeps it, and a queued one is over at once."""
    job = change.job(job_id)
    if job is None or job.is_terminal or job.ending is not None:
        return
    ending = Ending(CANCELLED, _CODE_CANCELLED, "CANCELED", now_ns())
    # A custom job in the queue has no containers yet.
    if job.state == QUEUED and job.kind == CUSTOM_JOB:
        change.end_job(job, ending)
    else:
        change.change_job(job, state=CANCELLING, ending=ending)
