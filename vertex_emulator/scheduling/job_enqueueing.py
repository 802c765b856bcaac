"""The enqueueing of a job, for a client or for a training pipeline."""

from collections.abc import Iterable, Mapping
from typing import Any

from vertex_api.catalog.job_defaults import copy_with_boot_disks
from vertex_api.job_kinds import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
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
    """Add a job to the queue and log its first messages: a warning per approximated field, then `warnings`.

    As on the service, the job has boot disks from now on.
    """
    if kind != TRAINING_PIPELINE:
        spec = {**spec, kind.spec_field: copy_with_boot_disks(spec[kind.spec_field])}
    job = transaction.add_job_and_consume_fault(job_id, kind, location, spec)
    transaction.log_service_message(job_id, "Waiting for job to be provisioned.")
    if kind == HYPERPARAMETER_TUNING_JOB:
        transaction.log_service_message(job_id, "Vertex AI is setting up this job.")
    notes = render_approximation_warnings(kind, spec) if kind != TRAINING_PIPELINE else []
    for text in [*notes, *warnings]:
        transaction.log_service_message(job_id, text, "WARNING")
    return job
