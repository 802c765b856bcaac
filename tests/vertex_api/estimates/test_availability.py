"""Where training has accelerators, and what else a job may take."""

import re
from datetime import date
from typing import Any

import pytest
import yaml

from tests.vertex_api.estimates.test_cost import pool
from tests.vertex_api.jobs import custom_job, edited, tuning_job
from tests.vertex_api.validation.breaking import said_of_spec
from vertex_api.estimates.availability import AS_OF, REGIONS, accelerator_regions, alternatives, missing_accelerators
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
    assert missing_accelerators(Job(CUSTOM_JOB, job).pools, there) == set()
    assert missing_accelerators(Job(CUSTOM_JOB, job).pools, elsewhere) == {name}


def test_trials_are_checked_unless_on_a_persistent_resource() -> None:
    job = edited(tuning_job(), "trialJobSpec", *MACHINE, to=H100)
    assert missing_accelerators(Job(HYPERPARAMETER_TUNING_JOB, job).pools, "me-west1") == {"NVIDIA_H100_80GB"}
    job["trialJobSpec"]["persistentResourceId"] = "mine"
    assert missing_accelerators(Job(HYPERPARAMETER_TUNING_JOB, job).pools, "me-west1") == set()
    assert missing_accelerators(Job(CUSTOM_JOB, custom_job()).pools, "me-west1") == set()


FLEX = (
    "scheduling: {strategy: FLEX_START, maxWaitDuration: 86400s}: the job waits for machines, here for at most a day, "
    "and starts when all are there; it takes preemptible quota"
)
SPOT = "scheduling: {strategy: SPOT}: spare machines, which may be taken back; it takes preemptible quota"
L4 = pool("g2-standard-8", acceleratorType="NVIDIA_L4", acceleratorCount=1)
OTHER_L4 = "another machineType with NVIDIA_L4: g2-standard-12, g2-standard-4, g2-standard-16, g2-standard-32"
OTHER_REGION = (
    "a second stack in another region that offers NVIDIA_L4: europe-west2, asia-northeast3, asia-south1, "
    "asia-southeast1, and 6 more (`vertex-training docs regions`)"
)


def of(*pools: dict[str, Any], region: str = "europe-west4", **fields: Any) -> list[str]:
    return list(alternatives(Job(CUSTOM_JOB, {"jobSpec": {"workerPoolSpecs": [*pools], **fields}}), region))


def test_a_gpu_job_has_strategies_machines_and_regions() -> None:
    assert of(L4, {}, L4) == [FLEX, SPOT, OTHER_L4, OTHER_REGION]


@pytest.mark.parametrize("advice", [FLEX, SPOT])
def test_an_advised_strategy_is_valid(advice: str) -> None:
    (advised,) = re.findall(r"^scheduling: (\{.*?\})", advice)
    assert said_of_spec(workerPoolSpecs=[L4], scheduling=yaml.safe_load(advised)) == []


def test_a_cpu_job_has_machines_of_other_families() -> None:
    found = of(pool("n1-highmem-8"))
    assert found == [
        SPOT,
        "another machineType: n2-highmem-8, n4-highmem-8, e2-highmem-8, c2-standard-16",
        "a second stack in another region (`vertex-training docs regions`)",
    ]
    for name in found[1].partition(": ")[2].split(", "):
        machine = MACHINES.get(name)
        assert machine is not None and machine.vcpus >= 8 and machine.memory_gb >= 52


def test_a_strategy_is_not_offered_against_its_rules() -> None:
    week = {"scheduling": {"timeout": "604801s"}}
    assert FLEX in of(L4) and FLEX not in of(L4, **week) and FLEX not in of(L4, pool("n1-standard-4"))
    pod = pool("cloud-tpu", acceleratorType="TPU_V3", acceleratorCount=32)
    assert of(pod) == [
        "a second stack in another region that offers TPU_V3: us-central1 (`vertex-training docs regions`)"
    ]


def test_the_current_strategy_is_not_offered_again() -> None:
    flexible = {"strategy": "FLEX_START", "maxWaitDuration": "3600s"}
    assert of(L4, scheduling=flexible)[:2] == [
        'a longer scheduling.maxWaitDuration than "3600s"; "0s" waits without limit',
        SPOT,
    ]
    assert of(L4, scheduling={"strategy": "SPOT"})[:2] == [
        FLEX,
        "scheduling: {strategy: STANDARD}: machines on demand, which are not taken back",
    ]


def test_machines_with_another_count_come_last() -> None:
    h100 = pool("a3-highgpu-8g", acceleratorType="NVIDIA_H100_80GB", acceleratorCount=8)
    assert (
        "another machineType with NVIDIA_H100_80GB: a3-highgpu-4g (acceleratorCount 4), "
        "a3-highgpu-2g (acceleratorCount 2), a3-highgpu-1g (acceleratorCount 1)"
    ) in of(h100)
    l4 = pool("g2-standard-48", acceleratorType="NVIDIA_L4", acceleratorCount=4)
    assert (
        "another machineType with NVIDIA_L4: g2-standard-96 (acceleratorCount 8), g2-standard-24 (acceleratorCount 2), "
        "g2-standard-32 (acceleratorCount 1), g2-standard-16 (acceleratorCount 1)"
    ) in of(l4)


def test_a_region_without_the_accelerator_offers_no_machines() -> None:
    assert not any("machineType" in line for line in of(L4, region="europe-west9"))


def test_jobs_on_a_persistent_resource_need_it_larger() -> None:
    assert of(L4, persistentResourceId="mine") == [
        "more machines in the persistent resource mine, or a job without persistentResourceId"
    ]
