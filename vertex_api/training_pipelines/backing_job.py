"""The job that a training pipeline runs, which the pipeline holds as the inputs of its task definition.

The inputs are free JSON. Google's SDK writes them in a mix of snake_case and camelCase with every number as a float,
because they travel as a google.protobuf.Value.
"""

from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from vertex_api.job_kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind

_DEFINITIONS = "gs://google-cloud-aiplatform/schema/trainingjob/definition/"
CUSTOM_TASK = f"{_DEFINITIONS}custom_task_1.0.0.yaml"
TUNING_TASK = f"{_DEFINITIONS}hyperparameter_tuning_task_1.0.0.yaml"
TASK_KINDS = {CUSTOM_TASK: CUSTOM_JOB, TUNING_TASK: HYPERPARAMETER_TUNING_JOB}
"""The kind of job that each task definition runs."""

DEFINITION_FIELD, INPUTS_FIELD = "trainingTaskDefinition", TRAINING_PIPELINE.spec_field
SHARED_FIELDS = ("displayName", "labels", "encryptionSpec")
"""The fields of the job that are set on the pipeline itself."""

NAME_ENDINGS = {CUSTOM_TASK: "custom-job", TUNING_TASK: "hyperparameter-tuning-job"}
"""What the service appends to the display name of a pipeline for that of its job."""


def get_backing_job_kind(pipeline: Mapping[str, Any]) -> Kind:
    """Return the kind of job that a canonical pipeline runs."""
    return TASK_KINDS[pipeline[DEFINITION_FIELD]]


def get_backing_job_resource_name_or_none(pipeline: Mapping[str, Any]) -> str | None:
    """Return the resource name of the job that a pipeline of the service runs, None before there is one.

    Google's SDK reads `backingCustomJob`; the name of the other field follows its pattern.
    """
    metadata = pipeline.get("trainingTaskMetadata") or {}
    name = metadata.get("backingCustomJob") or metadata.get("backingHyperparameterTuningJob")
    return str(name) if name else None


def convert_backing_job_path_to_pipeline_path(
    backing_job_kind: Kind, path: tuple[str | int, ...]
) -> tuple[str | int, ...]:
    """Return where the field at `path` of a backing job is in its pipeline."""
    if path and path[0] in SHARED_FIELDS:
        return path
    return (INPUTS_FIELD, *(path[1:] if backing_job_kind == CUSTOM_JOB else path))


def convert_task_inputs_to_job(kind: Kind, pipeline: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job of a kind with a task's inputs, and the shared fields of its pipeline."""
    shared = {name: pipeline[name] for name in SHARED_FIELDS if name in pipeline}
    if kind == CUSTOM_JOB:
        return {**shared, kind.spec_field: inputs}
    return {**{name: value for name, value in inputs.items() if to_camel(name) not in SHARED_FIELDS}, **shared}


def convert_job_to_task_inputs(kind: Kind, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of the task that runs a job."""
    if kind == CUSTOM_JOB:
        return dict(job[kind.spec_field])
    return {name: value for name, value in job.items() if name not in SHARED_FIELDS}
