"""What a training pipeline came to: its model, its job, and what that job found."""

import contextlib
from collections.abc import Mapping
from typing import Any

from vertex_api.errors import NotFound
from vertex_api.kinds import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.names import ResourceName
from vertex_api.validation.canonical import restore_spec
from vertex_api.validation.pipeline_tasks import get_backing_job_name

from ..runtime.target import Target
from .recovery import ownership

Job = Mapping[str, Any]
STUDY = "tuningJob"
"""Where `with_studies` puts the tuning job of a pipeline that tunes, beside the pipeline's own fields."""


def is_pipeline(job: Job) -> bool:
    """Whether a job as the service shows it is a training pipeline."""
    return TRAINING_PIPELINE.spec_field in job


def with_studies(at: Target, owner: str, jobs: Mapping[str, Job]) -> dict[str, Job]:
    """The jobs by name, each pipeline that tunes with its tuning job: one list call more, and only if there is one.

    A tuning job that is not listed with its pipeline's labels is asked for by its name: that Vertex AI gives it these
    labels is not documented.
    """
    tuning = {name: _study_name(job) for name, job in jobs.items() if is_pipeline(job)}
    wanted = {study: name for name, study in tuning.items() if study}
    if not wanted:
        return dict(jobs)
    listed = at.client.list(HYPERPARAMETER_TUNING_JOB, at.parent, ownership.filter_of(owner))
    studies = {job["name"]: job for job in listed if job["name"] in wanted}
    for study in wanted.keys() - studies.keys():
        with contextlib.suppress(NotFound):
            studies[study] = at.client.get(ResourceName.parse(study))
    return {**jobs, **{wanted[study]: {**jobs[wanted[study]], STUDY: job} for study, job in studies.items()}}


def searching(at: Target, job: Job) -> Job:
    """What has a job's trials: itself, or for one call the tuning job of a pipeline that tunes. Raises VertexError."""
    if study := _study_name(job):
        with contextlib.suppress(NotFound):
            return at.client.get(ResourceName.parse(study))
    return job


def uploaded(pipeline: Job) -> dict[str, Any]:
    """`backingJob` and `model`, the resource names of the job that trains and of the model, once there are such."""
    model = pipeline.get("modelToUpload", {}).get("name")
    names = {"backingJob": get_backing_job_name(pipeline), "model": model}
    return {key: name for key, name in names.items() if name}


def training_of(pipeline: Job) -> Job:
    """The job that trains, as far as it is known here: with its trials where `with_studies` has found them."""
    return pipeline[STUDY] if STUDY in pipeline else restore_spec(TRAINING_PIPELINE, pipeline).training_job.fields


def _study_name(pipeline: Job) -> str | None:
    name = get_backing_job_name(pipeline)
    return name if name and ResourceName.parse(name).kind == HYPERPARAMETER_TUNING_JOB else None
