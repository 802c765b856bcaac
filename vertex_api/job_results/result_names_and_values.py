"""Results of a job: what other jobs can refer to and what a stack exports."""

from collections.abc import Mapping
from typing import Any

from vertex_api.catalog.output_directories import get_model_directory_or_none
from vertex_api.job_kinds import TRAINING_PIPELINE
from vertex_api.job_results.pipeline_results import (
    get_attached_tuning_job_or_declared_backing_job,
    get_backing_job_and_model_names_by_result,
    is_pipeline,
)
from vertex_api.studies.objectives_and_safety_metrics import parse_objectives
from vertex_api.studies.trial_results import (
    find_best_trial_summary_or_none,
    find_pareto_front_summaries,
    find_trial_ids_by_unreported_metric,
    list_trial_summaries,
)
from vertex_api.validation.canonical_spec import CanonicalSpec
from vertex_api.validation.rules.study_parameters import walk_parameters_with_conditions

Job = Mapping[str, Any]
MODEL_DIR = "modelDir"


def list_available_result_names(spec: CanonicalSpec) -> list[str]:
    """Return the names of the results of a job with this spec that other jobs may refer to."""
    names = ["name", MODEL_DIR]
    if spec.kind == TRAINING_PIPELINE:
        names += ["backingJob", *(["model"] if "modelToUpload" in spec.fields else [])]
    if study := spec.study_spec:
        parameters = walk_parameters_with_conditions(study["parameters"], ())
        ids = (parameter["parameterId"] for parameter, _, _ in parameters)
        names += ["bestTrial.id", *(f"bestTrial.parameters.{id_}" for id_ in dict.fromkeys(ids))]
        names += [f"bestTrial.metrics.{metric['metricId']}" for metric in study["metrics"]]
    return names


def build_job_results(job: Job) -> dict[str, Any]:
    """Return the results of a job: the API's `state`, `modelDir`, and of a tuning job `bestTrial` and `trials`.

    A failed job has an `error`. `modelDir` of a tuning job is that of its best trial. With several objectives,
    `paretoTrials` are those that no other trial beats in all of them. `unreported` has, by metric, the ids of trials
    that ended without it. A pipeline has the results of the job that it runs, and `backingJob` and `model`. Trials are
    rows as `vertex_api.studies.trial_results` makes them.
    """
    result: dict[str, Any] = {"state": job["state"]}
    if "error" in job:
        result["error"] = job["error"].get("message", "")
    if is_pipeline(job):
        result |= get_backing_job_and_model_names_by_result(job)
        job = get_attached_tuning_job_or_declared_backing_job(job)
    if "studySpec" not in job:
        return result | _build_model_dir_entry_or_empty(job["jobSpec"])
    if best_trial := find_best_trial_summary_or_none(job):
        result |= _build_model_dir_entry_or_empty(job["trialJobSpec"], best_trial["id"])
    if len(parse_objectives(job["studySpec"])) > 1:
        result["paretoTrials"] = find_pareto_front_summaries(job)
    if unreported := find_trial_ids_by_unreported_metric(job):
        result["unreported"] = unreported
    return result | {"bestTrial": best_trial, "trials": list_trial_summaries(job)}


def _build_model_dir_entry_or_empty(job_spec: Mapping[str, Any], trial_id: str = "") -> dict[str, str]:
    folder = get_model_directory_or_none(job_spec, trial_id)
    return {MODEL_DIR: folder} if folder else {}
