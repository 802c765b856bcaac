"""Jobs, trials, pipelines, models and operations in the JSON form that the API returns."""

from collections.abc import Iterable, Mapping
from typing import Any

from vertex_api import types
from vertex_api.messages import enums_as_numbers, int64_as_text
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.pipelines import BACKING_CUSTOM_JOB, BACKING_TUNING_JOB, backing_kind
from vertex_emulator.database.records import CANCELLED, Job, ModelVersion, Operation, PipelineProgress, Trial
from vertex_emulator.times import format_time, short_time

EXPORT_FORMAT = "custom-trained"
"""The format in which models with files can be exported (discovery document, ModelExportFormat)."""
_TYPE_PREFIX = "type.googleapis.com/google.cloud.aiplatform.v1."


def job_json(job: Job, trials: Iterable[Trial] = ()) -> dict[str, Any]:
    """Return a job as GET returns it: the request's fields and the service's own; int64 values are strings."""
    body = {"name": job.name, **int64_as_text(job.kind.typed_dict, job.spec), "state": api_state(job)}
    body |= job_times(job)
    if job.is_terminal and job.ending is not None and (error := job.ending.error) is not None:
        body["error"] = error
    if job.kind == HYPERPARAMETER_TUNING_JOB and (trial_bodies := [trial_json(trial) for trial in trials]):
        body["trials"] = trial_bodies
    return body


def pipeline_json(pipeline: Job, progress: PipelineProgress | None) -> dict[str, Any]:
    """Return a training pipeline as GET returns it, with the names of its job and its model once they exist."""
    body = job_json(pipeline)
    if progress is not None:
        kind = backing_kind(pipeline.spec)
        field = BACKING_CUSTOM_JOB if kind == CUSTOM_JOB else BACKING_TUNING_JOB
        parent = pipeline.location.name
        body["trainingTaskMetadata"] = {field: f"{parent}/{kind.collection}/{progress.job}"}
        if progress.best_trial_job is not None:
            best = f"{parent}/{CUSTOM_JOB.collection}/{progress.best_trial_job}"
            body["trainingTaskMetadata"]["bestTrialBackingCustomJob"] = best
        if progress.model is not None:
            body["modelToUpload"] = {**body["modelToUpload"], "name": progress.model}
            if progress.model_version is not None:
                body["modelToUpload"]["versionId"] = progress.model_version
    return body


def api_state(job: Job) -> str:
    """Return the state under the API's name: PIPELINE_STATE_… for a pipeline, JOB_STATE_… for other jobs."""
    return job.state.replace("JOB_STATE_", "PIPELINE_STATE_") if job.kind == TRAINING_PIPELINE else job.state


def trial_json(trial: Trial) -> dict[str, Any]:
    """Return a trial as it appears in a tuning job's `trials`: like captures of real ones, with its result only."""
    body: dict[str, Any] = {
        "id": str(trial.number),
        "state": trial.state,
        "parameters": [{"parameterId": name, "value": value} for name, value in trial.parameters.items()],
    }
    if trial.final is not None:
        final = {name: value for name, value in trial.final.items() if name != "elapsedDuration"}
        body["finalMeasurement"] = int64_as_text(types.Measurement, final)
    body |= time_fields(startTime=trial.started, endTime=trial.ended)
    if trial.infeasible_reason is not None:
        body["infeasibleReason"] = trial.infeasible_reason
    return body


_SUPPORTED = {
    "supportedDeploymentResourcesTypes": ["DEDICATED_RESOURCES"],
    "supportedInputStorageFormats": ["jsonl", "bigquery", "csv", "tf-record", "tf-record-gzip", "file-list"],
    "supportedOutputStorageFormats": ["jsonl", "bigquery"],
}
"""What the service says of a model with a container (docs/fidelity.md, captures); here nothing is deployed."""


def model_json(version: ModelVersion, all_versions: Iterable[ModelVersion]) -> dict[str, Any]:
    """Return a version of a model as GET returns it; `all_versions` are those of the model."""
    versions = list(all_versions)
    body = {
        "name": version.model_name,
        **int64_as_text(types.Model, version.spec),
        "versionId": str(version.version),
        "versionCreateTime": format_time(version.created),
        "versionUpdateTime": format_time(version.updated),
        "createTime": format_time(min(each.created for each in versions)),
        "updateTime": format_time(max(each.updated for each in versions)),
        "etag": f"{version.updated:x}",
        "modelSourceInfo": {"sourceType": "CUSTOM", **({"copy": True} if "originalModelInfo" in version.spec else {})},
    }
    if "containerSpec" in version.spec:
        body |= _SUPPORTED
    if "artifactUri" in version.spec:
        body["supportedExportFormats"] = [{"id": EXPORT_FORMAT, "exportableContents": ["ARTIFACT"]}]
    if version.aliases:
        body["versionAliases"] = list(version.aliases)
    if version.pipeline is not None:
        body["trainingPipeline"] = version.pipeline
    return body


