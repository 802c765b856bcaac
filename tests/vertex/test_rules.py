"""Rules: each one, broken on its own, names exactly the field that breaks it."""

from typing import Any

import pytest

from tests.vertex.jobs import ABSENT, custom_job, edited, tuning_job
from vertex.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex.rules import broken
from vertex.validation import validate

POOL = ("jobSpec", "workerPoolSpecs", 0)
CONTAINER = (*POOL, "containerSpec")
STUDY = "studySpec"
PARAMETERS = ("studySpec", "parameters")
PACKAGE = {"executorImageUri": "e", "packageUris": ["gs://b/p.tar.gz"], "pythonModule": "m"}
NAME_RULE = "must be letters, digits and underscores, and not start with a digit"
TIES = "needs both of acceleratorType and acceleratorCount, or none"


def pool(**changes: Any) -> dict[str, Any]:
    return {**custom_job()["jobSpec"]["workerPoolSpecs"][0], **changes}


@pytest.mark.parametrize(
    ("path", "to", "field", "message"),
    [
        (("displayName",), "x" * 129, "displayName", "is longer than 128 characters"),
        (POOL, {}, "jobSpec.workerPoolSpecs[0]", "is empty; the first pool runs the primary replica"),
        (
            (*POOL, "replicaCount"),
            0,
            "jobSpec.workerPoolSpecs[0].replicaCount",
            "0 must be 1: the first pool is the primary replica",
        ),
        (
            ("jobSpec", "workerPoolSpecs"),
            [pool(), pool(replicaCount=0)],
            "jobSpec.workerPoolSpecs[1].replicaCount",
            "0 is less than 1; an empty pool is written {}",
        ),
        (
            CONTAINER,
            ABSENT,
            "jobSpec.workerPoolSpecs[0]",
            "needs exactly one of containerSpec and pythonPackageSpec",
        ),
        (
            (*POOL, "pythonPackageSpec"),
            PACKAGE,
            "jobSpec.workerPoolSpecs[0]",
            "needs exactly one of containerSpec and pythonPackageSpec",
        ),
        (
            (*CONTAINER, "env"),
            [{"name": f"V{index}", "value": "1"} for index in range(101)],
            "jobSpec.workerPoolSpecs[0].containerSpec.env",
            "has 101 entries; at most 100 are allowed",
        ),
        (
            (*CONTAINER, "env"),
            [{"name": "A", "value": "1"}, {"name": "1B", "value": "1"}],
            "jobSpec.workerPoolSpecs[0].containerSpec.env[1].name",
            f'"1B" {NAME_RULE}',
        ),
        (
            POOL,
            {"pythonPackageSpec": PACKAGE | {"env": [{"name": "a-b", "value": "1"}]}},
            "jobSpec.workerPoolSpecs[0].pythonPackageSpec.env[0].name",
            f'"a-b" {NAME_RULE}',
        ),
        (
            (*POOL, "machineSpec", "acceleratorType"),
            "NVIDIA_L4",
            "jobSpec.workerPoolSpecs[0].machineSpec",
            TIES,
        ),
        ((*POOL, "machineSpec", "acceleratorCount"), 1, "jobSpec.workerPoolSpecs[0].machineSpec", TIES),
        (
            ("jobSpec", "workerPoolSpecs"),
            [pool(), pool(containerSpec={"imageUri": "i", "env": [{"name": "", "value": "1"}]})],
            "jobSpec.workerPoolSpecs[1].containerSpec.env[0].name",
            f'"" {NAME_RULE}',
        ),
    ],
)
def test_a_custom_job_that_breaks_one_rule(path: tuple[Any, ...], to: Any, field: str, message: str) -> None:
    problems = validate(CUSTOM_JOB, edited(custom_job(), *path, to=to))[1]
    assert [(problem.field, problem.message) for problem in problems] == [(field, message)]


