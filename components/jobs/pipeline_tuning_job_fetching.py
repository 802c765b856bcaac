"""Fetching of jobs, and of the tuning jobs that training pipelines run, which are attached to those."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from vertex_api.errors import NotFound
from vertex_api.job import TUNING_JOB
from vertex_api.names import HYPERPARAMETER_TUNING_JOB, ResourceName
from vertex_api.pipelines import backing_job_name

from ..runtime import target
from ..runtime.target import Target
from .recovery.job_labels import build_stack_filter

Job = Mapping[str, Any]


def fetch_existing_jobs_with_tuning_jobs_in_pipelines(
    parent: str, project_and_stack_name: str, job_ids_by_name: Mapping[str, str], created_since: str | None = None
) -> dict[str, Job]:
    """Return the jobs as they are now, by name, with the tuning jobs of pipelines; those that are gone are left out.

    `created_since` is when the oldest of them was created, if that is known: older jobs are then not listed.
    """
    api = target.resolve(parent)
    jobs = fetch_existing_jobs_by_api_name(api, project_and_stack_name, set(job_ids_by_name.values()), created_since)
    existing = {name: jobs[id_] for name, id_ in job_ids_by_name.items() if id_ in jobs}
    return fetch_and_attach_tuning_jobs_to_copies(api, project_and_stack_name, existing)


def fetch_and_attach_tuning_jobs_to_copies(
    api: Target, project_and_stack_name: str, jobs_by_name: Mapping[str, Job]
) -> dict[str, Job]:
    """Return the jobs by name, with its tuning job in each pipeline that runs one: one more list call if there is one.

    Whether Vertex AI gives the tuning job its pipeline's labels is not documented.
    """
    tuning_names = {name: tuning for name, job in jobs_by_name.items() if (tuning := _get_tuning_job_name_or_none(job))}
    # A pipeline creates its tuning job after itself.
    created_since = get_oldest_create_time(jobs_by_name[name] for name in tuning_names)
    tuning_jobs = fetch_existing_jobs_by_api_name(
        api, project_and_stack_name, set(tuning_names.values()), created_since
    )
    attached = {name: tuning_jobs[tuning] for name, tuning in tuning_names.items() if tuning in tuning_jobs}
    return {**jobs_by_name, **{name: {**jobs_by_name[name], TUNING_JOB: job} for name, job in attached.items()}}


def fetch_existing_jobs_by_api_name(
    api: Target, project_and_stack_name: str, api_names: Collection[str], created_since: str | None = None
) -> dict[str, Job]:
    """Return those of the jobs that exist, by the API's names of them, `projects/…`.

    This takes one list call per collection, and a call for each job that is not listed with the stack's labels.
    """
    jobs: dict[str, Job] = {}
    filter_ = build_stack_filter(project_and_stack_name)
    if created_since:
        # The service may know fractions of a second that it does not show.
        oldest = datetime.fromisoformat(created_since).astimezone(UTC)
        filter_ += f' AND create_time>="{oldest:%Y-%m-%dT%H:%M:%SZ}"'
    for kind in {ResourceName.parse(name).kind for name in api_names}:
        listed = api.client.list(kind, api.parent, filter_)
        jobs |= {job["name"]: job for job in listed if job["name"] in api_names}
    for name in set(api_names) - jobs.keys():
        with suppress(NotFound):
            jobs[name] = api.client.require(ResourceName.parse(name))
    return jobs


def get_oldest_create_time(jobs: Iterable[Job]) -> str | None:
    """Return when the oldest of the jobs was created."""
    return min((str(job["createTime"]) for job in jobs), key=datetime.fromisoformat, default=None)


def fetch_tuning_job_of_pipeline_or_same_job(api: Target, job: Job) -> Job:
    """Return the tuning job that a pipeline runs, with one call; any other job itself. Raises VertexError."""
    if tuning_name := _get_tuning_job_name_or_none(job):
        with suppress(NotFound):
            return api.client.require(ResourceName.parse(tuning_name))
    return job


def _get_tuning_job_name_or_none(job: Job) -> str | None:
    name = backing_job_name(job)
    return name if name and ResourceName.parse(name).kind == HYPERPARAMETER_TUNING_JOB else None
