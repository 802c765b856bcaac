"""References of jobs to results of other jobs, without their table: `tune.bestTrial.parameters.lr`."""

from collections.abc import Mapping, Sequence
from typing import Any

from vertex_api.job import Job, job_results
from vertex_api.messages import KeyPath
from vertex_api.names import SUCCEEDED_STATES, ResourceName

from ..errors import SubmitFailed
from ..runtime.target import Target
from ..schema import interpolation
from .pipeline_tuning_job_fetching import fetch_and_attach_tuning_jobs_to_copies
from .provider_inputs import JobInputs

ResultReferences = Mapping[str, Sequence[tuple[KeyPath, str]]]
"""By name of a job: the references to results in its spec, without `jobs.`, each with its place."""


def collect_result_references(spec: Job) -> set[str]:
    """Return the references to results in a spec, without their table and paths."""
    tables = (reference.partition(".") for _, reference in interpolation.references(spec.fields))
    return {reference for table, _, reference in tables if table == interpolation.JOBS}


def fetch_result_values_by_reference(api: Target, inputs: JobInputs) -> dict[str, str]:
    """Return by reference to a result of an upstream job its value, as text.

    This takes one call for each of these jobs, and one more if a pipeline among them runs a tuning job. Raises
    VertexError, and SubmitFailed if a job has not succeeded or does not have a result.
    """
    upstream_jobs, declared = inputs.upstream_jobs, sorted(collect_result_references(inputs.spec))
    paths = {reference: interpolation.split_result(reference, upstream_jobs) for reference in declared}
    for reference, (name, _) in paths.items():
        if name not in upstream_jobs:
            place = f"{inputs.error_prefix}: ${{{interpolation.JOBS}.{reference}}}"
            names = ", ".join(upstream_jobs) or "none"
            raise SubmitFailed(f"{place} is not a result of its upstream jobs: {names}")
    jobs = {name: api.client.require(ResourceName.parse(upstream_jobs[name])) for name, _ in sorted(paths.values())}
    for name, job in jobs.items():
        if job["state"] not in SUCCEEDED_STATES:
            raise SubmitFailed(f"{inputs.error_prefix}: {name}, whose results it uses, is {job['state']}")
    complete_jobs = fetch_and_attach_tuning_jobs_to_copies(api, inputs.project_and_stack_name, jobs)
    job_results = {name: {"name": job["name"], **job_results(job)} for name, job in complete_jobs.items()}
    values = {}
    for reference, (name, path) in paths.items():
        value = _find_result_value_or_none(job_results[name], path)
        if value is None:
            reason = _explain_missing_result(name, path, job_results[name])
            raise SubmitFailed(f"{inputs.error_prefix}: ${{{interpolation.JOBS}.{reference}}} does not exist: {reason}")
        values[reference] = interpolation.as_text(value)
    return values


def _find_result_value_or_none(result: Any, path: str) -> Any:
    """Return the value at a path, whose last name may have dots in it; None if there is none."""
    while isinstance(result, Mapping) and path not in result:
        head, _, path = path.partition(".")
        result = result.get(head)
    return result.get(path) if isinstance(result, Mapping) else None


def _explain_missing_result(job_name: str, path: str, result: Mapping[str, Any]) -> str:
    if path.startswith("bestTrial."):
        best_trial = result.get("bestTrial")
        if not best_trial:
            return f"no trial of {job_name} has succeeded with its metric"
        return f"the best trial of {job_name}, {best_trial['id']}, has no {path.removeprefix('bestTrial.')}"
    return f"{job_name} has no {path}"
