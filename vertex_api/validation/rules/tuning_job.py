"""Rules for a HyperparameterTuningJob."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.catalog.machines import find_machine_or_none
from vertex_api.validation.rules import job_spec, study_spec
from vertex_api.validation.rules.violation_type import KeyPath, Violation


def find_tuning_job_violations(job: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for a HyperparameterTuningJob, its study and the jobs of its trials."""
    yield from job_spec.find_job_spec_violations(job["trialJobSpec"], (*at, "trialJobSpec"))
    yield from _find_tpu_violations(job["trialJobSpec"], (*at, "trialJobSpec"))
    yield from study_spec.find_study_violations(job["studySpec"], (*at, "studySpec"))
    yield from _find_trial_count_violations(job, at)


def _find_tpu_violations(trial_job_spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on using hyperparameter tuning: "jobs with TPUs are not supported"."""
    for index, pool in enumerate(trial_job_spec["workerPoolSpecs"]):
        name = pool.get("machineSpec", {}).get("machineType", "")
        if (machine := find_machine_or_none(name)) and machine.is_tpu:
            path: KeyPath = (*at, "workerPoolSpecs", index, "machineSpec", "machineType")
            yield path, f"{name} has TPUs, which hyperparameter tuning does not take"


def _find_trial_count_violations(job: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, HyperparameterTuningJob: both counts are required; zero is "unset" in proto JSON."""
    max_trials = job.get("maxTrialCount", 0)
    for name in ("maxTrialCount", "parallelTrialCount"):
        if job.get(name, 0) < 1:
            yield (*at, name), "is required, and at least 1"
    for name in ("parallelTrialCount", "maxFailedTrialCount"):
        if job.get(name, 0) > max_trials > 0:
            yield (*at, name), f"{job[name]} is more than maxTrialCount {max_trials}"
    if job.get("maxFailedTrialCount", 0) < 0:
        yield (*at, "maxFailedTrialCount"), f"{job['maxFailedTrialCount']} must not be negative"
