"""The API's methods on jobs and training pipelines, without HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from vertex_api import types
from vertex_api.kinds import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_emulator import filters
from vertex_emulator.api import quota
from vertex_emulator.api.acceptance import accepted
from vertex_emulator.api.listing import Listing, answer
from vertex_emulator.api.masks import masked, read_mask, wants
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError, ModelUploadRejected
from vertex_emulator.names import Location, new_id
from vertex_emulator.resource_json import api_state, serialize_job, serialize_operation, serialize_pipeline
from vertex_emulator.scheduling import cancellation
from vertex_emulator.scheduling.model_upload import choose_model_id
from vertex_emulator.scheduling.submission import submit_job
from vertex_emulator.times import format_time

_FILTERABLE = ("name", "display_name", "state", "create_time", "update_time", "start_time", "end_time")
EMPTY = {"@type": "type.googleapis.com/google.protobuf.Empty"}


@dataclass(frozen=True)
class Jobs:
    """Methods on the database; `buckets` is the folder of the buckets, `wake` tells the scheduler to look at a job."""

    database: Database
    buckets: Path
    wake: Callable[[str], None]

    def create(self, kind: Kind, location: Location, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take a job; it is in the queue when this returns. Raises ApiError with every problem of the request."""
        spec = accepted(kind, body, self.buckets)
        quota.check(self.database, kind, spec)
        job_id = new_id()
        with self.database.write_transaction() as transaction:
            _check_destination(transaction, location, spec)
            job = submit_job(transaction, job_id, kind, location, spec)
        self.wake(job_id)
        return serialize_job(job)

    def get(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """A job. Raises ApiError NOT_FOUND."""
        with self.database.read_transaction() as transaction:
            return self._shown(transaction, kind, [self._found(transaction, kind, location, job_id)])[0]

    def page(self, kind: Kind, location: Location, listing: Listing) -> dict[str, Any]:
        """A page of jobs, the newest first; trials' jobs are not among them. Raises ApiError."""
        condition = listing.condition(_filterable(kind), _states(kind))
        mask = read_mask(listing.mask, kind.message)
        before = listing.after(int)
        with self.database.read_transaction() as transaction:
            found = (
                job
                for job in transaction.list_jobs(kind, location, before=before)
                if filters.matches(condition, partial(_field, job))
            )
            jobs, token = listing.page(found, lambda job: job.sequence)
            shown = self._shown(transaction, kind, jobs, wants(mask, "trials"))
        return answer(kind.collection, [masked(job, mask) for job in shown], token)

    def cancel(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Ask for a job's end; nothing happens to one that has ended. Raises ApiError."""
        with self.database.write_transaction() as transaction:
            self._own(transaction, kind, location, job_id, "cancel")
            cancellation.cancel_job(transaction, job_id)
        self.wake(job_id)
        return {}

    def delete(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Forget an ended job with its logs; its outputs stay. A done operation. Raises ApiError.

        A pipeline leaves its job and its model behind. Its job cannot go before it.
        """
        with self.database.write_transaction() as transaction:
            job = self._own(transaction, kind, location, job_id, "delete")
            pipeline_id = transaction.pipelines.get_pipeline_of_job(job_id)
            for holder in (job, transaction.get_job(pipeline_id) if pipeline_id is not None else None):
                if holder is not None and not holder.is_terminal:
                    raise ApiError(
                        "FAILED_PRECONDITION",
                        f"The {holder.kind.type} {holder.name} is in state {api_state(holder)}: "
                        "cancel it, then delete it once it has ended.",
                    )
            gone = [job_id, *transaction.get_trial_jobs(job_id)]
            transaction.delete_job(job)
            operation = transaction.operations.add(
                f"{job.name}/operations/{new_id()}", "DeleteOperationMetadata", EMPTY
            )
        for each in gone:
            self.wake(each)
        return serialize_operation(operation)

    def _shown(
        self, transaction: Transaction, kind: Kind, jobs: list[Job], with_trials: bool = True
    ) -> list[dict[str, Any]]:
        if kind == TRAINING_PIPELINE:
            progress = transaction.pipelines.get_progress([job.id for job in jobs])
            return [serialize_pipeline(job, progress.get(job.id)) for job in jobs]
        if kind == HYPERPARAMETER_TUNING_JOB and with_trials:
            return [serialize_job(job, transaction.list_trials(job.id)) for job in jobs]
        return [serialize_job(job) for job in jobs]

    def _found(self, transaction: Transaction, kind: Kind, location: Location, job_id: str) -> Job:
        job = transaction.get_job(job_id)
        if job is None or (job.kind, job.location.name) != (kind, location.name):
            name = f"{location.name}/{kind.collection}/{job_id}"
            raise ApiError("NOT_FOUND", f"The {kind.type} {name} does not exist.")
        return job

    def _own(self, transaction: Transaction, kind: Kind, location: Location, job_id: str, verb: str) -> Job:
        """A job that may be told to end or go; a trial's only through its tuning job."""
        job = self._found(transaction, kind, location, job_id)
        if job.study is not None:
            raise ApiError("FAILED_PRECONDITION", f"{job.name} is a trial of tuning job {job.study}: {verb} that one")
        return job


def _check_destination(transaction: Transaction, location: Location, spec: Mapping[str, Any]) -> None:
    """Refuse a pipeline at once whose model could not be uploaded at its end."""
    try:
        choose_model_id(transaction, location, spec.get("modelId", ""), spec.get("parentModel", ""))
    except ModelUploadRejected as error:
        raise ApiError(error.status, str(error)) from error


def _filterable(kind: Kind) -> tuple[str, ...]:
    return (*_FILTERABLE, "training_task_definition") if kind == TRAINING_PIPELINE else _FILTERABLE


def _states(kind: Kind) -> tuple[str, ...]:
    return get_args(get_args(types.PipelineState if kind == TRAINING_PIPELINE else types.JobState)[0])


def _field(job: Job, field: str) -> str | None:
    match field:
        case "name":
            return job.name
        case "state":
            return api_state(job)
        case "display_name":
            return str(job.spec["displayName"])
        case "training_task_definition":
            return str(job.spec["trainingTaskDefinition"])
        case "create_time" | "update_time" | "start_time" | "end_time":
            moment = {"create": job.created, "update": job.updated, "start": job.started, "end": job.ended}[field[:-5]]
            return None if moment is None else format_time(moment)
    return job.spec.get("labels", {}).get(field.removeprefix("labels."))  # type: ignore[no-any-return]
