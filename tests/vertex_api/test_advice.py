"""What a preview warns of: what is likely to be a mistake, and what no page refuses."""

from typing import Any

import pytest

from tests.vertex_api.jobs import custom_job, edited, tuning_job
from tests.vertex_api.validation.breaking import pool
from vertex_api import jobspec
from vertex_api.advice import advice
from vertex_api.job import Job
from vertex_api.messages import KeyPath, show_path
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


CONVEX, LIMITS = ("studySpec", "convexAutomatedStoppingSpec"), ("studySpec", "studyStoppingConfig")
SOONER, LATER = {"endTime": "2026-01-01T00:00:00Z"}, {"endTime": "2026-12-31T23:00:00.500Z"}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("maxFailedTrialCount",), -1, {"": "-1 is negative, and no count"}),
        (CONVEX, {"minStepCount": "-1"}, {"minStepCount": "-1 is negative, and no count"}),
        (CONVEX, {"maxStepCount": "-1"}, {"maxStepCount": "-1 is negative, and no count"}),
        (CONVEX, {"minMeasurementCount": "-1"}, {"minMeasurementCount": "-1 is negative, and no count"}),
        (CONVEX, {"minStepCount": 6, "maxStepCount": 5}, {"minStepCount": "6 is more than maxStepCount 5"}),
        (
            CONVEX,
            {"learningRateParameterName": "lr"},
            {"learningRateParameterName": '"lr" is no parameter of the study'},
        ),
        (LIMITS, {"minNumTrials": -1}, {"minNumTrials": "-1 is negative, and no count"}),
        (LIMITS, {"maxNumTrials": -1}, {"maxNumTrials": "-1 is negative, and no count"}),
        (LIMITS, {"maxNumTrialsNoProgress": -1}, {"maxNumTrialsNoProgress": "-1 is negative, and no count"}),
        (LIMITS, {"minNumTrials": 4, "maxNumTrials": 3}, {"minNumTrials": "4 is more than maxNumTrials 3"}),
        (
            LIMITS,
            {"maxDurationNoProgress": "-1s", "maximumRuntimeConstraint": {"maxDuration": "-2s"}},
            {
                "maxDurationNoProgress": '"-1s" is negative, so it has passed from the start',
                "maximumRuntimeConstraint.maxDuration": '"-2s" is negative, so it has passed from the start',
            },
        ),
        (
            LIMITS,
            {"minimumRuntimeConstraint": {"maxDuration": "2s"}, "maximumRuntimeConstraint": {"maxDuration": "1.5s"}},
            {
                "minimumRuntimeConstraint.maxDuration": '"2s" is longer than that of maximumRuntimeConstraint, '
                '"1.500s"',
            },
        ),
        (
            LIMITS,
            {"minimumRuntimeConstraint": LATER, "maximumRuntimeConstraint": SOONER},
            {
                "minimumRuntimeConstraint.endTime": '"2026-12-31T23:00:00.500Z" is later than that of '
                'maximumRuntimeConstraint, "2026-01-01T00:00:00Z"'
            },
        ),
    ],
)
def test_what_no_page_refuses_of_a_search_is_advice(path: KeyPath, value: Any, said: dict[str, str]) -> None:
    job, problems = validate_job(HYPERPARAMETER_TUNING_JOB, edited(tuning_job(), *path, to=value))
    assert problems == []
    found = {show_path(at): message for at, message in advice(Job(HYPERPARAMETER_TUNING_JOB, job))}
    assert found == {".".join(filter(None, [*path, inner])): message for inner, message in said.items()}


@pytest.mark.parametrize("strategy", ["STANDARD", "SPOT"])
def test_only_flexible_jobs_wait_for_long(strategy: str) -> None:
    scheduling = {"strategy": strategy, "maxWaitDuration": "3600s"}
    job, problems = validate_job(CUSTOM_JOB, edited(custom_job(), "jobSpec", "scheduling", to=scheduling))
    assert problems == []
    (found,) = advice(Job(CUSTOM_JOB, job))
    assert found == (
        ("jobSpec", "scheduling", "maxWaitDuration"),
        f"has no effect with {strategy}, only with the strategy FLEX_START",
    )


def test_only_a_specific_reservation_has_a_name() -> None:
    at = ("jobSpec", "workerPoolSpecs", 0, "machineSpec", "reservationAffinity")
    affinity = {"reservationAffinityType": "ANY_RESERVATION", "key": "k", "values": ["v"]}
    job, problems = validate_job(CUSTOM_JOB, edited(custom_job(), *at, to=affinity))
    assert problems == []
    message = "has no effect with ANY_RESERVATION, only with SPECIFIC_RESERVATION"
    assert [*advice(Job(CUSTOM_JOB, job))] == [((*at, field), message) for field in ("key", "values")]
