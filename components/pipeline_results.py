"""What a training pipeline came to: its model, its job, and what that job found."""

import contextlib
from collections.abc import Mapping
from typing import Any

from components import ownership
from components.target import Target
from vertex.errors import NotFound
from vertex.kinds import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex.names import ResourceName
from vertex.pipelines import backing_job, backing_name, held

Job = Mapping[str, Any]
_OF_THE_STUDY = ("studySpec", "trialJobSpec", "maxTrialCount", "trials")


def is_pipeline(job: Job) -> bool:
    """Whether a job as the service shows it is a training pipeline."""
    return TRAINING_PIPELINE.spec_field in job


def with_studies(at: Target, owner: str, jobs: Mapping[str, Job]) -> dict[str, Job]:
    """The jobs by name, a pipeline that tunes with its study: one list call more, and only if there is such a pipeline.

    The study's fields stand beside the pipeline's own, as they do in a tuning job. A tuning job that is not listed with
    its pipeline's labels is asked for by its name: that Vertex AI gives it these labels is not documented.
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
    found = dict(jobs)
    for study, job in studies.items():
        found[wanted[study]] = {**jobs[wanted[study]], **{key: job[key] for key in _OF_THE_STUDY if key in job}}
    return found


def uploaded(pipeline: Job) -> dict[str, Any]:
    """`backingJob` and `model`, the resource names of the job that trains and of the model, once there are such."""
    model = pipeline.get("modelToUpload", {}).get("name")
    names = {"backingJob": backing_name(pipeline), "model": model}
    return {key: name for key, name in names.items() if name}


def training_of(pipeline: Job) -> Job:
    """What says of a pipeline's job what it is: the study that `with_studies` has found, or what was submitted."""
    return pipeline if "studySpec" in pipeline else backing_job(held(pipeline))


def _study_name(pipeline: Job) -> str | None:
    name = backing_name(pipeline)
    return name if name and ResourceName.parse(name).kind == HYPERPARAMETER_TUNING_JOB else None
