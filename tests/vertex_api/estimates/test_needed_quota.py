"""Quota: which metrics a job counts against, and how much it needs of each."""

from typing import Any

import pytest

from tests.vertex_api.estimates.test_cost import pool
from tests.vertex_api.jobs import custom_job, edited, tuning_job, tuning_pipeline
from vertex_api.estimates.quota import needed_quota
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE


def of(*pools: dict[str, Any], **job_spec: Any) -> dict[str, int]:
    job = edited(custom_job(), "jobSpec", "workerPoolSpecs", to=[*pools])
    job["jobSpec"].update(job_spec)
    return needed_quota(Job(CUSTOM_JOB, job))


T4 = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}
L4 = {"acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}


def test_vcpus_gpus_and_disks_of_replicas_add_up() -> None:
    disk = {"diskSpec": {"bootDiskSizeGb": 200}}
    found = of(pool("n1-standard-4"), {}, pool("n1-standard-8", 3, **T4) | disk)
    assert found == {"cpus": 4 + 3 * 8, "pd_ssd": 100 + 3 * 200, "nvidia_t4_gpus": 3 * 2}


def test_tuning_needs_what_its_trials_at_once_need() -> None:
    job = edited(tuning_job(), "parallelTrialCount", to=3)
    assert needed_quota(Job(HYPERPARAMETER_TUNING_JOB, job)) == {"cpus": 12, "pd_ssd": 300}


def test_a_pipeline_needs_the_quota_of_its_job() -> None:
    assert needed_quota(Job(TRAINING_PIPELINE, tuning_pipeline())) == needed_quota(
        Job(HYPERPARAMETER_TUNING_JOB, tuning_job())
    )


@pytest.mark.parametrize("strategy", ["SPOT", "FLEX_START"])
def test_spot_and_flex_start_count_as_preemptible(strategy: str) -> None:
    found = of(pool("g2-standard-8", **L4), scheduling={"strategy": strategy})
    assert found == {"preemptible_cpus": 8, "preemptible_nvidia_l4_gpus": 1, "pd_ssd": 100}


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (pool("n2-standard-8"), {"n2_cpus": 8, "pd_ssd": 100}),
        (pool("c2-standard-4"), {"c2_cpus": 4, "pd_ssd": 100}),
        (
            pool("a3-highgpu-8g", acceleratorType="NVIDIA_H100_80GB", acceleratorCount=8),
            {"a3_cpus": 208, "nvidia_h100_gpus": 8, "pd_ssd": 100},
        ),
        (
            pool("a3-ultragpu-8g", acceleratorType="NVIDIA_H200_141GB", acceleratorCount=8),
            {"a3_cpus": 224, "nvidia_h200_gpus": 8, "hyperdisk-balanced GB*": 100},
        ),
        (
            pool("a4-highgpu-8g", acceleratorType="NVIDIA_B200", acceleratorCount=8),
            {"a4 vCPUs*": 224, "NVIDIA_B200*": 8, "hyperdisk-balanced GB*": 100},
        ),
        (pool("ct5lp-hightpu-4t", tpuTopology="4x4"), {"tpu_v5e": 16, "pd_ssd": 100}),
        (pool("cloud-tpu", acceleratorType="TPU_V2", acceleratorCount=8), {"tpu_v2": 8, "pd_ssd": 100}),
    ],
)
def test_quotas_without_a_known_name_are_left_out(machine: dict[str, Any], expected: dict[str, int]) -> None:
    assert of(machine) == expected


def test_jobs_on_a_persistent_resource_need_no_quota() -> None:
    assert of(pool("n1-standard-4"), persistentResourceId="mine") == {}
