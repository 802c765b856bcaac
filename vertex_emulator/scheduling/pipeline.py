"""How a training pipeline goes on: the job that runs its task, and the model that comes of it.

Each step looks at the database, does what is missing, and can be repeated. One transaction writes the job and
the link from the pipeline to it, another one the model and the pipeline's end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vertex_api import trials
from vertex_api.catalog.job_defaults import get_model_directory, get_output_directories
from vertex_api.kinds import CUSTOM_JOB
from vertex_api.validation.pipeline_tasks import backing_kind, build_backing_job
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import FAILED, PENDING, QUEUED, RUNNING, SUCCEEDED, Ending, Job, Trial
from vertex_emulator.errors import ModelUploadRejected
from vertex_emulator.gcs import buckets
from vertex_emulator.names import new_id
from vertex_emulator.scheduling.cancelling import cancel
from vertex_emulator.scheduling.input_data import input_data, with_data
from vertex_emulator.scheduling.model_upload import upload
from vertex_emulator.scheduling.submission import submit
from vertex_emulator.times import now_ns

_NO_OUTPUT = "modelToUpload: without a baseOutputDirectory or an artifactUri the model will have no artifact."
_CODES = {"NOT_FOUND": 5, "ALREADY_EXISTS": 6}


@dataclass(frozen=True)
class PipelineReconciler:
    """Advances training pipelines; `wake` asks for a look at a job."""

    database: Database
    data: DataFolder
    wake: Callable[[str], None]

    def advance(self, pipeline: Job) -> None:
        """Take the next step; every change of the pipeline's job brings another look."""
        if pipeline.is_terminal:
            return
        with self.database.read_transaction() as transaction:
            progress = transaction.pipelines.get_progress([pipeline.id]).get(pipeline.id)
            job = transaction.get_job(progress.job) if progress is not None else None
            found = transaction.list_trials(job.id) if job is not None else []
        if job is None:
            self._start(pipeline)
        elif not job.is_terminal:
            self._follow(pipeline, job)
        else:
            self._finish(pipeline, job, found)

    def _start(self, pipeline: Job) -> None:
        """Submit the job, unless the pipeline was told to end before it had one."""
        kind, spec = backing_kind(pipeline.spec), build_backing_job(pipeline.spec)
        warnings = []
        model = pipeline.spec.get("modelToUpload")
        if model is not None and "artifactUri" not in model and not get_output_directories(spec[kind.spec_field]):
            warnings.append(_NO_OUTPUT)
        if "inputDataConfig" in pipeline.spec:
            data = input_data(pipeline.spec["inputDataConfig"], self.data.buckets)
            spec[kind.spec_field] = with_data(spec[kind.spec_field], data)
            warnings += data.warnings
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(pipeline.id)
            if current is None or current.is_terminal:
                return
            if current.ending is not None:
                transaction.end_job(current, current.ending)
                return
            job = submit(transaction, new_id(), kind, pipeline.location, spec, warnings)
            transaction.pipelines.set_job(pipeline.id, job.id)
            transaction.log_service_message(pipeline.id, f"The pipeline's task is {job.name}.")
            transaction.update_job(current, state=PENDING)
        self.wake(job.id)

    def _follow(self, pipeline: Job, job: Job) -> None:
        with self.database.write_transaction() as transaction:
            current, job_now = transaction.get_job(pipeline.id), transaction.get_job(job.id)
            if current is None or job_now is None:
                return
            if current.ending is not None:
                if job_now.ending is None:
                    cancel(transaction, job.id)
            elif job_now.started is not None and current.state in (QUEUED, PENDING):
                transaction.update_job(current, state=RUNNING, started=job_now.started)
            must_wake = current.ending is not None and job_now.ending is None
        if must_wake:
            self.wake(job.id)

    def _finish(self, pipeline: Job, job: Job, found: list[Trial]) -> None:
        artifact = self._artifact(job, found)
        with self.database.write_transaction() as transaction:
            current = transaction.get_job(pipeline.id)
            if current is None or current.is_terminal:
                return
            ending = current.ending or _copied(job)
            if ending.state == SUCCEEDED and "modelToUpload" in pipeline.spec:
                ending = self._upload(transaction, pipeline, artifact) or ending
            started = current.started or job.started
            transaction.end_job(current, ending, **({} if started is None else {"started": started}))

    def _upload(self, transaction: Transaction, pipeline: Job, artifact: str | None) -> Ending | None:
        """Upload the model; how the pipeline ends when that cannot be."""
        model = dict(pipeline.spec["modelToUpload"])
        uri = model.setdefault("artifactUri", artifact)
        if uri is None:
            del model["artifactUri"]
        elif uri == artifact and not self._has_files(uri):
            return _failed(_CODES["NOT_FOUND"], f'There are no files under "{uri}" to copy.')
        try:
            version = upload(
                transaction,
                pipeline.location,
                model,
                pipeline.spec.get("modelId", ""),
                pipeline.spec.get("parentModel", ""),
                pipeline.name,
            )
        except ModelUploadRejected as error:
            return _failed(_CODES[error.status], str(error))
        transaction.pipelines.set_model(pipeline.id, version.model_name)
        return None

    def _has_files(self, uri: str) -> bool:
        return any(path.is_file() for path in buckets.folder(self.data.buckets, uri).rglob("*"))

    def _artifact(self, job: Job, found: list[Trial]) -> str | None:
        """AIP_MODEL_DIR of the job; of a tuning job, that of its best trial."""
        if job.kind == CUSTOM_JOB:
            return get_model_directory(job.spec["jobSpec"])
        best = trials.find_best_trial(
            {"studySpec": job.spec["studySpec"], "trials": [_measured(trial) for trial in found]}
        )
        if best is None:
            return None
        return get_model_directory(job.spec["trialJobSpec"], best["id"])


def _measured(trial: Trial) -> dict[str, Any]:
    return {"id": str(trial.number), "state": trial.state, "finalMeasurement": trial.final or {}}


def _copied(job: Job) -> Ending:
    """The end of a pipeline is that of its job."""
    assert job.ending is not None
    return Ending(job.ending.state, job.ending.code, job.ending.message, now_ns())


def _failed(code: int, message: str) -> Ending:
    return Ending(FAILED, code, message, now_ns())
