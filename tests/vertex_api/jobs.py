"""Jobs for tests: small ones that are right, and copies of them with something changed."""

import copy
from typing import Any

from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_api.pipelines import CUSTOM_TASK, TUNING_TASK

ABSENT = object()


def custom_job() -> dict[str, Any]:
    return {
        "displayName": "digits",
        "jobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {"machineType": "n1-standard-4"},
                    "replicaCount": 1,
                    "containerSpec": {"imageUri": "trainer:1", "args": ["--epochs=3"]},
                }
            ]
        },
    }


def tuning_job() -> dict[str, Any]:
    return {
        "displayName": "search",
        "studySpec": {
            "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
            "parameters": [
                {"parameterId": "rate", "doubleValueSpec": {"minValue": 0.001, "maxValue": 0.1}},
                {"parameterId": "units", "integerValueSpec": {"minValue": 1, "maxValue": 64}},
                {"parameterId": "batch", "discreteValueSpec": {"values": [16.0, 32.0]}},
                {"parameterId": "activation", "categoricalValueSpec": {"values": ["relu", "tanh"]}},
            ],
        },
        "maxTrialCount": 8,
        "parallelTrialCount": 2,
        "trialJobSpec": custom_job()["jobSpec"],
    }


def pipeline() -> dict[str, Any]:
    return {
        "displayName": "digits",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": custom_job()["jobSpec"],
        "modelToUpload": {"displayName": "digits", "containerSpec": {"imageUri": "serve:1"}},
    }


def tuning_pipeline() -> dict[str, Any]:
    inputs = {name: value for name, value in tuning_job().items() if name != "displayName"}
    return {"displayName": "search", "trainingTaskDefinition": TUNING_TASK, "trainingTaskInputs": inputs}


def job_of(kind: Kind) -> dict[str, Any]:
    """A job without a problem."""
    return {CUSTOM_JOB: custom_job, HYPERPARAMETER_TUNING_JOB: tuning_job, TRAINING_PIPELINE: pipeline}[kind]()


def edited(job: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    """A copy with another value at a path, or without one there (`to=ABSENT`)."""
    job = copy.deepcopy(job)
    node: Any = job
    for part in path[:-1]:
        node = node[part]
    if to is ABSENT:
        del node[path[-1]]
    else:
        node[path[-1]] = to
    return job
