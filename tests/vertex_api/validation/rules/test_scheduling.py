"""Rules of scheduling."""

from typing import Any

import pytest

from tests.vertex_api.validation.rules.breaking import POOLS, pool, said_of_spec

L4 = {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
FLEX = {"strategy": "FLEX_START"}


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": "1s", "disableRetries": True, "restartJobOnWorkerRestart": True},
        {"strategy": "SPOT"},
        {"strategy": "ON_DEMAND"},
        {"strategy": 0, "timeout": "31536000s"},
    ],
)
def test_ordinary_jobs_may_be_scheduled_at_will(options: dict[str, Any]) -> None:
    assert said_of_spec(scheduling=options) == []


def test_durations_are_not_negative() -> None:
    assert said_of_spec(
        scheduling={**FLEX, "timeout": "-1s", "maxWaitDuration": "-0.5s"}, workerPoolSpecs=[pool(machineSpec=L4)]
    ) == [
        'jobSpec.scheduling.timeout: "-1s" must not be negative',
        'jobSpec.scheduling.maxWaitDuration: "-0.500s" must not be negative',
    ]


@pytest.mark.parametrize("strategy", ["STANDARD", "SPOT"])
def test_only_flexible_jobs_have_a_longest_wait(strategy: str) -> None:
    assert said_of_spec(scheduling={"strategy": strategy, "maxWaitDuration": "3600s"}) == [
        f"jobSpec.scheduling.maxWaitDuration: is for the strategy FLEX_START only, not for {strategy}"
    ]


def test_flex_start_limits_timeout_and_accelerators() -> None:
    pools = [pool(machineSpec=L4), pool(machineSpec=L4)]
    assert said_of_spec(scheduling={**FLEX, "timeout": "604800s", "maxWaitDuration": "0s"}, workerPoolSpecs=pools) == []
    assert said_of_spec(scheduling={**FLEX, "timeout": "604801s"}, workerPoolSpecs=pools) == [
        'jobSpec.scheduling.timeout: "604801s" is longer than the seven days ("604800s") of FLEX_START'
    ]
    assert said_of_spec(scheduling=FLEX, workerPoolSpecs=[pools[0], {}, pool()]) == [
        f"{POOLS}[2].machineSpec.acceleratorType: no accelerator: FLEX_START takes NVIDIA_L4, NVIDIA_TESLA_A100, "
        "NVIDIA_A100_80GB, NVIDIA_H100_80GB, NVIDIA_H100_MEGA_80GB, NVIDIA_H200_141GB or NVIDIA_B200",
    ]


def test_flexible_jobs_have_one_kind_of_machine() -> None:
    other = {**L4, "machineType": "g2-standard-16"}
    assert said_of_spec(scheduling=FLEX, workerPoolSpecs=[pool(machineSpec=L4), pool(machineSpec=other)]) == [
        f"{POOLS}[1].machineSpec: must be that of workerPoolSpecs[0]: FLEX_START needs the same machines in all pools"
    ]


def test_spot_machines_are_not_for_tpu_pods() -> None:
    def said(topology: str) -> list[str]:
        machine = {"machineType": "ct5lp-hightpu-4t", "tpuTopology": topology}
        return said_of_spec(scheduling={"strategy": "SPOT"}, workerPoolSpecs=[pool(machineSpec=machine)])

    assert said("2x2") == []
    assert said("4x4") == [
        f"{POOLS}[0].machineSpec.machineType: ct5lp-hightpu-4t: the strategy SPOT is not for TPU pods"
    ]
    v2 = {"machineType": "cloud-tpu", "acceleratorType": "TPU_V2"}
    for cores, count in ((8, 0), (32, 1)):
        pools = [pool(machineSpec={**v2, "acceleratorCount": cores})]
        assert len(said_of_spec(scheduling={"strategy": "SPOT"}, workerPoolSpecs=pools)) == count
