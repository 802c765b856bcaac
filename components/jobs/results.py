"""Results of jobs, and references to them without their table: `tune.bestTrial.parameters.lr`."""

from collections.abc import Container, Mapping
from typing import Any

from vertex_api.catalog.job_defaults import get_model_directory
from vertex_api.job_kinds import TRAINING_PIPELINE
from vertex_api.job_states import SUCCEEDED_STATES
from vertex_api.resource_names import ResourceName
from vertex_api.studies import trials
from vertex_api.studies.metrics import list_objectives
from vertex_api.validation.canonical_spec import CanonicalSpec
from vertex_api.validation.rules.study_parameters import walk_parameters

from ..errors import SubmitFailed
from ..runtime.api_target import Target
from ..schema import references
from .pipeline_backing_jobs import (
    attach_tuning_jobs,
    get_attached_or_declared_job,
    get_backing_and_model_names,
    is_pipeline,
)
from .provider_inputs import JobInputs

Job = Mapping[str, Any]
MODEL_DIR = "modelDir"


def split_reference(reference: str, names: Container[str]) -> tuple[str, str]:
    """Split a reference into the name of a job and a result: `("tune", "bestTrial.parameters.lr")`.

    Names may have dots in them: the longest one of `names` counts, or else the text before the first dot.
    """
    parts = reference.split(".")
    for end in range(len(parts), 0, -1):
        if (name := ".".join(parts[:end])) in names:
            return name, ".".join(parts[end:])
    return parts[0], ".".join(parts[1:])


def list_available_results(spec: CanonicalSpec) -> list[str]:
    """Return the results that references of other jobs may name of a job with this spec."""
    names = ["name", MODEL_DIR]
    if spec.kind == TRAINING_PIPELINE:
        names += ["backingJob", *(["model"] if "modelToUpload" in spec.fields else [])]
    if study := spec.study_spec:
        ids = (parameter["parameterId"] for parameter, _, _ in walk_parameters(study["parameters"], ()))
        names += ["bestTrial.id", *(f"bestTrial.parameters.{id_}" for id_ in dict.fromkeys(ids))]
        names += [f"bestTrial.metrics.{metric['metricId']}" for metric in study["metrics"]]
    return names


def find_result_references(spec: CanonicalSpec) -> set[str]:
    """Return the references to results in a spec."""
    tables = (reference.partition(".") for _, reference in references.find_references_with_paths(spec.fields))
    return {reference for table, _, reference in tables if table == references.JOBS}


def fetch_referenced_results(api: Target, inputs: JobInputs) -> dict[str, str]:
    """Return the values of references to results of upstream jobs, as text.

    This takes one call for each of these jobs, and one more if a pipeline among them runs a tuning job. Raises
    VertexError, and SubmitFailed if a job has not succeeded or does not have a result.
    """
    upstream_jobs = inputs.upstream_jobs
    paths = {reference: split_reference(reference, upstream_jobs) for reference in find_result_references(inputs.spec)}
    for reference, (name, _) in sorted(paths.items()):
        if name not in upstream_jobs:
            place = f"{inputs.error_prefix}: ${{{references.JOBS}.{reference}}}"
            names = ", ".join(upstream_jobs) or "none"
            raise SubmitFailed(f"{place} is not a result of its upstream jobs: {names}")
    jobs = {name: api.client.get(ResourceName.parse(upstream_jobs[name])) for name, _ in sorted(paths.values())}
    for name, job in jobs.items():
        if job["state"] not in SUCCEEDED_STATES:
            raise SubmitFailed(f"{inputs.error_prefix}: {name}, whose results it uses, is {job['state']}")
    complete_jobs = attach_tuning_jobs(api, inputs.stack, jobs)
    job_results = {name: {"name": job["name"], **build_job_results(job)} for name, job in complete_jobs.items()}
    values = {}
    for reference, (name, path) in sorted(paths.items()):
        value = _get_result_value(job_results[name], path)
        if value is None:
            reason = _explain_missing_result(name, path, job_results[name])
            raise SubmitFailed(f"{inputs.error_prefix}: ${{{references.JOBS}.{reference}}} does not exist: {reason}")
        values[reference] = references.format_as_text(value)
    return values


def build_job_results(job: Job) -> dict[str, Any]:
    """Return the results of a job: the API's `state`, `modelDir`, and of a tuning job `bestTrial` and `trials`.

    A failed job has an `error`. `modelDir` of a tuning job is that of its best trial. With several objectives,
    `paretoTrials` are those that no other trial beats in all of them. `unreported` has, by metric, the ids of trials
    that ended without it. A pipeline has the results of the job that it runs, and `backingJob` and `model`. Trials are
    rows as `vertex_api.studies.trials` makes them.
    """
    result: dict[str, Any] = {"state": job["state"]}
    if "error" in job:
        result["error"] = job["error"].get("message", "")
    if is_pipeline(job):
        result, job = result | get_backing_and_model_names(job), get_attached_or_declared_job(job)
    if "studySpec" not in job:
        return result | _build_model_dir_entry(job["jobSpec"])
    if best_trial := trials.find_best_trial_results(job):
        result |= _build_model_dir_entry(job["trialJobSpec"], best_trial["id"])
    if len(list_objectives(job["studySpec"])) > 1:
        result["paretoTrials"] = trials.find_pareto_front_results(job)
    if unreported := trials.find_trial_ids_by_unreported_metric(job):
        result["unreported"] = unreported
    return result | {"bestTrial": best_trial, "trials": trials.list_trial_results(job)}


def _build_model_dir_entry(job_spec: Mapping[str, Any], trial_id: str = "") -> dict[str, str]:
    folder = get_model_directory(job_spec, trial_id)
    return {MODEL_DIR: folder} if folder else {}


def _get_result_value(result: Any, path: str) -> Any:
    """Return the value at a path, whose last name may have dots in it."""
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
