from typing import Any

import pytest

from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.pipelines import (
    CUSTOM_TASK,
    TUNING_TASK,
    PipelineValidation,
    backing_kind,
    job_of_pipeline,
    validate_pipeline,
)

POOL = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": {"imageUri": "x"}}
MODEL = {"displayName": "m"}
PROBE = {"exec": {"command": ["true"]}, "httpGet": {"path": "/"}}
STUDY = {
    "metrics": [{"metricId": "acc"}],
    "parameters": [{"parameterId": "x", "doubleValueSpec": {"maxValue": 1.0}}],
}


def pipeline(**fields: Any) -> dict[str, Any]:
    return {
        "displayName": "p",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {"workerPoolSpecs": [POOL]},
        **fields,
    }


def fields(reading: PipelineValidation) -> list[str]:
    return [problem.place for problem in reading.problems]


def test_mixed_names_and_floats_make_one_custom_job() -> None:
    inputs = {
        "worker_pool_specs": [
            {
                "machine_spec": {"machine_type": "g2-standard-4", "accelerator_type": 11.0, "accelerator_count": 1.0},
                "replica_count": 1.0,
                "containerSpec": {"imageUri": "x", "env": [{"name": "A", "value": "b"}]},
            }
        ],
        "baseOutputDirectory": {"output_uri_prefix": "gs://b/o"},
        "scheduling": {"timeout": "60s", "restart_job_on_worker_restart": True, "max_wait_duration": None},
    }
    reading = validate_pipeline(pipeline(trainingTaskInputs=inputs, labels={"team": "a"}))
    assert reading.problems == []
    assert backing_kind(reading.spec) == CUSTOM_JOB
    assert job_of_pipeline(reading.spec) == {
        "displayName": "p-custom-job",
        "labels": {"team": "a"},
        "jobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {
                        "machineType": "g2-standard-4",
                        "acceleratorType": "NVIDIA_L4",
                        "acceleratorCount": 1,
                    },
                    "replicaCount": 1,
                    "containerSpec": {"imageUri": "x", "env": [{"name": "A", "value": "b"}]},
                }
            ],
            "baseOutputDirectory": {"outputUriPrefix": "gs://b/o"},
            "scheduling": {"timeout": "60s", "restartJobOnWorkerRestart": True},
        },
    }
    assert reading.spec["trainingTaskInputs"]["worker_pool_specs"][0]["replica_count"] == 1.0


def test_a_tuning_task_is_a_tuning_job() -> None:
    inputs = {
        "study_spec": STUDY,
        "maxTrialCount": 2.0,
        "parallel_trial_count": 1.0,
        "trialJobSpec": {"worker_pool_specs": [POOL]},
    }
    reading = validate_pipeline(pipeline(trainingTaskDefinition=TUNING_TASK, trainingTaskInputs=inputs))
    assert reading.problems == []
    assert backing_kind(reading.spec) == HYPERPARAMETER_TUNING_JOB
    assert job_of_pipeline(reading.spec) == {
        "displayName": "p-hyperparameter-tuning-job",
        "studySpec": STUDY,
        "maxTrialCount": 2,
        "parallelTrialCount": 1,
        "trialJobSpec": {"workerPoolSpecs": [POOL]},
    }


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        ({"workerPoolSpecs": "x"}, "trainingTaskInputs.workerPoolSpecs"),
        ({"workerPoolSpecs": [POOL], "bogus": 1}, "trainingTaskInputs.bogus"),
        (
            {"workerPoolSpecs": [POOL | {"containerSpec": {"imageUri": "x", "command": "python"}}]},
            "trainingTaskInputs.workerPoolSpecs[0].containerSpec.command",
        ),
        ({}, "trainingTaskInputs.workerPoolSpecs"),
        ("x", "trainingTaskInputs"),
        (None, "trainingTaskInputs"),
    ],
)
def test_misshapen_inputs_show_the_service_s_headline(inputs: Any, field: str) -> None:
    reading = validate_pipeline(pipeline(trainingTaskInputs=inputs))
    assert field in fields(reading)
    assert reading.headline == (
        "Unable to parse `training_pipeline.training_task_inputs` into custom task `inputs` defined in the file: "
        "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
    )


