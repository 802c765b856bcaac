"""What the results of a training pipeline are made of: its model, and the job that it runs.

A reader of pipelines attaches the tuning job that one runs under `TUNING_JOB`.
"""

from collections.abc import Mapping
from typing import Any

from vertex_api.job_kinds import TRAINING_PIPELINE
from vertex_api.training_pipelines.backing_job import get_backing_job_resource_name_or_none
from vertex_api.validation.canonical_spec import canonicalize_stored_spec

Job = Mapping[str, Any]
TUNING_JOB = "tuningJob"
"""The key of the tuning job of a pipeline, beside the pipeline's own fields."""


def is_pipeline(fetched_job: Job) -> bool:
    """Return whether a job, as the service shows it, is a training pipeline."""
    return TRAINING_PIPELINE.spec_field in fetched_job


def get_backing_job_and_model_names_by_result(pipeline: Job) -> dict[str, str]:
    """Return the resource names of the job that trains, `backingJob`, and of the `model`: of those that exist."""
    model = pipeline.get("modelToUpload", {}).get("name")
    names = {"backingJob": get_backing_job_resource_name_or_none(pipeline), "model": model}
    return {key: name for key, name in names.items() if name}


def get_attached_tuning_job_or_declared_backing_job(pipeline: Job) -> Job:
    """Return the job that trains: the attached tuning job, else what the pipeline's spec says."""
    if TUNING_JOB in pipeline:
        tuning_job: Job = pipeline[TUNING_JOB]
        return tuning_job
    return canonicalize_stored_spec(TRAINING_PIPELINE, pipeline).backing_spec_or_self.fields
