"""Machines of the stack's own persistent resource: what guardrails and the lines of cost say of them."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from vertex_training.plan.plan import PERSISTENT_RESOURCE
from vertex_training.review.diagnostics import MAX_LINES, cost_lines
from vertex_training.settings.settings import Settings

from tests.components.projects import CLOUD, LOCAL, load, problems

JOBS = """
customJobs:
  train:
    jobSpec:
      scheduling: {timeout: 7200s}
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: trainer}
"""
N1: dict[str, Any] = {"machineSpec": {"machineType": "n1-standard-4"}}
T4: dict[str, Any] = {
    "machineSpec": {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
}
UNPRICED: dict[str, Any] = {
    "machineSpec": {"machineType": "a4-highgpu-8g", "acceleratorType": "NVIDIA_B200", "acceleratorCount": 8}
}
FILE = "stacks/Pulumi.dev.yaml"
# N1: 0.2452797 USD an hour with its disk, as in tests/vertex_api/estimates/test_cost.py; `train` is two hours: 0.49.


def stack(*pools: dict[str, Any], base: str = CLOUD, **more: object) -> str:
    """A stack file with these pools from line 7 on, then more keys; each pool is a line."""
    listed = "".join(f"\n      - {json.dumps(pool)}" for pool in pools)
    kept = f"  vertex-training:persistentResource:\n    name: training\n    resourcePools:{listed}\n"
    return base + kept + "".join(f"  vertex-training:{key}: {json.dumps(value)}\n" for key, value in more.items())


def shown(settings: Settings) -> list[str]:
    return cost_lines(settings.plan, date(2026, 10, 1))


def row(found: list[str], name: str) -> str:
    """The cells of a row, with two blanks between."""
    (line,) = (line for line in found if line.startswith(f"  {name} "))
    return "  ".join(cell.strip() for cell in line.split("  ") if cell.strip())


def test_machines_that_break_guardrails_are_rejected(tmp_path: Path) -> None:
    rules = {"machineTypes": ["n1-standard-4", "g2-*"], "acceleratorTypes": ["NVIDIA_L4"]}
    at = "vertex-training:persistentResource.resourcePools[1].machineSpec"
    assert problems(tmp_path, stack(N1, T4, guardrails=rules)) == [
        f'{FILE}:10: {at}.machineType: guardrails.machineTypes: "n1-standard-8" is not allowed here; '
        "allowed: n1-standard-4 or g2-*",
        f'{FILE}:10: {at}.acceleratorType: guardrails.acceleratorTypes: "NVIDIA_TESLA_T4" is not allowed here; '
        "allowed: NVIDIA_L4",
    ]


def test_rules_for_jobs_do_not_limit_machines(tmp_path: Path) -> None:
    rules = {
        "machineTypes": ["n1-*"],
        "acceleratorTypes": ["NVIDIA_TESLA_*"],
        "requiredLabels": ["team"],
        "requireTimeout": True,
        "maxTimeout": "3600s",
        "maxReplicas": 1,
        "registries": ["none"],
    }
    settings = load(tmp_path, stack({**N1, "replicaCount": 4}, T4, guardrails=rules))
    assert list(settings.plan.costs) == [PERSISTENT_RESOURCE]


@pytest.mark.parametrize(
    ("machine", "base", "problem"),
    [
        ("n1-standard-5", CLOUD, f"{FILE}:9: vertex-training:persistentResource.resourcePools[0].machineSpec."),
        ("n1-standard-4", LOCAL, f"{FILE}:3: vertex-training:persistentResource: is for the target gcp"),
    ],
)
def test_guardrails_skip_invalid_machines(tmp_path: Path, machine: str, base: str, problem: str) -> None:
    rules = {"machineTypes": ["g2-*"], "maxHourlyCost": 0.1}
    (found,) = problems(tmp_path, stack({"machineSpec": {"machineType": machine}}, base=base, guardrails=rules))
    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("pools", "rules", "expected"),
    [
        (
            [{**N1, "replicaCount": 2}],
            {"maxHourlyCost": 0.4},
            f"{FILE}:6: vertex-training:persistentResource: guardrails.maxHourlyCost: 0.49 USD an hour by list price; "
            "allowed: 0.40 for all jobs and persistentResource",
        ),
        (
            [{**N1, "autoscalingSpec": {"minReplicaCount": 1, "maxReplicaCount": 3}}],
            {"maxHourlyCost": 0.9},
            f"{FILE}:11: vertex-training:guardrails.maxHourlyCost: 0.98 USD an hour by list price; allowed: 0.90 for "
            "all jobs and persistentResource; most expensive: persistentResource 0.74, train 0.25",
        ),
        (
            [UNPRICED],
            {"maxHourlyCost": 100, "maxTotalCost": 100},
            f"{FILE}:6: vertex-training:persistentResource: guardrails.maxHourlyCost: no price on file for "
            "hyperdisk-balanced, a4-highgpu-8g, NVIDIA_B200 in us-central1; add it under vertex-training:prices",
        ),
        (
            [N1],
            {"maxTotalCost": 0.4},
            "jobs.yaml:3: customJobs.train: guardrails.maxTotalCost: 0.49 USD at most by list price; "
            "allowed: 0.40 for all jobs",
        ),
    ],
)  # fmt: skip
def test_the_hourly_limit_covers_jobs_and_machines(
    tmp_path: Path, pools: list[dict[str, Any]], rules: dict[str, float], expected: str
) -> None:
    assert problems(tmp_path, stack(*pools, include=["jobs.yaml"], guardrails=rules), jobs=JOBS) == [expected]


@pytest.mark.parametrize("pool", [N1, UNPRICED])
def test_the_total_limit_ignores_machines(tmp_path: Path, pool: dict[str, Any]) -> None:
    settings = load(tmp_path, stack(pool, include=["jobs.yaml"], guardrails={"maxTotalCost": 0.5}), jobs=JOBS)
    assert settings.plan.costs.keys() == {"train", PERSISTENT_RESOURCE}


def test_without_a_job_the_machines_are_shown(tmp_path: Path) -> None:
    found = shown(load(tmp_path, stack({**N1, "replicaCount": 2}, T4)))
    # 2 x 0.2452797 + 8 x 0.03635265 + 30 x 0.00487255 + 0.4025 + 0.0267808 = 1.3568378
    assert found[0] == "Cost in us-central1: 1.36 USD an hour, persistentResource without an end"
    assert row(found, PERSISTENT_RESOURCE) == (
        "persistentResource  1.36  -  as long as it is there  cpus 16, pd_ssd 300, nvidia_t4_gpus 1"
    )
    assert [line for line in found if line.startswith("  stack")] == []


def test_machines_add_to_hourly_cost_and_quota(tmp_path: Path) -> None:
    with_them = shown(load(tmp_path, stack(N1, include=["jobs.yaml"]), jobs=JOBS))
    without = shown(load(tmp_path, f"{CLOUD}  vertex-training:include: [jobs.yaml]\n", jobs=JOBS))
    assert with_them[0] == "Cost in us-central1: 0.49 USD an hour, 0.49 USD at most, persistentResource without an end"
    assert row(with_them, "stack") == "stack  0.49  0.49  cpus 8, pd_ssd 200"
    assert row(with_them, "train") == row(without, "train") == "train  0.25  0.49  2 h  cpus 4, pd_ssd 100"


def test_unpriced_machines_are_in_no_sum(tmp_path: Path) -> None:
    found = shown(load(tmp_path, stack(UNPRICED, include=["jobs.yaml"]), jobs=JOBS))
    assert row(found, PERSISTENT_RESOURCE).startswith("persistentResource  ?  -  as long as it is there  ")
    assert row(found, "stack").startswith("stack  0.25  0.49  ")
    missing = "hyperdisk-balanced, a4-highgpu-8g, NVIDIA_B200"
    assert f"  persistentResource: no price on file for {missing}" in found
    assert "  The sum is without persistentResource with no price on file" in found
    jobs = JOBS.replace("{machineType: n1-standard-4}", json.dumps(UNPRICED["machineSpec"]))
    both = shown(load(tmp_path, stack(UNPRICED, include=["jobs.yaml"]), jobs=jobs))
    assert "  The sum is without 1 job and persistentResource with no price on file" in both


def test_machines_are_shown_before_jobs(tmp_path: Path) -> None:
    body = JOBS.partition("train:\n")[2].replace("{machineType: n1-standard-4}", json.dumps(UNPRICED["machineSpec"]))
    jobs = "customJobs:\n" + "".join(f"  job-{index}:\n{body}" for index in range(MAX_LINES + 2))
    found = shown(load(tmp_path, stack(N1, include=["jobs.yaml"]), jobs=jobs))
    assert found[2].startswith(f"  {PERSISTENT_RESOURCE} ")
    assert row(found, "3 more") == "3 more  0.00  0.00"
