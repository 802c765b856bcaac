"""Taking a job into the queue, whoever asks for it: a client, or a training pipeline."""

from collections.abc import Iterable, Mapping
from typing import Any

from vertex_api.kinds import TRAINING_PIPELINE, Kind
from vertex_emulator.database import Transaction
from vertex_emulator.database.records import Job, list_replicas
from vertex_emulator.names import Location
from vertex_emulator.scheduling import unsupported_fields as coverage


def submit(
    transaction: Transaction,
    job_id: str,
    kind: Kind,
    location: Location,
    spec: Mapping[str, Any],
    warnings: Iterable[str] = (),
) -> Job:
    """A new job in the queue, with the first lines of its log: what is not honoured in full, and `warnings`."""
    job = transaction.add_job(job_id, kind, location, spec, slots=len(list_replicas(kind, spec)))
    transaction.log_service_message(job_id, "Waiting for job to be provisioned.")
    notes = coverage.notes(kind, spec) if kind != TRAINING_PIPELINE else []
    for text in [*notes, *warnings]:
        transaction.log_service_message(job_id, text, "WARNING")
    return job