def test_rule_violations_in_inputs_have_no_headline() -> None:
    reading = validate_pipeline(pipeline(trainingTaskInputs={"workerPoolSpecs": [POOL | {"replicaCount": 2}]}))
    assert fields(reading) == ["trainingTaskInputs.workerPoolSpecs[0].replicaCount"]
    assert reading.headline == ""


def test_a_long_display_name_is_a_violation() -> None:
    assert fields(validate_pipeline(pipeline(displayName="x" * 129))) == ["displayName"]


def test_tuning_inputs_have_no_display_name() -> None:
    inputs = {
        "displayName": "x",
        "studySpec": STUDY,
        "maxTrialCount": 1,
        "parallelTrialCount": 1,
        "trialJobSpec": {"workerPoolSpecs": [POOL]},
    }
    reading = validate_pipeline(pipeline(trainingTaskDefinition=TUNING_TASK, trainingTaskInputs=inputs))
    assert fields(reading) == ["trainingTaskInputs.displayName"]


def test_tasks_without_training_code_are_rejected_by_name() -> None:
    definition = "gs://google-cloud-aiplatform/schema/trainingjob/definition/automl_tabular_1.0.0.yaml"
    (problem,) = validate_pipeline(pipeline(trainingTaskDefinition=definition)).problems
    assert problem.place == "trainingTaskDefinition"
    assert "automl_tabular" in problem.message
    assert CUSTOM_TASK in problem.message


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"modelId": "m"}, "modelId"),
        ({"parentModel": "m"}, "parentModel"),
        ({"modelToUpload": MODEL, "modelId": "m", "parentModel": "n"}, "modelId"),
        ({"modelToUpload": MODEL, "modelId": "1m"}, "modelId"),
        ({"modelToUpload": MODEL, "modelId": "M"}, "modelId"),
        ({"modelToUpload": MODEL, "modelId": "m" * 64}, "modelId"),
        ({"modelToUpload": {"displayName": "m" * 129}}, "modelToUpload.displayName"),
        ({"modelToUpload": MODEL | {"versionAliases": ["ok", "1"]}}, "modelToUpload.versionAliases[1]"),
        ({"modelToUpload": MODEL | {"labels": {"A": "b"}}}, "modelToUpload.labels"),
        ({"labels": {"a": "B"}}, "labels.a"),
        ({"modelToUpload": MODEL | {"bogus": 1}}, "modelToUpload.bogus"),
        ({"modelToUpload": {}}, "modelToUpload.displayName"),
        (
            {"modelToUpload": MODEL | {"containerSpec": {"imageUri": "x", "healthProbe": PROBE}}},
            "modelToUpload.containerSpec.healthProbe.httpGet",
        ),
        ({"inputDataConfig": {}}, "inputDataConfig.datasetId"),
        (
            {"inputDataConfig": {"datasetId": "1", "fractionSplit": {}, "predefinedSplit": {"key": "k"}}},
            "inputDataConfig.predefinedSplit",
        ),
        (
            {
                "inputDataConfig": {
                    "datasetId": "1",
                    "gcsDestination": {"outputUriPrefix": "gs://b/x"},
                    "bigqueryDestination": {"outputUri": "bq://p"},
                }
            },
            "inputDataConfig.bigqueryDestination",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(extra: dict[str, Any], field: str) -> None:
    assert set(fields(validate_pipeline(pipeline(**extra)))) == {field}


def test_a_valid_model_id_is_accepted() -> None:
    assert (
        validate_pipeline(pipeline(modelToUpload=MODEL | {"versionAliases": ["prod-1"]}, modelId="_m-1")).problems == []
    )
