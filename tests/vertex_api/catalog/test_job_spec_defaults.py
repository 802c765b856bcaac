from typing import Any

import pytest

from vertex_api.jobspec import boot_disk, explicit_timeout, with_boot_disks


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


def test_boot_disks_are_filled_in_for_pools_with_machines() -> None:
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
