"""What Vertex AI would refuse is traced to the field of the legacy job that it came from."""

from typing import Any

import pytest
from vertex_training.ai_platform_training.converted_field_origins import find_legacy_path_or_none

from vertex_api.messages import KeyPath, show_path

POOL = ("jobSpec", "workerPoolSpecs")
TYPES = {"masterType": "n1-standard-4", "workerType": "n1-standard-4", "workerCount": 1}
ACCELERATOR = {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 3}}


def legacy_path(path: KeyPath, training_input: dict[str, Any], training_input_path: KeyPath) -> str:
    return show_path(find_legacy_path_or_none(path, training_input, training_input_path) or ())


@pytest.mark.parametrize(
    ("path", "training_input", "field"),
    [
        ((*POOL, 0, "machineSpec", "machineType"), TYPES, "masterType"),
        ((*POOL, 1, "machineSpec", "machineType"), TYPES, "workerType"),
        ((*POOL, 1, "machineSpec", "machineType"), {"scaleTier": "STANDARD_1"}, "scaleTier"),
        ((*POOL, 2, "replicaCount"), {"scaleTier": "STANDARD_1"}, "scaleTier"),
        ((*POOL, 1, "replicaCount"), TYPES, "workerCount"),
        ((*POOL, 0, "machineSpec", "acceleratorType"), TYPES, "masterType"),
        (
            (*POOL, 0, "machineSpec", "acceleratorType"),
            TYPES | {"masterConfig": ACCELERATOR},
            "masterConfig.acceleratorConfig.type",
        ),
        (
            (*POOL, 1, "machineSpec", "acceleratorCount"),
            TYPES | {"workerConfig": ACCELERATOR},
            "workerConfig.acceleratorConfig.count",
        ),
        ((*POOL, 1, "containerSpec", "imageUri"), {"masterConfig": {"imageUri": "x"}}, "masterConfig.imageUri"),
        ((*POOL, 1, "containerSpec", "imageUri"), {"workerConfig": {"imageUri": "x"}}, "workerConfig.imageUri"),
        ((*POOL, 0, "containerSpec", "args"), {"args": ["a"]}, "args"),
        ((*POOL, 0, "containerSpec", "args"), {"masterConfig": {"containerArgs": []}}, "masterConfig.containerArgs"),
        ((*POOL, 1, "pythonPackageSpec", "packageUris", 2), {}, "packageUris[2]"),
        ((*POOL, 0, "diskSpec", "bootDiskType"), {}, "masterConfig.diskConfig.bootDiskType"),
        (("jobSpec", "scheduling", "timeout"), {}, "scheduling.maxRunningTime"),
        (("studySpec", "parameters", 1, "discreteValueSpec", "values"), {}, "hyperparameters.params[1].discreteValues"),
        (("studySpec", "parameters", 1, "scaleType"), {}, "hyperparameters.params[1].scaleType"),
        (("studySpec", "parameters", 1, "doubleValueSpec"), {}, "hyperparameters.params[1]"),
        (("maxTrialCount",), {}, "hyperparameters.maxTrials"),
        (("maxFailedTrialCount",), {}, "hyperparameters.maxFailedTrials"),
        (("trialJobSpec", "network"), {}, "network"),
    ],
)
def test_a_field_is_traced_to_its_origin(path: KeyPath, training_input: dict[str, Any], field: str) -> None:
    assert legacy_path(path, training_input, ()) == field
    assert legacy_path(path, training_input, ("trainingInput",)) == f"trainingInput.{field}"


@pytest.mark.parametrize(("path", "field"), [(("labels", "a"), "labels.a"), (("displayName",), "jobId")])
def test_job_fields_are_outside_the_training_input(path: KeyPath, field: str) -> None:
    assert legacy_path(path, {}, ("trainingInput",)) == field


def test_what_came_from_no_field_has_no_place() -> None:
    assert find_legacy_path_or_none(("jobSpec", "tensorboard"), {}, ("trainingInput",)) is None
