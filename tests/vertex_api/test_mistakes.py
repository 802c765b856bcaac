"""Likely mistakes, and resources of other regions."""

from typing import Any

import pytest

from tests.vertex_api.jobs import custom_job, edited, tuning_job
from tests.vertex_api.validation.breaking import pool
from vertex_api import jobspec
from vertex_api.job import Job
from vertex_api.messages import show_path
from vertex_api.mistakes import likely_mistakes, region_mismatches
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.validation.check import validate_job

GPUS = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
REDUCTION = pool(containerSpec={"imageUri": jobspec.reduction_server_image("us-central1")})
EXPERIMENT = "projects/p/locations/us-central1/metadataStores/default/contexts/e"


def likely_of_study(*path: str | int, to: Any) -> list[str]:
    job, problems = validate_job(HYPERPARAMETER_TUNING_JOB, edited(tuning_job(), "studySpec", *path, to=to))
    assert problems == []
    return [
        f"{show_path(path)}: {message}".removeprefix("studySpec.")
        for path, message in likely_mistakes(Job(HYPERPARAMETER_TUNING_JOB, job), on_google_cloud=False)
    ]


@pytest.mark.parametrize(("index", "name"), [(0, "doubleValueSpec"), (1, "integerValueSpec")])
def test_a_range_needs_at_least_one_bound(index: int, name: str) -> None:
    assert likely_of_study("parameters", index, name, to={"maxValue": 3}) == []
    assert likely_of_study("parameters", index, name, to={"minValue": 0, "maxValue": 0}) == []
    assert likely_of_study("parameters", index, name, to={}) == [
        f"parameters[{index}].{name}: needs minValue and maxValue; one that is left out is zero"
    ]


@pytest.mark.parametrize(
    ("image", "count"),
    [
        ("us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-6:latest", 0),
        ("europe-west4-docker.pkg.dev/acme/mirror/sklearn:1", 0),
        ("gcr.io/cloud-aiplatform/training/tf-cpu.2-1", 0),
        ("eu.gcr.io/acme/x", 0),
        ("python:3.11", 1),
        ("registry.example.com/x", 1),
        ("us-docker.pkg.dev", 1),
    ],
)
def test_executors_of_vertex_ai_are_in_artifact_registry(image: str, count: int) -> None:
    package = {"executorImageUri": image, "packageUris": ["gs://b/p"], "pythonModule": "m"}
    job = edited(custom_job(), "jobSpec", "workerPoolSpecs", 0, "pythonPackageSpec", to=package)
    path = ("jobSpec", "workerPoolSpecs", 0, "pythonPackageSpec", "executorImageUri")
    assert [each for each, _ in likely_mistakes(Job(CUSTOM_JOB, job), on_google_cloud=True)] == [path] * count
    assert list(likely_mistakes(Job(CUSTOM_JOB, job), on_google_cloud=False)) == []


KEY = "projects/acme-kms/locations/europe-west4/keyRings/r/cryptoKeys/k"
ATTACHMENT = "projects/acme-dev/regions/europe-west4/networkAttachments/a"


def test_a_key_of_another_region_is_found() -> None:
    job = custom_job() | {"encryptionSpec": {"kmsKeyName": KEY}}
    assert list(region_mismatches(Job(CUSTOM_JOB, job), "europe-west4")) == []
    assert list(region_mismatches(Job(CUSTOM_JOB, job), "us-central1")) == [
        (
            ("encryptionSpec", "kmsKeyName"),
            'the key is in "europe-west4"; it must be in the region of the jobs, us-central1',
        )
    ]


@pytest.mark.parametrize(("name", "count"), [(ATTACHMENT, 1), ("a", 0)])
def test_an_attachment_of_another_region_is_found(name: str, count: int) -> None:
    job = tuning_job()
    job["trialJobSpec"]["pscInterfaceConfig"] = {"networkAttachment": name}
    found = list(region_mismatches(Job(HYPERPARAMETER_TUNING_JOB, job), "us-central1"))
    path = ("trialJobSpec", "pscInterfaceConfig", "networkAttachment")
    assert [each for each, _ in found] == [path] * count


def test_a_tensorboard_of_another_region_is_found() -> None:
    job = tuning_job()
    job["trialJobSpec"]["tensorboard"] = "projects/p/locations/europe-west4/tensorboards/7"
    assert list(region_mismatches(Job(HYPERPARAMETER_TUNING_JOB, job), "europe-west4")) == []
    ((path, message),) = region_mismatches(Job(HYPERPARAMETER_TUNING_JOB, job), "us-central1")
    assert path == ("trialJobSpec", "tensorboard")
    assert message == 'the TensorBoard is in "europe-west4"; it must be in the region of the jobs, us-central1'


def test_a_model_gets_its_versions_where_it_is() -> None:
    job = custom_job() | {"parentModel": "projects/p/locations/europe-west4/models/m"}
    assert list(region_mismatches(Job(CUSTOM_JOB, job), "europe-west4")) == []
    message = 'the model is in "europe-west4"; it must be in the region of the jobs, us-central1'
    assert list(region_mismatches(Job(CUSTOM_JOB, job), "us-central1")) == [(("parentModel",), message)]


def test_protected_artifacts_are_said_to_be_elsewhere_only() -> None:
    job = custom_job()
    job["jobSpec"]["protectedArtifactLocationId"] = "us-central1"
    assert list(region_mismatches(Job(CUSTOM_JOB, job), "europe-west4")) == []
    assert list(region_mismatches(Job(CUSTOM_JOB, job), "us-central1")) == [
        (("jobSpec", "protectedArtifactLocationId"), "is the region of the jobs, us-central1; leave it out")
    ]


def test_a_job_without_regional_resources_has_no_mismatches() -> None:
    assert list(region_mismatches(Job(CUSTOM_JOB, custom_job()), "us-central1")) == []
