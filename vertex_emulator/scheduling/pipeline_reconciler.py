"""The reconciler of training pipelines: it submits the job that runs the task and uploads the model.

Each step looks at the database, does what is missing, and can be repeated. One transaction writes the job and
the link from the pipeline to it, another one the model and the pipeline's end.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from vertex_api.jobspec import model_folder
from vertex_api.names import CUSTOM_JOB
from vertex_api.pipelines import backing_kind, job_of_pipeline
from vertex_api.studies import find_best
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import FAILED, PENDING, RUNNING, SUCCEEDED, Ending, Job, Trial
from vertex_emulator.errors import ModelUploadRejected
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.names import new_id
from vertex_emulator.resources import job_json
from vertex_emulator.scheduling.enqueuing_and_admission import enqueue_job
from vertex_emulator.scheduling.pipeline_input_data import (
    build_input_variables_and_warnings,
    copy_with_input_variables,
)
from vertex_emulator.scheduling.stop_request_recording import request_cancellation_if_undecided
from vertex_emulator.times import now_ns

_NO_ARTIFACT_WARNING = "modelToUpload: without a baseOutputDirectory or an artifactUri the model will have no artifact."
_STATUS_CODES = {"NOT_FOUND": 5, "ALREADY_EXISTS": 6}


@dataclass(frozen=True)
class PipelineReconciler:
    """Advances training pipelines; `wake` schedules a step for a job."""

    database: Database
    data: DataFolder
    wake: Callable[[str], None]

    def reconcile(self, pipeline: Job) -> None:
        """Take the next step; each change of the pipeline's job schedules another one."""
        if pipeline.is_terminal:
            return
        with self.database.read() as transaction:
            progress = transaction.pipelines.get(pipeline.id)
            job = transaction.jobs.get(progress.job) if progress is not None else None
            trials_of_job = transaction.trials.all(job.id) if job is not None and job.is_terminal else []
        if job is None:
            self._enqueue_backing_job_or_end_if_cancelled(pipeline)
        elif not job.is_terminal:
            self._forward_cancellation_or_copy_start(pipeline, job)
        else:
            self._upload_model_if_any_and_end(pipeline, job, trials_of_job)

    def _enqueue_backing_job_or_end_if_cancelled(self, pipeline: Job) -> None:
        kind, spec = backing_kind(pipeline.spec), job_of_pipeline(pipeline.spec)
        warnings = []
        model = pipeline.spec.get("modelToUpload")
        if model is not None and "artifactUri" not in model and not model_folder(spec[kind.spec_field]):
            warnings.append(_NO_ARTIFACT_WARNING)
        if "inputDataConfig" in pipeline.spec:
            data = build_input_variables_and_warnings(pipeline.spec["inputDataConfig"], self.data.buckets)
            spec[kind.spec_field] = copy_with_input_variables(spec[kind.spec_field], data)
            warnings += data.warnings
        with self.database.write() as transaction:
            current = transaction.jobs.get(pipeline.id)
            if current is None or current.is_terminal:
                return
            if current.ending is not None:
                transaction.jobs.end(current, current.ending)
                return
            job = enqueue_job(transaction, new_id(), kind, pipeline.location, spec, warnings)
            transaction.pipelines.add(pipeline.id, job.id)
            transaction.jobs.log(pipeline.id, f"The pipeline's task is {job.name}.")
        self.wake(job.id)

    def _forward_cancellation_or_copy_start(self, pipeline: Job, job: Job) -> None:
        with self.database.write() as transaction:
            current, current_job = transaction.jobs.get(pipeline.id), transaction.jobs.get(job.id)
            if current is None or current_job is None:
                return
            must_cancel = current.ending is not None and current_job.ending is None
            if must_cancel:
                request_cancellation_if_undecided(transaction, job.id)
            elif current.ending is None and current_job.started is not None and current.state == PENDING:
                transaction.jobs.update(current, state=RUNNING, started=current_job.started)
        if must_cancel:
            self.wake(job.id)

    def _upload_model_if_any_and_end(self, pipeline: Job, job: Job, trials_of_job: list[Trial]) -> None:
        best_trial = _find_best_trial_or_none(job, trials_of_job)
        artifact_uri = self._get_model_directory_or_none(job, best_trial)
        with self.database.write() as transaction:
            current = transaction.jobs.get(pipeline.id)
            if current is None or current.is_terminal:
                return
            assert job.ending is not None
            ending = current.ending or replace(job.ending, at=now_ns())
            if ending.state == SUCCEEDED and "modelToUpload" in pipeline.spec:
                ending = self._upload_model_or_get_failed_ending(transaction, pipeline, artifact_uri) or ending
            if best_trial is not None:
                transaction.pipelines.set_best_trial(pipeline.id, best_trial.job)
            started = current.started or job.started
            transaction.jobs.end(current, ending, **({} if started is None else {"started": started}))

    def _upload_model_or_get_failed_ending(
        self, transaction: Transaction, pipeline: Job, artifact_uri: str | None
    ) -> Ending | None:
        """Upload the model; return the pipeline's ending if that fails."""
        model = dict(pipeline.spec["modelToUpload"])
        uri = model.setdefault("artifactUri", artifact_uri)
        if uri is None:
            del model["artifactUri"]
        elif uri == artifact_uri and not BucketTree(self.data.buckets).has_objects(uri):
            return _build_failed_ending(_STATUS_CODES["NOT_FOUND"], f'There are no files under "{uri}" to copy.')
        try:
            version = transaction.models.upload(pipeline.location, pipeline.spec, model, pipeline.name)
        except ModelUploadRejected as error:
            return _build_failed_ending(_STATUS_CODES[error.status], str(error))
        transaction.pipelines.set_model(pipeline.id, version.model_name)
        return None

    def _get_model_directory_or_none(self, job: Job, best_trial: Trial | None) -> str | None:
        """Return AIP_MODEL_DIR of the job or, for a tuning job, of its best trial."""
        if job.kind == CUSTOM_JOB:
            return model_folder(job.spec["jobSpec"])
        if best_trial is None:
            return None
        return model_folder(job.spec["trialJobSpec"], str(best_trial.number))


def _find_best_trial_or_none(job: Job, trials_of_job: list[Trial]) -> Trial | None:
    if job.kind == CUSTOM_JOB:
        return None
    best = find_best(job_json(job, trials_of_job))
    return next((trial for trial in trials_of_job if best is not None and str(trial.number) == best["id"]), None)


def _build_failed_ending(rpc_code: int, message: str) -> Ending:
    return Ending(FAILED, rpc_code, message, now_ns())
