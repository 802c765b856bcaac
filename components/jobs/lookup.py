"""What the API says of jobs now: the jobs themselves, the tuning jobs that pipelines run, and results."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from vertex_api.errors import NotFound, without_log_link
from vertex_api.job import TUNING_JOB, job_results
from vertex_api.names import HYPERPARAMETER_TUNING_JOB, SUCCEEDED_STATES, JobJson, ResourceName
from vertex_api.pipelines import backing_job_name

from ..errors import SubmitFailed
from ..runtime import target
from ..runtime.target import LOCAL_PREFIX, Target
from ..schema import interpolation
from .identity import stack_filter
from .inputs import Inputs
from .references import referenced_results


def jobs(parent: str, stack: str, ids: Mapping[str, str], created_since: str | None = None) -> dict[str, JobJson]:
    """Return the jobs as they are now, by name, with the tuning jobs of pipelines; those that are gone are left out.

    `ids` are their resource names by name. `created_since` is when the oldest of them was created, if that is known:
    older jobs are then not listed.
    """
    api = target.resolve(parent)
    found = _find(api, stack, set(ids.values()), created_since)
    return _with_tuning_jobs(api, stack, {name: found[id_] for name, id_ in ids.items() if id_ in found})


def results(parent: str, stack: str, ids: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the results of the jobs that have an id and exist, by name."""
    found = jobs(parent, stack, {name: id_ for name, id_ in ids.items() if id_ is not None})
    return {name: shown_results(parent, job) for name, job in found.items()}


def shown_results(parent: str, job: JobJson) -> dict[str, Any]:
    """Return the results of a job; those of a local one without links to the console, which has no log of it."""
    found = job_results(job)
    return interpolation.map_texts(found, without_log_link) if parent.startswith(LOCAL_PREFIX) else found


def _with_tuning_jobs(api: Target, stack: str, by_name: Mapping[str, JobJson]) -> dict[str, JobJson]:
    """Return the jobs by name, with its tuning job in each pipeline that runs one: one more list call if there is one.

    Whether Vertex AI gives the tuning job its pipeline's labels is not documented.
    """
    tuning_names = {name: tuning for name, job in by_name.items() if (tuning := _tuning_job_name(job))}
    # A pipeline creates its tuning job after itself.
    oldest = oldest_create_time(by_name[name] for name in tuning_names)
    tuning_jobs = _find(api, stack, set(tuning_names.values()), oldest)
    attached = {name: tuning_jobs[tuning] for name, tuning in tuning_names.items() if tuning in tuning_jobs}
    return {**by_name, **{name: {**by_name[name], TUNING_JOB: job} for name, job in attached.items()}}


def _find(api: Target, stack: str, names: Collection[str], created_since: str | None) -> dict[str, JobJson]:
    """Return those of the jobs that exist, by resource name.

    This takes one list call per collection, and a call for each job that is not listed with the stack's labels.
    """
    found: dict[str, JobJson] = {}
    filter_ = stack_filter(stack)
    if created_since:
        # The service may know fractions of a second that it does not show.
        oldest = datetime.fromisoformat(created_since).astimezone(UTC)
        filter_ += f' AND create_time>="{oldest:%Y-%m-%dT%H:%M:%SZ}"'
    for kind in {ResourceName.parse(name).kind for name in names}:
        found |= {job["name"]: job for job in api.client.find(kind, api.parent, filter_) if job["name"] in names}
    for name in set(names) - found.keys():
        with suppress(NotFound):
            found[name] = api.client.require(ResourceName.parse(name))
    return found


def oldest_create_time(jobs: Iterable[JobJson]) -> str | None:
    """Return when the oldest of the jobs was created."""
    return min((str(job["createTime"]) for job in jobs), key=datetime.fromisoformat, default=None)


def tuning_job(api: Target, job: JobJson) -> JobJson:
    """Return the tuning job that a pipeline runs, with one call; any other job itself. Raises VertexError."""
    if name := _tuning_job_name(job):
        with suppress(NotFound):
            return api.client.require(ResourceName.parse(name))
    return job


def _tuning_job_name(job: JobJson) -> str | None:
    name = backing_job_name(job)
    return name if name and ResourceName.parse(name).kind == HYPERPARAMETER_TUNING_JOB else None


def referenced_values(api: Target, inputs: Inputs) -> dict[str, str]:
    """Return by reference to a result of an upstream job its value, as text.

    This takes one call for each of these jobs, and one more if a pipeline among them runs a tuning job. Raises
    VertexError, and SubmitFailed if a job has not succeeded or does not have a result.
    """
    upstream = inputs.upstream
    paths = {each: interpolation.split_result(each, upstream) for each in sorted(referenced_results(inputs.spec))}
    for reference, (name, _) in paths.items():
        if name not in upstream:
            place = f"{inputs.error_prefix}: ${{{interpolation.JOBS}.{reference}}}"
            raise SubmitFailed(f"{place} is not a result of its upstream jobs: {', '.join(upstream) or 'none'}")
    found = {name: api.client.require(ResourceName.parse(upstream[name])) for name, _ in sorted(paths.values())}
    for name, job in found.items():
        if job["state"] not in SUCCEEDED_STATES:
            raise SubmitFailed(f"{inputs.error_prefix}: {name}, whose results it uses, is {job['state']}")
    whole = _with_tuning_jobs(api, inputs.stack, found)
    results = {name: {"name": job["name"], **job_results(job)} for name, job in whole.items()}
    values = {}
    for reference, (name, path) in paths.items():
        value = _value_at(results[name], path)
        if value is None:
            reason = _explain_missing(name, path, results[name])
            raise SubmitFailed(f"{inputs.error_prefix}: ${{{interpolation.JOBS}.{reference}}} does not exist: {reason}")
        values[reference] = interpolation.as_text(value)
    return values


def _value_at(result: Any, path: str) -> Any:
    """Return the value at a path, whose last name may have dots in it; None if there is none."""
    while isinstance(result, Mapping) and path not in result:
        head, _, path = path.partition(".")
        result = result.get(head)
    return result.get(path) if isinstance(result, Mapping) else None


def _explain_missing(job_name: str, path: str, result: Mapping[str, Any]) -> str:
    if path.startswith("bestTrial."):
        best_trial = result.get("bestTrial")
        if not best_trial:
            return f"no trial of {job_name} has succeeded with its metric"
        return f"the best trial of {job_name}, {best_trial['id']}, has no {path.removeprefix('bestTrial.')}"
    return f"{job_name} has no {path}"
