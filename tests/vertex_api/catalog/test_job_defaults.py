from typing import Any

import pytest

from vertex_api.catalog.job_defaults import (
    copy_with_boot_disks,
    get_boot_disk_type_and_size,
    get_explicit_timeout_duration_or_none,
    get_model_directory_or_none,
    get_output_directories_by_variable,
)


def job_spec(**fields: Any) -> dict[str, Any]:
    return {"workerPoolSpecs": [], **fields}


@pytest.mark.parametrize("prefix", ["gs://b/run", "gs://b/run/"])
def test_output_goes_into_folders_below_the_output_directory(prefix: str) -> None:
    spec = job_spec(baseOutputDirectory={"outputUriPrefix": prefix})
    assert get_output_directories_by_variable(spec) == {
        "AIP_MODEL_DIR": "gs://b/run/model/",
        "AIP_CHECKPOINT_DIR": "gs://b/run/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": "gs://b/run/logs/",
    }


def test_each_trial_has_a_folder_of_its_own() -> None:
    spec = job_spec(baseOutputDirectory={"outputUriPrefix": "gs://b/run/"})
    assert get_model_directory_or_none(spec, "3") == "gs://b/run/3/model/"


def test_without_an_output_directory_there_are_no_folders() -> None:
    assert get_output_directories_by_variable(job_spec()) == {}
    assert get_model_directory_or_none(job_spec()) is None


@pytest.mark.parametrize(
    ("scheduling", "timeout"), [({"timeout": "60s"}, "60s"), ({"timeout": "0s"}, None), ({}, None)]
)
def test_a_timeout_of_zero_is_unset(scheduling: dict[str, str], timeout: str | None) -> None:
    assert get_explicit_timeout_duration_or_none(job_spec(scheduling=scheduling)) == timeout


def test_boot_disks_have_a_default_size_and_type() -> None:
    assert get_boot_disk_type_and_size({"machineSpec": {"machineType": "n1-standard-4"}}) == ("pd-ssd", 100)
    newest = {"machineSpec": {"machineType": "a4-highgpu-8g"}, "diskSpec": {"bootDiskSizeGb": 200}}
    assert get_boot_disk_type_and_size(newest) == ("hyperdisk-balanced", 200)


def test_boot_disks_are_filled_in_for_pools_with_machines() -> None:
    small, large = {"machineType": "n1-standard-4"}, {"machineType": "a3-ultragpu-8g"}
    pools = [
        {"machineSpec": small},
        {},
        {"machineSpec": large, "diskSpec": {"bootDiskSizeGb": 500}},
        {"containerSpec": {}},
    ]
    assert [
        pool.get("diskSpec") for pool in copy_with_boot_disks(job_spec(workerPoolSpecs=pools))["workerPoolSpecs"]
    ] == [
        {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
        None,
        {"bootDiskType": "hyperdisk-balanced", "bootDiskSizeGb": 500},
        None,
    ]
