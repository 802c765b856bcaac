"""The reconciler of training pipelines: it submits the job that runs the task and uploads the model.

Each step looks at the database, does what is missing, and can be repeated. One transaction writes the job and
the link from the pipeline to it, another one the model and the pipeline's end.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from vertex_api.jobspec import model_folder
from vertex_api.names import CUSTOM_JOB
from vertex_api.pipelines import backing_kind, job_of_pipeline
from vertex_api.studies import find_best
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import FAILED, PENDING, RUNNING, SUCCEEDED, Ending, Job, Trial
from vertex_emulator.errors import InvalidBucketUri, ModelUploadRejected
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.names import new_id
from vertex_emulator.representation import job_json
from vertex_emulator.scheduling import failures, lifecycle
from vertex_emulator.times import now_ns

_NO_ARTIFACT_WARNING = "modelToUpload: without a baseOutputDirectory or an artifactUri the model will have no artifact."
_CODES = {"NOT_FOUND": failures.NOT_FOUND, "ALREADY_EXISTS": failures.ALREADY_EXISTS}
_SPLITS = ("training", "validation", "test")
_FORMATS = ("jsonl", "csv")
_SPLIT_FIELDS = ("fractionSplit", "filterSplit", "predefinedSplit", "timestampSplit", "stratifiedSplit")
_FILTER_FIELDS = ("annotationSchemaUri", "annotationsFilter", "savedQueryId", "persistMlUseAssignment")


@dataclass(frozen=True)
class Reconciler:
    """Advances training pipelines; `wake` schedules a step for a job."""

    database: Database
    data: DataFolder
    wake: Callable[[str], None]

    def advance(self, pipeline: Job) -> None:
        """Take the next step; each change of the pipeline's job schedules another one."""
        if pipeline.is_terminal:
            return
        with self.database.read() as transaction:
            progress = transaction.pipelines.get(pipeline.id)
            job = transaction.jobs.get(progress.job) if progress is not None else None
            trials = transaction.trials.all(job.id) if job is not None and job.is_terminal else []
        if job is None:
            self._submit(pipeline)
        elif not job.is_terminal:
            self._follow(pipeline, job)
        else:
            self._end(pipeline, job, trials)

    def _submit(self, pipeline: Job) -> None:
        """Enqueue the job of the pipeline's task; end the pipeline if it was cancelled before."""
        kind, spec = backing_kind(pipeline.spec), job_of_pipeline(pipeline.spec)
        warnings = []
        model = pipeline.spec.get("modelToUpload")
        if model is not None and "artifactUri" not in model and not model_folder(spec[kind.spec_field]):
            warnings.append(_NO_ARTIFACT_WARNING)
        if "inputDataConfig" in pipeline.spec:
            data = InputData.find(pipeline.spec["inputDataConfig"], self.data.buckets)
            spec[kind.spec_field] = data.add_to(spec[kind.spec_field])
            warnings += data.warnings
        with self.database.write() as transaction:
            current = transaction.jobs.get(pipeline.id)
            if current is None or current.is_terminal:
                return
            if current.ending is not None:
                transaction.jobs.end(current, current.ending)
                return
            job = lifecycle.enqueue(transaction, new_id(), kind, pipeline.location, spec, warnings)
            transaction.pipelines.add(pipeline.id, job.id)
            transaction.jobs.log(pipeline.id, f"The pipeline's task is {job.name}.")
        self.wake(job.id)

    def _follow(self, pipeline: Job, job: Job) -> None:
        """Forward a cancellation to the job, or copy its start to the pipeline."""
        with self.database.write() as transaction:
            current, current_job = transaction.jobs.get(pipeline.id), transaction.jobs.get(job.id)
            if current is None or current_job is None:
                return
            must_cancel = current.ending is not None and current_job.ending is None
            if must_cancel:
                lifecycle.cancel(transaction, job.id)
            elif current.ending is None and current_job.started is not None and current.state == PENDING:
                transaction.jobs.update(current, state=RUNNING, started=current_job.started)
        if must_cancel:
            self.wake(job.id)

    def _end(self, pipeline: Job, job: Job, trials: list[Trial]) -> None:
        """End the pipeline as its job has ended; a model is uploaded, of a tuning job that of its best trial."""
        best = _best_trial(job, trials)
        artifact_uri = _model_directory(job, best)
        with self.database.write() as transaction:
            current = transaction.jobs.get(pipeline.id)
            if current is None or current.is_terminal:
                return
            assert job.ending is not None
            ending = current.ending or replace(job.ending, at=now_ns())
            if ending.state == SUCCEEDED and "modelToUpload" in pipeline.spec:
                ending = self._upload(transaction, pipeline, artifact_uri) or ending
            if best is not None:
                transaction.pipelines.set_best_trial(pipeline.id, best.job)
            started = current.started or job.started
            transaction.jobs.end(current, ending, **({} if started is None else {"started": started}))

    def _upload(self, transaction: Transaction, pipeline: Job, artifact_uri: str | None) -> Ending | None:
        """Upload the model; return the pipeline's ending if that fails."""
        model = dict(pipeline.spec["modelToUpload"])
        uri = model.setdefault("artifactUri", artifact_uri)
        if uri is None:
            del model["artifactUri"]
        elif uri == artifact_uri and not BucketTree(self.data.buckets).has_objects(uri):
            return Ending(FAILED, failures.NOT_FOUND, f'There are no files under "{uri}" to copy.', now_ns())
        try:
            version = transaction.models.upload(pipeline.location, pipeline.spec, model, pipeline.name)
        except ModelUploadRejected as error:
            return Ending(FAILED, _CODES[error.status], str(error), now_ns())
        transaction.pipelines.set_model(pipeline.id, version)
        return None