def operation_json(operation: Operation) -> dict[str, Any]:
    """Return a finished operation as GET returns it."""
    moment = format_time(operation.created)
    return {
        "name": operation.name,
        "metadata": {
            "@type": f"{_TYPE_PREFIX}{operation.metadata_type}",
            "genericMetadata": {"createTime": moment, "updateTime": moment},
            **operation.metadata,
        },
        "done": True,
        "response": dict(operation.response),
    }


def with_api_version(reply: Mapping[str, Any], api_version: str) -> dict[str, Any]:
    """Return a reply with the message types of an API version: clients of v1beta1 do not know those of v1."""
    if "operations" in reply:
        operations = [with_api_version(operation, api_version) for operation in reply["operations"]]
        return {**reply, "operations": operations}
    if not reply.get("done"):
        return dict(reply)
    prefix = _TYPE_PREFIX.replace(".v1.", ".v1beta1." if api_version == "v1beta1" else ".v1.")
    typed = ((field, reply[field]) for field in ("metadata", "response"))
    return {
        **reply,
        **{field: {**value, "@type": value["@type"].replace(_TYPE_PREFIX, prefix)} for field, value in typed},
    }


_MESSAGES = {
    "customJobs": types.CustomJob,
    "hyperparameterTuningJobs": types.HyperparameterTuningJob,
    "trainingPipelines": types.TrainingPipeline,
    "models": types.Model,
    "timeSeries": types.TensorboardTimeSeries,
    "executions": types.Execution,
    "artifacts": types.Artifact,
}
_LISTS = {*_MESSAGES, "operations", "tensorboardTimeSeries"}


def with_enum_numbers(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply with numbers in place of the names of enums, as for `alt=json;enum-encoding=int`.

    It is a resource, a list or an operation. The inputs of a pipeline's task keep the names: they are no message.
    """
    if "@type" in (response := reply.get("response", {})):
        message = getattr(types, response["@type"].rpartition(".")[2], None)
        return {**reply, "response": enums_as_numbers(message, response)}
    collection = str(reply.get("name", "")).rpartition("/")[0].rpartition("/")[2]
    named: dict[str, Any] = enums_as_numbers(_MESSAGES.get(collection), reply)
    for key in named.keys() & _LISTS:
        named[key] = [with_enum_numbers(each) for each in named[key]]
    if "timeSeriesData" in named:
        named = enums_as_numbers(types.WriteTensorboardRunDataRequest, named)
    if "events" in named:
        named = enums_as_numbers(types.AddExecutionEventsRequest, named)
    return named


def job_times(job: Job) -> dict[str, str]:
    """Return the times of a job by field name, in the form that captures of real jobs have.

    Jobs start and end at whole seconds, here the next ones, so that no time is before an earlier one. A cancelled job
    ends with microseconds, and has a start although it never ran. Pipelines have microseconds throughout.
    """
    if job.kind == TRAINING_PIPELINE:
        return time_fields(createTime=job.created, startTime=job.started, endTime=job.ended, updateTime=job.updated)
    is_cancelled = job.state == CANCELLED
    ended = job.ended if job.ended is None or is_cancelled else _next_second(job.ended)
    started = ended if job.started is None and is_cancelled else job.started
    if started is not None:
        started = min(_next_second(started), ended or _next_second(started))
    updated = max(job.updated, started or 0, ended or 0)
    return {
        "createTime": format_time(job.created),
        **({} if started is None else {"startTime": short_time(started)}),
        **({} if ended is None else {"endTime": short_time(ended)}),
        "updateTime": short_time(updated),
    }


def _next_second(nanoseconds: int) -> int:
    return -(-nanoseconds // 10**9) * 10**9


def time_fields(**nanoseconds_by_field: int | None) -> dict[str, str]:
    """Return the times that are not None as RFC 3339 texts, by field name."""
    return {field: format_time(moment) for field, moment in nanoseconds_by_field.items() if moment is not None}
