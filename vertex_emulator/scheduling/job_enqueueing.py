"""The enqueueing of a job, for a client or for a training pipeline."""

from collections.abc import Iterable, Mapping
from typing import Any

from vertex_api.job_kinds import TRAINING_PIPELINE, Kind
from vertex_emulator.database import Transaction
from vertex_emulator.database.records import Job
from vertex_emulator.locations_and_ids import Location
from vertex_emulator.scheduling.rejected_and_approximated_fields import render_approximation_warnings


def enqueue_job(
    transaction: Transaction,
    job_id: str,
    kind: Kind,
    location: Location,
    spec: Mapping[str, Any],
    warnings: Iterable[str] = (),
) -> Job:
    """Add a job to the queue and log its first messages: a warning per approximated field, then `warnings`."""
    job = transaction.add_job_and_consume_fault(job_id, kind, location, spec)
    transaction.log_service_message(job_id, "Waiting for job to be provisioned.")
    notes = render_approximation_warnings(kind, spec) if kind != TRAINING_PIPELINE else []
    for text in [*notes, *warnings]:
        transaction.log_service_message(job_id, text, "WARNING")
    return job