@pytest.mark.parametrize(
    ("path", "to", "field", "message"),
    [
        (("maxTrialCount",), ABSENT, "maxTrialCount", "is required, and at least 1"),
        (("parallelTrialCount",), 0, "parallelTrialCount", "is required, and at least 1"),
        (("parallelTrialCount",), 9, "parallelTrialCount", "9 is more than maxTrialCount 8"),
        (("maxFailedTrialCount",), 9, "maxFailedTrialCount", "9 is more than maxTrialCount 8"),
        (
            ("trialJobSpec", "workerPoolSpecs", 0, "replicaCount"),
            2,
            "trialJobSpec.workerPoolSpecs[0].replicaCount",
            "2 must be 1: the first pool is the primary replica",
        ),
        (
            (STUDY, "metrics", 0, "metricId"),
            "top 1",
            "studySpec.metrics[0].metricId",
            '"top 1" must not contain white space',
        ),
        (
            (STUDY, "metrics"),
            [{"metricId": "a"}, {"metricId": "a"}],
            "studySpec.metrics[1].metricId",
            '"a" is there twice',
        ),
        (
            (*PARAMETERS, 0, "parameterId"),
            "a\tb",
            "studySpec.parameters[0].parameterId",
            '"a\tb" must not contain white space',
        ),
        ((*PARAMETERS, 1, "parameterId"), "rate", "studySpec.parameters[1].parameterId", '"rate" is there twice'),
        (
            (*PARAMETERS, 0, "doubleValueSpec"),
            ABSENT,
            "studySpec.parameters[0]",
            "needs exactly one of doubleValueSpec, integerValueSpec, categoricalValueSpec, discreteValueSpec",
        ),
        (
            (*PARAMETERS, 0, "integerValueSpec"),
            {},
            "studySpec.parameters[0]",
            "needs exactly one of doubleValueSpec, integerValueSpec, categoricalValueSpec, discreteValueSpec",
        ),
        (
            (*PARAMETERS, 0, "doubleValueSpec", "maxValue"),
            0.0001,
            "studySpec.parameters[0].doubleValueSpec",
            "minValue 0.001 is greater than maxValue 0.0001",
        ),
        (
            (*PARAMETERS, 1, "integerValueSpec"),
            {"minValue": 1},
            "studySpec.parameters[1].integerValueSpec",
            "minValue 1 is greater than maxValue 0",
        ),
        (
            (*PARAMETERS, 1),
            {
                "parameterId": "u",
                "integerValueSpec": {"maxValue": 4},
                "scaleType": "UNIT_LOG_SCALE",
            },
            "studySpec.parameters[1].scaleType",
            "UNIT_LOG_SCALE needs a range above zero, minValue is 0",
        ),
        (
            (*PARAMETERS, 2, "discreteValueSpec", "values"),
            [2.0, 1.0],
            "studySpec.parameters[2].discreteValueSpec.values",
            "must increase",
        ),
        (
            (*PARAMETERS, 2, "discreteValueSpec", "values"),
            [1.0, 1.0],
            "studySpec.parameters[2].discreteValueSpec.values",
            "must increase",
        ),
        (
            (STUDY, "algorithm"),
            "GRID_SEARCH",
            "studySpec.parameters[0].doubleValueSpec",
            "GRID_SEARCH takes integer, categorical and discrete parameters only",
        ),
        (
            (*PARAMETERS, 3, "conditionalParameterSpecs"),
            [
                {
                    "parentCategoricalValues": {"values": ["relu"]},
                    "parameterSpec": {"parameterId": "slope", "doubleValueSpec": {"minValue": 2.0, "maxValue": 1.0}},
                }
            ],
            "studySpec.parameters[3].conditionalParameterSpecs[0].parameterSpec.doubleValueSpec",
            "minValue 2.0 is greater than maxValue 1.0",
        ),
    ],
)
def test_a_tuning_job_that_breaks_one_rule(path: tuple[Any, ...], to: Any, field: str, message: str) -> None:
    problems = validate(HYPERPARAMETER_TUNING_JOB, edited(tuning_job(), *path, to=to))[1]
    assert [(problem.field, problem.message) for problem in problems] == [(field, message)]


@pytest.mark.parametrize("name", ["categoricalValueSpec", "discreteValueSpec"])
def test_a_list_of_values_that_is_empty_is_required(name: str) -> None:
    job = edited(tuning_job(), *PARAMETERS, to=[{"parameterId": "p", name: {"values": []}}])
    problems = validate(HYPERPARAMETER_TUNING_JOB, job)[1]
    assert [str(problem) for problem in problems] == [f"studySpec.parameters[0].{name}.values: is required"]


@pytest.mark.parametrize(
    "job",
    [
        edited(custom_job(), "displayName", to="x" * 128),
        edited(custom_job(), "jobSpec", "workerPoolSpecs", to=[pool(), pool(replicaCount=3), {}, pool()]),
        edited(custom_job(), *POOL, "replicaCount", to=ABSENT),
        edited(custom_job(), *POOL, "machineSpec", to={"acceleratorType": "NVIDIA_L4", "acceleratorCount": 2}),
        edited(custom_job(), *CONTAINER, "env", to=[{"name": f"_V{index}", "value": "1"} for index in range(100)]),
    ],
)
def test_what_is_just_within_the_rules_of_custom_jobs_passes(job: dict[str, Any]) -> None:
    assert list(broken(CUSTOM_JOB, job)) == []


@pytest.mark.parametrize(
    "job",
    [
        tuning_job() | {"parallelTrialCount": 8, "maxFailedTrialCount": 8},
        edited(tuning_job(), *PARAMETERS, 0, "scaleType", to="UNIT_LOG_SCALE"),
        edited(tuning_job(), *PARAMETERS, 1, "integerValueSpec", to={"minValue": -4}),
        edited(tuning_job(), *PARAMETERS, 1, "integerValueSpec", to={"minValue": 2, "maxValue": 2}),
        edited(tuning_job(), *PARAMETERS, to=tuning_job()["studySpec"]["parameters"][1:]) | {"maxFailedTrialCount": 0},
    ],
)
def test_what_is_just_within_the_rules_of_tuning_jobs_passes(job: dict[str, Any]) -> None:
    assert list(broken(HYPERPARAMETER_TUNING_JOB, job)) == []


def test_rules_that_are_broken_together_are_all_named() -> None:
    job = edited(tuning_job(), *PARAMETERS, 0, "doubleValueSpec", "minValue", to=5.0)
    job = edited(job, STUDY, "metrics", 0, "metricId", to="a b") | {"maxTrialCount": 0, "displayName": "x" * 200}
    fields = [problem.field for problem in validate(HYPERPARAMETER_TUNING_JOB, job)[1]]
    assert sorted(fields) == [
        "displayName",
        "maxTrialCount",
        "studySpec.metrics[0].metricId",
        "studySpec.parameters[0].doubleValueSpec",
    ]