def _best_trial(job: Job, trials: list[Trial]) -> Trial | None:
    if job.kind == CUSTOM_JOB:
        return None
    best = find_best(job_json(job, trials))
    return next((trial for trial in trials if best is not None and str(trial.number) == best["id"]), None)


def _model_directory(job: Job, best: Trial | None) -> str | None:
    """AIP_MODEL_DIR of the job or, for a tuning job, of its best trial."""
    if job.kind == CUSTOM_JOB:
        return model_folder(job.spec["jobSpec"])
    if best is None:
        return None
    return model_folder(job.spec["trialJobSpec"], str(best.number))


@dataclass(frozen=True)
class InputData:
    """The data that an inputDataConfig gives to a pipeline's job: its `AIP_*` variables, and warnings for its log.

    The emulator has no dataset service. It looks for the exported files in the folder to which Vertex AI would export
    them. Source of names and forms: the discovery document's InputDataConfig.
    """

    variables: dict[str, str]
    warnings: list[str]

    @classmethod
    def find(cls, config: Mapping[str, Any], buckets: Path) -> "InputData":
        """Resolve a canonical InputDataConfig.

        The files are in the folder of gcsDestination or in its last `dataset-*` folder by name, which a copied export
        has.
        """
        uri = config["gcsDestination"]["outputUriPrefix"].rstrip("/")
        tree = BucketTree(buckets)
        exports = sorted(_matching(tree, uri, "dataset-*", os.DirEntry.is_dir), reverse=True)
        datasets = [
            (place, form)
            for place in (uri, *(f"{uri}/{export}" for export in exports))
            for form in _FORMATS
            if _matching(tree, place, f"training-*.{form}")
        ]
        place, form = datasets[0] if datasets else (uri, "jsonl" if "annotationSchemaUri" in config else "csv")
        variables = {f"AIP_{split.upper()}_DATA_URI": f"{place}/{split}-*.{form}" for split in _SPLITS}

        def warn() -> Iterator[str]:
            dataset = config["datasetId"]
            yield f"this machine has no dataset service; the files of dataset {dataset} are read from {uri}."
            if not datasets:
                yield f"{uri} has no files training-*.jsonl or training-*.csv; put them there before the job starts."
            if unused := [name for name in _SPLIT_FIELDS + _FILTER_FIELDS if name in config]:
                yield f"on this machine {', '.join(unused)} have no effect; split the files yourself."
            missing = [split for split in _SPLITS[1:] if datasets and not _matching(tree, place, f"{split}-*.{form}")]
            if missing:
                yield f"there are no {' and no '.join(missing)} files beside the training files."

        return cls({"AIP_DATA_FORMAT": form, **variables}, [f"inputDataConfig: {warning}" for warning in warn()])

    def add_to(self, job_spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of a CustomJobSpec whose containers have the variables, before their own."""
        added = [{"name": name, "value": value} for name, value in self.variables.items()]
        pools = []
        for pool in job_spec["workerPoolSpecs"]:
            task = next((name for name in ("containerSpec", "pythonPackageSpec") if name in pool), None)
            pools.append({**pool, task: {**pool[task], "env": [*added, *pool[task].get("env", [])]}} if task else pool)
        return {**job_spec, "workerPoolSpecs": pools}


def _matching(tree: BucketTree, uri: str, pattern: str, is_kind: Any = os.DirEntry.is_file) -> list[str]:
    """The names of the files or folders in a folder that match; none if it cannot be read."""
    try:
        with tree.scan(uri) as entries:
            matching = [entry for entry in entries if fnmatchcase(entry.name, pattern)]
            return [entry.name for entry in matching if is_kind(entry, follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError, PermissionError, InvalidBucketUri):
        return []
