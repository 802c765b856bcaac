"""Machines that stay: priced and counted as those of a job with the same pools, without an end.

The prices are those of `test_cost`: an n1-standard-4 with its disk is 0.2452796719 USD an hour in us-central1."""

from math import inf
from typing import Any

import pytest

from tests.vertex_api.estimates.test_cost import N1_STANDARD_4, POOLS, REGION, SSD_100, pool
from tests.vertex_api.jobs import custom_job, edited
from vertex_api.estimates.cost import Cost, estimate_cost, persistent_cost
from vertex_api.estimates.prices import bundled_prices
from vertex_api.estimates.quota import needed_quota as needs_of_a_job
from vertex_api.estimates.quota import persistent_quota
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB

ALWAYS = "billed with jobs or without; no sum of USD at most counts it"
GPUS = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}


def of(*pools: dict[str, Any]) -> Cost:
    return persistent_cost(pools, REGION, bundled_prices())


def scaled(least: int, most: int, **more: Any) -> dict[str, Any]:
    return {**pool("n1-standard-4"), "autoscalingSpec": {"minReplicaCount": least, "maxReplicaCount": most}, **more}


def test_it_costs_the_same_as_a_job() -> None:
    pools = [pool("n1-standard-4"), pool("n1-standard-8", 3, **GPUS) | {"diskSpec": {"bootDiskSizeGb": 500}}]
    job = edited(custom_job(), *POOLS, to=pools)
    found, as_a_job = (
        of(*pools),
        estimate_cost(Job(CUSTOM_JOB, job), REGION, bundled_prices()),
    )
    assert (found.hourly, found.as_of, found.unpriced) == (as_a_job.hourly, as_a_job.as_of, ())
    assert found.hourly > 3 * 0.8
    assert persistent_quota(pools) == needs_of_a_job(Job(CUSTOM_JOB, job))


def test_it_is_endless_without_a_total_cost() -> None:
    found = of(pool("n1-standard-4"))
    assert (found.total, found.max_seconds, found.is_endless, found.has_timeout) == (inf, inf, True, False)
    assert not estimate_cost(Job(CUSTOM_JOB, custom_job()), REGION, bundled_prices()).is_endless
    assert found.notes == (ALWAYS,)


def test_one_machine_is_meant_where_none_is_counted() -> None:
    bare = {"machineSpec": {"machineType": "n1-standard-4"}}
    assert of(bare).hourly == pytest.approx(N1_STANDARD_4 + SSD_100)
    assert persistent_quota([bare]) == {"cpus": 4, "pd_ssd": 100}


def test_autoscaled_pools_count_their_maximum_and_note_minimum() -> None:
    found = of(scaled(1, 4, replicaCount=2), pool("n1-standard-4"))
    assert found.hourly == pytest.approx(5 * (N1_STANDARD_4 + SSD_100))
    # 2 x 0.2452797
    assert found.notes == (ALWAYS, "0.49 USD an hour with its fewest machines, and shown with its most")
    assert persistent_quota([scaled(1, 4, replicaCount=2)]) == {
        "cpus": 16,
        "pd_ssd": 400,
    }


def test_unpriced_parts_are_named_without_a_minimum_cost() -> None:
    found = of(scaled(1, 4, diskSpec={"bootDiskType": "hyperdisk-balanced"}))
    assert (found.unpriced, found.notes) == (("hyperdisk-balanced",), (ALWAYS,))
