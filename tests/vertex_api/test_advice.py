"""What a preview warns of: what is likely to be a mistake, and what no page refuses."""

from typing import Any

import pytest

from tests.vertex_api.jobs import custom_job, edited, tuning_job
from tests.vertex_api.validation.breaking import pool
from vertex_api import jobspec
from vertex_api.advice import advice
from vertex_api.job import Job
from vertex_api.messages import show_path
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.validation.check import validate_job

GPUS = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
REDUCTION = pool(containerSpec={"imageUri": jobspec.reduction_server_image("us-central1")})
EXPERIMENT = "projects/p/locations/us-central1/metadataStores/default/contexts/e"


def said_of_spec(**fields: Any) -> list[str]:
    """What is said of a custom job with these fields in its jobSpec, of which the service's rules say nothing."""
    job = custom_job()
    job["jobSpec"] |= fields
    job, problems = validate_job(CUSTOM_JOB, job)
    assert problems == []
    return [f"{show_path(path)}: {message}" for path, message in advice(Job(CUSTOM_JOB, job))]


def said_of_study(*path: str | int, to: Any) -> list[str]:
    job, problems = validate_job(HYPERPARAMETER_TUNING_JOB, edited(tuning_job(), "studySpec", *path, to=to))
    assert problems == []
    return [
        f"{show_path(path)}: {message}".removeprefix("studySpec.")
        for path, message in advice(Job(HYPERPARAMETER_TUNING_JOB, job))
    ]


def test_jobs_that_are_right_are_let_be() -> None:
    assert said_of_spec() == []
    assert said_of_study("metrics", to=[{"metricId": "a"}, {"metricId": "b", "safetyConfig": {}}]) == []


def test_variables_are_unique_in_each_pool() -> None:
    def task(*names: str) -> dict[str, Any]:
        return {"imageUri": "i", "env": [{"name": name, "value": "v"} for name in names]}

    assert said_of_spec(workerPoolSpecs=[pool(containerSpec=task("A", "a")), pool(containerSpec=task("A"))]) == []
    assert said_of_spec(workerPoolSpecs=[pool(containerSpec=task("A", "B", "A"))]) == [
        'jobSpec.workerPoolSpecs[0].containerSpec.env[2].name: "A" is there twice'
    ]


def test_reduction_server_serves_two_pools_with_gpus() -> None:
    gpus = pool(machineSpec=GPUS)
    assert said_of_spec(workerPoolSpecs=[gpus, gpus, REDUCTION]) == []
    assert said_of_spec(workerPoolSpecs=[pool(), {}, REDUCTION]) == [
        "jobSpec.workerPoolSpecs[0].machineSpec.acceleratorType: Reduction Server is for pools with GPUs",
        "jobSpec.workerPoolSpecs[1]: is empty; Reduction Server is for the GPUs of this pool and the first",
    ]
    unsaid = {key: value for key, value in pool().items() if key != "machineSpec"}
    assert said_of_spec(workerPoolSpecs=[unsaid, unsaid, REDUCTION], persistentResourceId="r") == []
    assert said_of_spec(workerPoolSpecs=[pool(), pool(), pool()]) == []


def test_a_run_is_one_of_an_experiment() -> None:
    assert said_of_spec(experiment=EXPERIMENT, experimentRun=f"{EXPERIMENT}-1") == []
    assert said_of_spec(experimentRun=f"{EXPERIMENT}-1") == [
        "jobSpec.experiment: is not set, and experimentRun is: name the experiment that it is a run of"
    ]


def test_a_parameter_s_id_can_be_a_flag() -> None:
    assert said_of_study("parameters", 0, "parameterId", to="e=x") == [
        'parameters[0].parameterId: "e=x" has a =: trials get it as the flag --id=value'
    ]


def test_a_category_stands_once_below_conditions_too() -> None:
    twice = {"values": ["relu", "", "relu"]}
    assert said_of_study("parameters", 3, "categoricalValueSpec", to=twice) == [
        'parameters[3].categoricalValueSpec.values[2]: "relu" is there twice'
    ]
    child = {"parentIntValues": {"values": [2]}, "parameterSpec": {"parameterId": "c", "categoricalValueSpec": twice}}
    (said,) = said_of_study("parameters", 1, "conditionalParameterSpecs", to=[child])
    assert said.startswith("parameters[1].conditionalParameterSpecs[0].parameterSpec.categoricalValueSpec.values[2]")


@pytest.mark.parametrize(("field", "value"), [("maxNumTrialsNoProgress", 3), ("maxDurationNoProgress", "60s")])
def test_no_progress_is_of_one_objective(field: str, value: object) -> None:
    config = {"maxNumTrials": 6, field: value}
    assert said_of_study("studyStoppingConfig", to=config) == []
    job = edited(tuning_job(), "studySpec", "studyStoppingConfig", to=config)
    job["studySpec"]["metrics"] = [{"metricId": "a"}, {"metricId": "b", "safetyConfig": {}}]
    assert list(advice(Job(HYPERPARAMETER_TUNING_JOB, job))) == []
    job["studySpec"]["metrics"] = [{"metricId": "a"}, {"metricId": "b"}]
    canonical, problems = validate_job(HYPERPARAMETER_TUNING_JOB, job)
    assert problems == []
    assert list(advice(Job(HYPERPARAMETER_TUNING_JOB, canonical))) == [
        (
            ("studySpec", "studyStoppingConfig", field),
            "has no effect with 2 objectives, only with one; use maxNumTrials or none",
        )
    ]


@pytest.mark.parametrize("name", ["parallelTrialCount", "maxFailedTrialCount"])
def test_counts_beyond_the_trials_are_no_refusal(name: str) -> None:
    job, problems = validate_job(
        HYPERPARAMETER_TUNING_JOB, {**tuning_job(), "maxTrialCount": 1, "parallelTrialCount": 1, name: 2}
    )
    assert problems == []
    tuning = Job(HYPERPARAMETER_TUNING_JOB, job)
    assert list(advice(tuning)) == [((name,), "2 is more than maxTrialCount 1, and never reached")]
    assert tuning.parallel_trials == 1
