"""Jobs, trials, pipelines, models and operations as the API's JSON shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vertex_api import types
from vertex_api.fields import int64_as_strings
from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.validation.pipeline_tasks import backing_kind
from vertex_emulator.database.records import Job, ModelVersion, Operation, PipelineProgress, Trial
from vertex_emulator.times import format_time

_TYPES = "type.googleapis.com/google.cloud.aiplatform.v1."


def job_json(job: Job, trials: Iterable[Trial] = ()) -> dict[str, Any]:
    """A job as GET answers it: the request's fields and those that the service sets; int64 values as strings."""
    shown = {"name": job.name, **int64_as_strings(job.kind.message, job.spec), "state": shown_state(job)}
    for field, moment in (
        ("createTime", job.created),
        ("startTime", job.started),
        ("endTime", job.ended),
        ("updateTime", job.updated),
    ):
        if moment is not None:
            shown[field] = format_time(moment)
    if job.is_terminal and job.ending is not None and job.ending.error is not None:
        shown["error"] = job.ending.error
    listed = [trial_json(job, trial) for trial in trials]
    if job.kind == HYPERPARAMETER_TUNING_JOB and listed:
        shown["trials"] = listed
    return shown


def pipeline_json(pipeline: Job, progress: PipelineProgress | None) -> dict[str, Any]:
    """A training pipeline as GET answers it, with the names of its job and of its model once it has them."""
    shown = job_json(pipeline)
    if progress is not None:
        kind = backing_kind(pipeline.spec)
        # Google's SDK reads the first name; the second is made after it.
        field = "backingCustomJob" if kind == CUSTOM_JOB else "backingHyperparameterTuningJob"
        shown["trainingTaskMetadata"] = {field: f"{pipeline.location.name}/{kind.collection}/{progress.job}"}
        if progress.model is not None:
            shown["modelToUpload"] = {**shown["modelToUpload"], "name": progress.model}
    return shown


def shown_state(job: Job) -> str:
    """The state under the API's name: a pipeline has the states of a job under names of its own."""
    if job.kind == TRAINING_PIPELINE:
        return job.state.replace("JOB_STATE_", "PIPELINE_STATE_")
    return job.state


def trial_json(study: Job, trial: Trial) -> dict[str, Any]:
    """A trial as it stands in a tuning job's `trials`."""
    shown: dict[str, Any] = {
        "name": f"{study.location.name}/studies/{study.id}/trials/{trial.number}",
        "id": str(trial.number),
        "state": trial.state,
        "parameters": [{"parameterId": name, "value": value} for name, value in trial.parameters.items()],
        "customJob": f"{study.location.name}/customJobs/{trial.job}",
    }
    if trial.measurements:
        shown["measurements"] = [int64_as_strings(types.Measurement, found) for found in trial.measurements]
    if trial.final is not None:
        shown["finalMeasurement"] = int64_as_strings(types.Measurement, trial.final)
    if trial.started is not None:
        shown["startTime"] = format_time(trial.started)
    if trial.ended is not None:
        shown["endTime"] = format_time(trial.ended)
    if trial.infeasible_reason is not None:
        shown["infeasibleReason"] = trial.infeasible_reason
    return shown


def model_json(version: ModelVersion, versions: Iterable[ModelVersion]) -> dict[str, Any]:
    """A version of a model as GET answers it; `versions` are all of the model's."""
    versions = list(versions)
    shown = {
        "name": version.model_name,
        **int64_as_strings(types.Model, version.spec),
        "versionId": str(version.version),
        "versionCreateTime": format_time(version.created),
        "versionUpdateTime": format_time(version.updated),
        "createTime": format_time(min(each.created for each in versions)),
        "updateTime": format_time(max(each.updated for each in versions)),
        "etag": f"{version.updated:x}",
        "modelSourceInfo": {"sourceType": "CUSTOM"},
    }
    if version.aliases:
        shown["versionAliases"] = list(version.aliases)
    if version.pipeline is not None:
        shown["trainingPipeline"] = version.pipeline
    return shown


def operation_json(operation: Operation) -> dict[str, Any]:
    """A finished operation."""
    moment = format_time(operation.created)
    return {
        "name": operation.name,
        "metadata": {
            "@type": f"{_TYPES}{operation.metadata_type}",
            "genericMetadata": {"createTime": moment, "updateTime": moment},
        },
        "done": True,
        "response": dict(operation.response),
    }


def of_version(version: str, reply: dict[str, Any]) -> dict[str, Any]:
    """An answer with the message types of the version that was asked: clients of v1beta1 know no types of v1."""
    if "operations" in reply:
        return {**reply, "operations": [of_version(version, operation) for operation in reply["operations"]]}
    if not reply.get("done"):
        return reply
    typed = {field: reply[field] for field in ("metadata", "response")}
    new = _TYPES.replace(".v1.", f".{version}.")
    return reply | {key: any_ | {"@type": any_["@type"].replace(_TYPES, new)} for key, any_ in typed.items()}
