"""Taking a job into the queue, whoever asks for it: a client, or a training pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from emulator import coverage
from emulator.names import Location
from emulator.records import Job
from emulator.store import Transaction
from vertex.kinds import CUSTOM_JOB, TRAINING_PIPELINE, Kind


def submit(
    change: Transaction,
    job_id: str,
    kind: Kind,
    location: Location,
    spec: Mapping[str, Any],
    warnings: Iterable[str] = (),
) -> Job:
    """A new job in the queue, with the first lines of its log: what is not honoured in full, and `warnings`."""
    job = change.add_job(job_id, kind, location, spec, slots=_slots(kind, spec))
    change.say(job_id, "Waiting for job to be provisioned.")
    notes = coverage.notes(kind, spec) if kind != TRAINING_PIPELINE else []
    for text in [*notes, *warnings]:
        change.say(job_id, text, "WARNING")
    return job


def _slots(kind: Kind, spec: Mapping[str, Any]) -> int:
    """How many replicas a job runs; only custom jobs have any of their own."""
    if kind != CUSTOM_JOB:
        return 0
    return sum(pool.get("replicaCount", 1) for pool in spec["jobSpec"]["workerPoolSpecs"] if pool)
