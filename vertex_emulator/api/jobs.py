"""The API's methods on custom jobs, tuning jobs and training pipelines."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from vertex_api import types
from vertex_api.errors import FOUND_HERE
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_emulator.api import faults, lists, validation
from vertex_emulator.api.lists import ListRequest, Mask
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import FAILED, PENDING, RUNNING, Ending, Job, Trial, requested_replicas
from vertex_emulator.errors import ApiError, ModelUploadRejected
from vertex_emulator.filters import Filter
from vertex_emulator.http.responses import malformed_name, not_found
from vertex_emulator.names import Location, new_id
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.representation import api_state, job_json, job_times, operation_json, pipeline_json
from vertex_emulator.scheduling import lifecycle
from vertex_emulator.times import parse_time

_CODE_RESOURCE_EXHAUSTED = 8
_JOB_FIELDS = lists.Fields[Job](
    {
        "name": lambda job: job.name,
        "display_name": lambda job: str(job.spec["displayName"]),
        "state": api_state,
        "create_time": lambda job: job_times(job).get("createTime"),
        "update_time": lambda job: job_times(job).get("updateTime"),
        "start_time": lambda job: job_times(job).get("startTime"),
        "end_time": lambda job: job_times(job).get("endTime"),
    },
    labels=lambda job: job.spec.get("labels", {}),
    states=get_args(get_args(types.JobState)[0]),
)
_PIPELINE_FIELDS = replace(
    _JOB_FIELDS,
    texts={**_JOB_FIELDS.texts, "training_task_definition": lambda job: str(job.spec["trainingTaskDefinition"])},
    states=get_args(get_args(types.PipelineState)[0]),
)


@dataclass(frozen=True)
class JobService:
    """The methods on jobs of every kind.

    `buckets` is the folder of all buckets, `capacity` the maximum number of running replicas; `wake` tells the
    scheduler that the job with an id has changed. `page_url` is where browsers find the emulator.
    """

    database: Database
    buckets: Path
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
        allowed: Collection[str] = (),
    ) -> dict[str, Any]:
        """Queue a job and return it. Raises ApiError with every problem of the request but those at `allowed` places.

        The log of the job says which ones it has all the same.
        As on the service, its state is PENDING, though the job may wait in the queue; and a pipeline that exceeds a
        quota is created, and then fails. `on_created` is called in the same transaction, to store what the job is for;
        if it raises, there is no job.
        """
        spec, lifted = validation.canonicalize(kind, location.region, body, self.buckets, allowed)
        notes = [f"{FOUND_HERE}accepted, as the request lifts it: {problem}" for problem in lifted]
        if kind == TRAINING_PIPELINE:
            validation.check_images(self.executor, spec)
        quota_message = faults.quota_message(self.database, kind, spec)
        if quota_message is not None and kind != TRAINING_PIPELINE:
            raise ApiError("RESOURCE_EXHAUSTED", quota_message)
        job_id = new_id()
        with self.database.write() as transaction:
            try:
                transaction.models.choose_id(location, spec)
            except ModelUploadRejected as error:  # as the pipeline's model would be when it ends
                raise ApiError(error.status, str(error)) from error
            validation.check_shared_folders(transaction, kind, spec)
            validation.check_tensorboard(transaction, kind, spec)
            job = lifecycle.enqueue(transaction, job_id, kind, location, spec, notes)
            if quota_message is not None:
                ending = Ending(FAILED, _CODE_RESOURCE_EXHAUSTED, quota_message, job.created)
                job = transaction.jobs.update(job, ending=ending)
            on_created(transaction, job)
            admitted_ids = lifecycle.admit(transaction, self.capacity)
        for changed_id in dict.fromkeys([job_id, *admitted_ids]):
            self.wake(changed_id)
        return job_json(replace(job, state=PENDING))

    def validate(self, kind: Kind, location: Location, body: Mapping[str, Any], allowed: Collection[str] = ()) -> None:
        """Raise ApiError with every problem of a request that creates a job but those at `allowed` places."""
        validation.canonicalize(kind, location.region, body, self.buckets, allowed)

    def get(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Return a job. Raises ApiError NOT_FOUND."""
        with self.database.read() as transaction:
            return self._bodies(transaction, kind, [_require(transaction, kind, location, job_id)])[0]

    def list(self, kind: Kind, location: Location, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of jobs without the jobs of trials, the newest first. Raises ApiError."""
        fields = _PIPELINE_FIELDS if kind == TRAINING_PIPELINE else _JOB_FIELDS
        condition = list_request.condition(fields)
        mask = Mask.parse(list_request.mask, kind.typed_dict)
        before = list_request.position(int)
        state, text = _required_state(condition), _required_text(condition)
        with self.database.read() as transaction:
            jobs = transaction.jobs.created(kind, location, before, state, text)
            matching = (job for job in jobs if fields.match(condition, job))
            page, token = list_request.page(matching, lambda job: job.sequence)
            bodies = self._bodies(transaction, kind, page, with_trials="trials" in mask)
        return lists.reply(kind.collection, [mask.apply(body) for body in bodies], token)

    def cancel(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Request that a job is cancelled. Does nothing to an ended job, but a pipeline must not have ended.

        Raises ApiError, for an ended pipeline with the service's text (docs/fidelity.md, captures).
        """
        with self.database.write() as transaction:
            job = _require_outside_study(transaction, kind, location, job_id, "cancel")
            if kind == TRAINING_PIPELINE and job.is_terminal:
                raise ApiError("FAILED_PRECONDITION", f"{_in_state(job)} and cannot be canceled.")
            lifecycle.cancel(transaction, job_id)
        self.wake(job_id)
        return {}

    def delete(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Delete an ended job with its logs, not its outputs; return a done operation. Raises ApiError.

        Deleting a pipeline keeps its job and its model. Its job cannot be deleted before the pipeline has ended.
        """
        with self.database.write() as transaction:
            job = _require_outside_study(transaction, kind, location, job_id, "delete")
            pipeline_id = transaction.pipelines.of_job(job_id)
            for owner in (job, transaction.jobs.get(pipeline_id) if pipeline_id is not None else None):
                if owner is not None and not owner.is_terminal:
                    is_cancelling = owner.state.endswith("_CANCELLING")
                    advice = f"{'' if is_cancelling else 'cancel it, then '}delete it once it has ended."
                    raise ApiError("FAILED_PRECONDITION", f"{_in_state(owner)} and cannot be deleted: {advice}")
            deleted_ids = [job_id, *(trial_job.id for trial_job in transaction.jobs.of_study(job_id))]
            transaction.jobs.delete(job.id)
            operation = transaction.operations.add(location.name, "DeleteOperationMetadata")
        for deleted_id in deleted_ids:
            self.wake(deleted_id)
        return operation_json(operation)

    def _bodies(
        self, transaction: Transaction, kind: Kind, jobs: Sequence[Job], with_trials: bool = True
    ) -> Sequence[dict[str, Any]]:
        if kind == TRAINING_PIPELINE:
            progress = transaction.pipelines.progress([job.id for job in jobs])
            return [pipeline_json(job, progress.get(job.id)) for job in jobs]
        if kind == HYPERPARAMETER_TUNING_JOB and with_trials:
            bodies = []
            for job in jobs:
                trials = transaction.trials.summaries(job.id)
                body = job_json(job, trials)
                add_web_access(body, job, trials, self.page_url)
                bodies.append(body)
            return bodies
        return [{**job_json(job), **web_access(job, self.page_url)} for job in jobs]


def _require(transaction: Transaction, kind: Kind, location: Location, job_id: str) -> Job:
    if not (job_id.isascii() and job_id.isdigit()):
        raise malformed_name(kind.type)
    job = transaction.jobs.get(job_id)
    name = f"{location.name}/{kind.collection}/{job_id}"
    if job is None or job.name != name:
        raise not_found(kind.type, name)
    return job


def _in_state(job: Job) -> str:
    return f'The {job.kind.type} "{job.name}" is in state {api_state(job)}'


def _require_outside_study(transaction: Transaction, kind: Kind, location: Location, job_id: str, verb: str) -> Job:
    """Return a job that may be cancelled or deleted. Raises ApiError for the job of a trial."""
    job = _require(transaction, kind, location, job_id)
    if job.study is not None:
        raise ApiError("FAILED_PRECONDITION", f"{job.name} is a trial of tuning job {job.study}: {verb} that job")
    return job


def _required_state(condition: Filter) -> str | None:
    """Return the state that a filter demands, by its name in the database; None if it demands none."""
    state = condition.required("state")
    return state and state.replace("PIPELINE_STATE_", "JOB_STATE_")


def _required_text(condition: Filter) -> str | None:
    """Return a display name or a label's value that a filter demands, None if it demands none.

    Texts of times are left out: equal ones have several forms.
    """
    fields = (comparison.field for comparison in condition.comparisons())
    values = (condition.required(field) for field in fields if field.partition(".")[0] in ("display_name", "labels"))
    return next((value for value in values if value and parse_time(value) is None), None)


_WEB_ACCESS = "webAccessUris"
"""The field of jobs and trials with `enableWebAccess`: for each task, a page that says how to get a shell.

It is there while the job runs (discovery document, CustomJob and Trial). The URIs of the service lack `http://`.
"""


def web_access(job: Job, page_url: str) -> dict[str, dict[str, str]]:
    """Return the field of a custom job, `{}` unless it runs with web access. `page_url` is the emulator's."""
    if job.state != RUNNING or not job.spec["jobSpec"].get("enableWebAccess"):
        return {}
    return {_WEB_ACCESS: _web_access_uris(job.id, job.spec["jobSpec"], page_url)}


def add_web_access(study_body: dict[str, Any], study: Job, trials: Iterable[Trial], page_url: str) -> None:
    """Add the field to each running trial in the body of a tuning job, if the study has web access."""
    spec = study.spec["trialJobSpec"]
    if spec.get("enableWebAccess"):
        for trial, trial_body in zip(trials, study_body.get("trials", ()), strict=True):
            if trial.state in ("ACTIVE", "STOPPING"):
                trial_body[_WEB_ACCESS] = _web_access_uris(trial.job, spec, page_url)


def _web_access_uris(job_id: str, job_spec: Mapping[str, Any], page_url: str) -> dict[str, str]:
    tasks = [replica.task_name for replica in requested_replicas(CUSTOM_JOB, {"jobSpec": job_spec})]
    return {task: f"{page_url}/jobs/{CUSTOM_JOB.collection}/{job_id}/shell/{task}" for task in tasks}
