"""Where accelerators are offered for training, and what a job asks for that is not offered in its region."""

from datetime import date
from typing import Any

import pytest

from tests.vertex_api.jobs import custom_job, edited, tuning_job
from vertex_api.estimates.availability import AS_OF, REGIONS, accelerator_regions, missing_accelerators
from vertex_api.job import Job
from vertex_api.machines import MACHINES
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB

MACHINE = ("workerPoolSpecs", 0, "machineSpec")
H100 = {"machineType": "a3-highgpu-8g", "acceleratorType": "NVIDIA_H100_80GB", "acceleratorCount": 8}


def test_every_accelerator_is_listed_with_known_regions() -> None:
    kinds = {kind for each in MACHINES.values() for kind in each.accelerators}
    assert kinds <= accelerator_regions().keys()
    assert {region for regions in accelerator_regions().values() for region in regions} <= REGIONS
    assert date.fromisoformat(AS_OF) > date(2026, 1, 1)


@pytest.mark.parametrize(
    ("machine", "there", "elsewhere", "name"),
    [
        (H100, "us-east5", "europe-west9", "NVIDIA_H100_80GB"),
        ({"machineType": "ct5lp-hightpu-4t", "tpuTopology": "2x2"}, "us-west4", "europe-west4", "TPU_V5_LITEPOD"),
        ({"machineType": "ct6e-standard-4t", "tpuTopology": "2x2"}, "us-east5", "us-east4", "TPU_V6E"),
        ({"machineType": "tpu7x-standard-4t", "tpuTopology": "2x2x1"}, "us-central1", "us-east5", "TPU7X"),
        (
            {"machineType": "cloud-tpu", "acceleratorType": "TPU_V2", "acceleratorCount": 8},
            "asia-east1",
            "us-east1",
            "TPU_V2",
        ),
    ],
)
def test_accelerators_unavailable_in_the_region_are_found(machine: Any, there: str, elsewhere: str, name: str) -> None:
    job = edited(custom_job(), "jobSpec", *MACHINE, to=machine)
    assert missing_accelerators(Job(CUSTOM_JOB, job), there) == set()
    assert missing_accelerators(Job(CUSTOM_JOB, job), elsewhere) == {name}


def test_trials_are_checked_unless_on_a_persistent_resource() -> None:
    job = edited(tuning_job(), "trialJobSpec", *MACHINE, to=H100)
    assert missing_accelerators(Job(HYPERPARAMETER_TUNING_JOB, job), "me-west1") == {"NVIDIA_H100_80GB"}
    job["trialJobSpec"]["persistentResourceId"] = "mine"
    assert missing_accelerators(Job(HYPERPARAMETER_TUNING_JOB, job), "me-west1") == set()
    assert missing_accelerators(Job(CUSTOM_JOB, custom_job()), "me-west1") == set()
