"""The jobs that training pipelines run, fetched and attached to them, and the names of what a pipeline creates."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from vertex_api.client_errors import NotFound
from vertex_api.job_kinds import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.resource_names import ResourceName
from vertex_api.training_pipelines.backing_job import get_backing_job_resource_name_or_none
from vertex_api.validation.canonical_spec import canonicalize_stored_spec

from ..runtime.api_target import Target
from .recovery.labels import build_stack_filter

Job = Mapping[str, Any]
TUNING_JOB = "tuningJob"
"""The key under which `fetch_and_attach_tuning_jobs` puts the tuning job of a pipeline, beside its own fields."""


def is_pipeline(fetched_job: Job) -> bool:
    """Return whether a job, as the service shows it, is a training pipeline."""
    return TRAINING_PIPELINE.spec_field in fetched_job


def fetch_and_attach_tuning_jobs(
    api: Target, project_and_stack_name: str, jobs_by_name: Mapping[str, Job]
) -> dict[str, Job]:
    """Return the jobs by name, with its tuning job in each pipeline that runs one: one more list call if there is one.

    Whether Vertex AI gives the tuning job its pipeline's labels is not documented.
    """
    tuning_names = {name: tuning for name, job in jobs_by_name.items() if (tuning := _get_tuning_job_name(job))}
    tuning_jobs = fetch_existing_jobs_by_name(api, project_and_stack_name, set(tuning_names.values()))
    attached = {name: tuning_jobs[tuning] for name, tuning in tuning_names.items() if tuning in tuning_jobs}
    return {**jobs_by_name, **{name: {**jobs_by_name[name], TUNING_JOB: job} for name, job in attached.items()}}


def fetch_existing_jobs_by_name(
    api: Target, project_and_stack_name: str, resource_names: Collection[str]
) -> dict[str, Job]:
    """Return those of the jobs that exist, by resource name.

    This takes one list call per collection, and a call for each job that is not listed with the stack's labels.
    """
    jobs: dict[str, Job] = {}
    for kind in {ResourceName.parse(name).kind for name in resource_names}:
        listed = api.client.list(kind, api.parent, build_stack_filter(project_and_stack_name))
        jobs |= {job["name"]: job for job in listed if job["name"] in resource_names}
    for name in set(resource_names) - jobs.keys():
        with suppress(NotFound):
            jobs[name] = api.client.require(ResourceName.parse(name))
    return jobs


def fetch_tuning_job_or_itself(api: Target, job: Job) -> Job:
    """Return the tuning job that a pipeline runs, with one call; any other job itself. Raises VertexError."""
    if tuning_name := _get_tuning_job_name(job):
        with suppress(NotFound):
            return api.client.require(ResourceName.parse(tuning_name))
    return job


def get_created_names_by_output_key(pipeline: Job) -> dict[str, str]:
    """Return the resource names of the job that trains, `backingJob`, and of the `model`: of those that exist."""
    model = pipeline.get("modelToUpload", {}).get("name")
    names = {"backingJob": get_backing_job_resource_name_or_none(pipeline), "model": model}
    return {key: name for key, name in names.items() if name}


def get_attached_tuning_or_backing_job(pipeline: Job) -> Job:
    """Return the job that trains: the one that `fetch_and_attach_tuning_jobs` found, else what its spec says."""
    if TUNING_JOB in pipeline:
        tuning_job: Job = pipeline[TUNING_JOB]
        return tuning_job
    return canonicalize_stored_spec(TRAINING_PIPELINE, pipeline).backing_job_or_self.fields


def _get_tuning_job_name(pipeline: Job) -> str | None:
    name = get_backing_job_resource_name_or_none(pipeline)
    return name if name and ResourceName.parse(name).kind == HYPERPARAMETER_TUNING_JOB else None
