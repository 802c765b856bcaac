"""Rules of tuning jobs as a whole."""

from typing import Any

import pytest

from tests.vertex_api.jobs import ABSENT, edited, tuning_job
from tests.vertex_api.validation.rules.breaking import said_of_tuning_job
from vertex_api.names import HYPERPARAMETER_TUNING_JOB
from vertex_api.validation.check import validate_job


@pytest.mark.parametrize("field", ["maxTrialCount", "parallelTrialCount"])
@pytest.mark.parametrize("count", [ABSENT, 0, -1])
def test_trial_counts_are_at_least_one(field: str, count: Any) -> None:
    assert said_of_tuning_job(field, to=count) == [f"{field}: is required, and at least 1"]


@pytest.mark.parametrize("field", ["parallelTrialCount", "maxFailedTrialCount"])
def test_no_count_exceeds_max_trial_count(field: str) -> None:
    job = tuning_job() | {field: 8}
    assert validate_job(HYPERPARAMETER_TUNING_JOB, job)[1] == []
    assert [str(problem) for problem in validate_job(HYPERPARAMETER_TUNING_JOB, job | {field: 9})[1]] == [
        f"{field}: 9 is more than maxTrialCount 8"
    ]


def test_failed_trials_are_counted_from_zero() -> None:
    job = tuning_job() | {"maxFailedTrialCount": 0}
    assert validate_job(HYPERPARAMETER_TUNING_JOB, job)[1] == []
    (problem,) = validate_job(HYPERPARAMETER_TUNING_JOB, job | {"maxFailedTrialCount": -1})[1]
    assert str(problem) == "maxFailedTrialCount: -1 must not be negative"


def test_trial_job_specs_follow_the_custom_job_rules() -> None:
    assert said_of_tuning_job("trialJobSpec", "workerPoolSpecs", 0, "replicaCount", to=2) == [
        "trialJobSpec.workerPoolSpecs[0].replicaCount: 2 must be 1: the first pool is the primary replica"
    ]


def test_trials_run_without_tpus() -> None:
    machine = {"machineType": "ct5lp-hightpu-1t", "tpuTopology": "1x1"}
    assert said_of_tuning_job("trialJobSpec", "workerPoolSpecs", 0, "machineSpec", to=machine) == [
        "trialJobSpec.workerPoolSpecs[0].machineSpec.machineType: ct5lp-hightpu-1t has TPUs, "
        "which hyperparameter tuning does not take"
    ]


def test_rules_that_are_broken_together_are_all_named() -> None:
    job = edited(tuning_job(), "studySpec", "parameters", 0, "doubleValueSpec", "minValue", to=5.0)
    job = edited(job, "studySpec", "metrics", 0, "metricId", to="a b") | {"maxTrialCount": 0, "displayName": "x" * 200}
    job = edited(job, "trialJobSpec", "workerPoolSpecs", 0, "machineSpec", "machineType", to="n9")
    fields = [problem.place for problem in validate_job(HYPERPARAMETER_TUNING_JOB, job)[1]]
    assert sorted(fields) == [
        "displayName",
        "maxTrialCount",
        "studySpec.metrics[0].metricId",
        "studySpec.parameters[0].doubleValueSpec",
        "trialJobSpec.workerPoolSpecs[0].machineSpec.machineType",
    ]
