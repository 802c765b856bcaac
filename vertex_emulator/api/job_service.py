"""The API's methods on custom jobs, tuning jobs and training pipelines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from pydantic.alias_generators import to_camel

from vertex_api import types
from vertex_api.names import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_emulator.api.field_masks import apply_read_mask, is_field_in_mask, parse_read_mask
from vertex_emulator.api.injected_quota_faults import consume_quota_fault_and_get_message_or_none
from vertex_emulator.api.job_request_validation import (
    raise_if_folders_nest_with_unfinished_jobs,
    raise_if_pipeline_image_is_missing,
    validate_and_canonicalize_request,
)
from vertex_emulator.api.list_request import ListRequest, build_list_reply
from vertex_emulator.api.web_access_uris import add_web_access_to_running_trials, build_web_access_fields_or_empty
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import FAILED, PENDING, Ending, Job
from vertex_emulator.errors import ApiError, ModelUploadRejected
from vertex_emulator.filters.expression_tree import Filter, find_required_value, iterate_comparisons, matches
from vertex_emulator.http.invalid_request_errors import build_malformed_name_error, build_not_found_error
from vertex_emulator.names import Location, new_id
from vertex_emulator.replicas.executor_protocol import Executor
from vertex_emulator.resources import api_state, job_json, job_times, operation_json, pipeline_json
from vertex_emulator.scheduling import stop_request_recording
from vertex_emulator.scheduling.enqueuing_and_admission import admit_jobs_and_get_ids, enqueue_job
from vertex_emulator.times import parse_time

_CODE_RESOURCE_EXHAUSTED = 8
_JOB_FIELDS = ("name", "display_name", "state", "create_time", "update_time", "start_time", "end_time")
_PIPELINE_FIELDS = (*_JOB_FIELDS, "training_task_definition")


@dataclass(frozen=True)
class JobService:
    """The methods on jobs of every kind.

    `buckets_folder` is the folder of all buckets, `capacity` the maximum number of running replicas; `wake` tells the
    scheduler that the job with an id has changed. `page_url` is where browsers find the emulator.
    """

    database: Database
    buckets_folder: Path
    capacity: int
    executor: Executor
    wake: Callable[[str], None]
    page_url: str

    def create(
        self,
        kind: Kind,
        location: Location,
        body: Mapping[str, Any],
        on_created: Callable[[Transaction, Job], object] = lambda _transaction, _job: None,
    ) -> dict[str, Any]:
        """Queue a job and return it. Raises ApiError with every problem of the request.

        As on the service, its state is PENDING, though the job may wait in the queue; and a pipeline that exceeds a
        quota is created, and then fails. `on_created` is called in the same transaction, to store what the job is for;
        if it raises, there is no job.
        """
        spec = validate_and_canonicalize_request(kind, location.region, body, self.buckets_folder)
        if kind == TRAINING_PIPELINE:
            raise_if_pipeline_image_is_missing(self.executor, spec)
        quota_message = consume_quota_fault_and_get_message_or_none(self.database, kind, spec)
        if quota_message is not None and kind != TRAINING_PIPELINE:
            raise ApiError("RESOURCE_EXHAUSTED", quota_message)
        job_id = new_id()
        with self.database.write() as transaction:
            _raise_if_model_upload_would_fail(transaction, location, spec)
            raise_if_folders_nest_with_unfinished_jobs(transaction, kind, spec)
            job = enqueue_job(transaction, job_id, kind, location, spec)
            if quota_message is not None:
                ending = Ending(FAILED, _CODE_RESOURCE_EXHAUSTED, quota_message, job.created)
                job = transaction.jobs.update(job, ending=ending)
            on_created(transaction, job)
            admitted_ids = admit_jobs_and_get_ids(transaction, self.capacity)
        for changed_id in dict.fromkeys([job_id, *admitted_ids]):
            self.wake(changed_id)
        return job_json(replace(job, state=PENDING))

    def validate_job_request(self, kind: Kind, location: Location, body: Mapping[str, Any]) -> None:
        """Raise ApiError with every problem of a request that creates a job."""
        validate_and_canonicalize_request(kind, location.region, body, self.buckets_folder)

    def get(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Return a job. Raises ApiError NOT_FOUND."""
        with self.database.read() as transaction:
            return self._serialize_jobs(transaction, kind, [self._require_job(transaction, kind, location, job_id)])[0]

    def list_jobs(self, kind: Kind, location: Location, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of jobs without the jobs of trials, the newest first. Raises ApiError."""
        is_pipeline = kind == TRAINING_PIPELINE
        states = get_args(get_args(types.PipelineState if is_pipeline else types.JobState)[0])
        condition = list_request.parse_and_validate_filter(_PIPELINE_FIELDS if is_pipeline else _JOB_FIELDS, states)
        mask = parse_read_mask(list_request.mask, kind.typed_dict)
        before = list_request.decode_page_token_or_none(int)
        with self.database.read() as transaction:
            matching = (
                job
                for job in transaction.jobs.created(
                    kind,
                    location,
                    before,
                    _find_required_database_state(condition),
                    _find_required_string_in_spec(condition),
                )
                if matches(condition, partial(_get_field_text_or_none, job))
            )
            jobs, token = list_request.take_page_and_next_token(matching, lambda job: job.sequence)
            bodies = self._serialize_jobs(transaction, kind, jobs, is_field_in_mask(mask, "trials"))
        return build_list_reply(kind.collection, [apply_read_mask(body, mask) for body in bodies], token)

    def cancel_unless_ended(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Request that a job is cancelled; does nothing to a job that has ended. Raises ApiError."""
        with self.database.write() as transaction:
            self._require_job_outside_study(transaction, kind, location, job_id, "cancel")
            stop_request_recording.request_cancellation_if_undecided(transaction, job_id)
        self.wake(job_id)
        return {}

    def delete(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Delete an ended job with its logs, not its outputs; return a done operation. Raises ApiError.

        Deleting a pipeline keeps its job and its model. Its job cannot be deleted before the pipeline has ended.
        """
        with self.database.write() as transaction:
            job = self._require_job_outside_study(transaction, kind, location, job_id, "delete")
            pipeline_id = transaction.pipelines.of_job(job_id)
            for owner in (job, transaction.jobs.get(pipeline_id) if pipeline_id is not None else None):
                if owner is not None and not owner.is_terminal:
                    raise ApiError(
                        "FAILED_PRECONDITION",
                        f"The {owner.kind.type} {owner.name} is in state {api_state(owner)}: "
                        "cancel it, then delete it once it has ended.",
                    )
            deleted_ids = [job_id, *(trial_job.id for trial_job in transaction.jobs.of_study(job_id))]
            transaction.jobs.delete(job.id)
            operation = transaction.operations.add(location.name, "DeleteOperationMetadata")
        for deleted_id in deleted_ids:
            self.wake(deleted_id)
        return operation_json(operation)

    def _serialize_jobs(
        self, transaction: Transaction, kind: Kind, jobs: list[Job], with_trials: bool = True
    ) -> list[dict[str, Any]]:
        if kind == TRAINING_PIPELINE:
            progress = transaction.pipelines.progress([job.id for job in jobs])
            return [pipeline_json(job, progress.get(job.id)) for job in jobs]
        if kind == HYPERPARAMETER_TUNING_JOB and with_trials:
            bodies = []
            for job in jobs:
                trials = transaction.trials.summaries(job.id)
                body = job_json(job, trials)
                add_web_access_to_running_trials(body, job, trials, self.page_url)
                bodies.append(body)
            return bodies
        return [{**job_json(job), **build_web_access_fields_or_empty(job, self.page_url)} for job in jobs]

    def _require_job(self, transaction: Transaction, kind: Kind, location: Location, job_id: str) -> Job:
        if not (job_id.isascii() and job_id.isdigit()):
            raise build_malformed_name_error(kind.type)
        job = transaction.jobs.get(job_id)
        name = f"{location.name}/{kind.collection}/{job_id}"
        if job is None or job.name != name:
            raise build_not_found_error(kind.type, name)
        return job

    def _require_job_outside_study(
        self, transaction: Transaction, kind: Kind, location: Location, job_id: str, verb: str
    ) -> Job:
        """Return a job that may be cancelled or deleted. Raises ApiError for the job of a trial."""
        job = self._require_job(transaction, kind, location, job_id)
        if job.study is not None:
            raise ApiError("FAILED_PRECONDITION", f"{job.name} is a trial of tuning job {job.study}: {verb} that job")
        return job


def _raise_if_model_upload_would_fail(transaction: Transaction, location: Location, spec: Mapping[str, Any]) -> None:
    """Raise ApiError for a pipeline whose model could not be uploaded when it ends."""
    try:
        transaction.models.choose_id(location, spec)
    except ModelUploadRejected as error:
        raise ApiError(error.status, str(error)) from error


def _find_required_database_state(condition: Filter | None) -> str | None:
    """Return the state that a filter demands, by its name in the database; None if it demands none."""
    state = find_required_value(condition, "state")
    return state and state.replace("PIPELINE_STATE_", "JOB_STATE_")


def _find_required_string_in_spec(condition: Filter | None) -> str | None:
    """Return a display name or a label's value that a filter demands, None if it demands none.

    Texts of times are left out: equal ones have several forms.
    """
    fields = (comparison.field for comparison in iterate_comparisons(condition))
    values = (
        find_required_value(condition, field)
        for field in fields
        if field.partition(".")[0] in ("display_name", "labels")
    )
    return next((value for value in values if value and parse_time(value) is None), None)


def _get_field_text_or_none(job: Job, field: str) -> str | None:
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
            return job_times(job).get(to_camel(field))
    return job.spec.get("labels", {}).get(field.removeprefix("labels."))  # type: ignore[no-any-return]
