"""What a CustomJobSpec means where it is silent."""

from typing import Any

import pytest

from vertex_api import jobspec
from vertex_api.jobspec import boot_disk, explicit_timeout, model_folder, output_folders, with_boot_disks


def job_spec(**fields: Any) -> dict[str, Any]:
    return {"workerPoolSpecs": [], **fields}


@pytest.mark.parametrize(
    ("scheduling", "timeout"), [({"timeout": "60s"}, "60s"), ({"timeout": "0s"}, None), ({}, None)]
)
def test_a_timeout_of_zero_is_unset(scheduling: dict[str, str], timeout: str | None) -> None:
    assert explicit_timeout(job_spec(scheduling=scheduling)) == timeout


def test_boot_disks_have_a_default_size_and_type() -> None:
    assert boot_disk({"machineSpec": {"machineType": "n1-standard-4"}}) == ("pd-ssd", 100)
    newest = {"machineSpec": {"machineType": "a4-highgpu-8g"}, "diskSpec": {"bootDiskSizeGb": 200}}
    assert boot_disk(newest) == ("hyperdisk-balanced", 200)


def test_pools_with_machines_get_boot_disks() -> None:
    small, large = {"machineType": "n1-standard-4"}, {"machineType": "a3-ultragpu-8g"}
    pools = [
        {"machineSpec": small},
        {},
        {"machineSpec": large, "diskSpec": {"bootDiskSizeGb": 500}},
        {"containerSpec": {}},
    ]
    assert [pool.get("diskSpec") for pool in with_boot_disks(job_spec(workerPoolSpecs=pools))["workerPoolSpecs"]] == [
        {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
        None,
        {"bootDiskType": "hyperdisk-balanced", "bootDiskSizeGb": 500},
        None,
    ]


@pytest.mark.parametrize("prefix", ["gs://b/run", "gs://b/run/"])
def test_output_goes_into_folders_below_the_output_directory(prefix: str) -> None:
    spec = job_spec(baseOutputDirectory={"outputUriPrefix": prefix})
    assert output_folders(spec) == {
        "AIP_MODEL_DIR": "gs://b/run/model/",
        "AIP_CHECKPOINT_DIR": "gs://b/run/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": "gs://b/run/logs/",
    }


def test_each_trial_has_a_folder_of_its_own() -> None:
    spec = job_spec(baseOutputDirectory={"outputUriPrefix": "gs://b/run/"})
    assert model_folder(spec, "3") == "gs://b/run/3/model/"


def test_without_an_output_directory_there_are_no_folders() -> None:
    assert output_folders(job_spec()) == {}
    assert model_folder(job_spec()) is None


IMAGE = "docker.pkg.dev/vertex-ai-restricted/training/reductionserver"


@pytest.mark.parametrize(
    ("region", "place"),
    [
        ("us-central1", "us"),
        ("northamerica-northeast1", "us"),
        ("southamerica-east1", "us"),
        ("", "us"),
        ("europe-west4", "europe"),
        ("me-west1", "europe"),
        ("africa-south1", "europe"),
        ("asia-southeast1", "asia"),
        ("australia-southeast1", "asia"),
    ],
)
def test_the_image_comes_from_the_nearest_location(region: str, place: str) -> None:
    assert jobspec.reduction_server_image(region) == f"{place}-{IMAGE}:latest"


@pytest.mark.parametrize("uri", [f"us-{IMAGE}", f"asia-{IMAGE}:latest", f"europe-{IMAGE}@sha256:{'0' * 64}"])
def test_any_location_and_tag_is_recognized(uri: str) -> None:
    assert jobspec.is_reduction_server({"containerSpec": {"imageUri": uri}})


@pytest.mark.parametrize("uri", [f"us-{IMAGE}-2", f"mirror/us-{IMAGE}", "trainer:1"])
def test_another_image_is_not_taken_for_it(uri: str) -> None:
    assert not jobspec.is_reduction_server({"containerSpec": {"imageUri": uri}})


def test_a_pool_without_container_is_no_reduction_server() -> None:
    assert not jobspec.is_reduction_server({})
