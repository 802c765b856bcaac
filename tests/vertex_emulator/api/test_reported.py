"""Answers of the service that others have reported (docs/fidelity.md, "Captures of real jobs"), and the emulator's."""

from typing import Any

import pytest

from tests.vertex_emulator.running import PARENT, RunningEmulator

MODEL = {"displayName": "reported", "containerSpec": {"imageUri": "localhost/absent:1"}}


def upload(shared: RunningEmulator, **request: Any) -> str:
    response = shared.call("POST", f"v1/{PARENT}/models:upload", request)["response"]
    return f"{response['model']}@{response['modelVersionId']}"


def versions(shared: RunningEmulator, model: str) -> list[str]:
    return [each["versionId"] for each in shared.call("GET", f"v1/{model}:listVersions")["models"]]


def test_versions_are_managed_as_by_the_sdk(shared: RunningEmulator) -> None:
    first = upload(shared, model={**MODEL, "versionAliases": ["system-test-model", "testing", "default"]})
    model = first.partition("@")[0]
    second = upload(shared, model=MODEL, parentModel=model)
    assert (first, second) == (f"{model}@1", f"{model}@2")
    assert shared.get(first)["versionAliases"] == ["system-test-model", "testing", "default"]
    assert "versionAliases" not in shared.get(second)
    assert versions(shared, model) == ["1", "2"]

    for changed, alias in (("default", "new-alias"), ("new-alias", "-testing")):
        shared.call("POST", f"v1/{model}@{changed}:mergeVersionAliases", {"versionAliases": [alias]})
    assert "testing" not in shared.get(f"{model}@new-alias")["versionAliases"]
    shared.call("DELETE", f"v1/{second}:deleteVersion")
    assert versions(shared, model) == ["1"]


def test_pages_of_versions_go_on_in_order(shared: RunningEmulator) -> None:
    model = upload(shared, model=MODEL).partition("@")[0]
    upload(shared, model=MODEL, parentModel=model)
    page = shared.call("GET", f"v1/{model}:listVersions?pageSize=1")
    rest = shared.call("GET", f"v1/{model}:listVersions?pageSize=1&pageToken={page['nextPageToken']}")
    assert [each["versionId"] for each in (*page["models"], *rest["models"])] == ["1", "2"]


def test_models_with_a_container_say_what_they_take(shared: RunningEmulator) -> None:
    model = shared.get(upload(shared, model=MODEL))
    assert model["supportedDeploymentResourcesTypes"] == ["DEDICATED_RESOURCES"]
    formats = ["jsonl", "bigquery", "csv", "tf-record", "tf-record-gzip", "file-list"]
    assert model["supportedInputStorageFormats"] == formats
    assert model["supportedOutputStorageFormats"] == ["jsonl", "bigquery"]


PLACE = "List of found errors:\t1.Field: job_spec.worker_pool_specs[0].machine_spec.accelerator"


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (
            {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4"},
            f"{PLACE}_type; Message: Both `accelerator_type` and `accelerator_count` should be specified or none.\t",
        ),
        (
            {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 8},
            f'{PLACE}_count; Message: The accelerator count "8" is not allowed. The allowed numbers of accelerator '
            '"NVIDIA_L4" to use with machine type "g2-standard-8" are: [1].\t',
        ),
    ],
)
def test_impossible_accelerators_are_refused(shared: RunningEmulator, machine: dict[str, Any], message: str) -> None:
    pool = {"machineSpec": machine, "replicaCount": 1, "containerSpec": {"imageUri": "localhost/absent:1"}}
    job = {"displayName": "reported", "jobSpec": {"workerPoolSpecs": [pool]}}
    assert shared.call("POST", f"v1/{PARENT}/customJobs", job, expect=400)["error"]["message"] == message


@pytest.mark.parametrize("collection", ["customJobs", "trainingPipelines/1", "models", "tensorboards", "operations"])
def test_no_region_stands_for_all(shared: RunningEmulator, collection: str) -> None:
    answer = shared.call("GET", f"v1/projects/my-project/locations/-/{collection}", expect=400)["error"]
    assert answer["status"] == "INVALID_ARGUMENT"
    assert answer["message"].startswith("The provided location ID doesn't match the endpoint.")


@pytest.mark.parametrize("collection", ["customJobs", "hyperparameterTuningJobs", "trainingPipelines", "tensorboards"])
def test_missing_numbers_are_not_found(shared: RunningEmulator, collection: str) -> None:
    answer = shared.call("GET", f"v1/{PARENT}/{collection}/1234567890123456789", expect=404)
    assert answer["error"]["status"] == "NOT_FOUND"


def test_time_series_are_asked_for_by_number(shared: RunningEmulator) -> None:
    board = shared.call("POST", f"v1/{PARENT}/tensorboards", {"displayName": "reported"})["response"]["name"]
    experiment = shared.call("POST", f"v1/{board}/experiments?tensorboardExperimentId=e", {})["name"]
    run = shared.call("POST", f"v1/{experiment}/runs?tensorboardRunId=r", {"displayName": "r"})["name"]
    malformed = shared.call("GET", f"v1/{run}/timeSeries/loss", expect=400)["error"]["message"]
    assert malformed == "List of found errors:\t1.Field: name; Message: Invalid TensorboardTimeSeries resource name.\t"
    missing = shared.call("GET", f"v1/{run}/timeSeries/1234567890123456789", expect=404)["error"]["message"]
    assert missing == f"TensorboardTimeSeries {run}/timeSeries/1234567890123456789 is not found."
    series = {"displayName": "loss", "valueType": "SCALAR"}
    path = f"v1/{run}/timeSeries?tensorboardTimeSeriesId"
    refused = shared.call("POST", f"{path}=train-loss", series, expect=400)["error"]["message"]
    assert "Field: tensorboard_time_series_id; Message: Valid characters are /[a-z][0-9]/" in refused
    created = shared.call("POST", f"{path}=loss2", series)["name"]
    assert shared.get(created)["displayName"] == "loss"
    shared.call("DELETE", f"v1/{board}")
