"""Cost and quota of a persistent resource: those of a job with the same pools, but without an end.

Google's overview of persistent resources: each machine is billed by the prices of custom training for as long as it is
there, whether a job runs or not; of a pool with autoscaling, those that are there; and all use the quota of training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from vertex_api.estimates.cost import Cost, estimate_cost_of_priced_parts
from vertex_api.estimates.needed_quota import estimate_quota_by_metric
from vertex_api.estimates.price_table import Prices
from vertex_api.job_kinds import CUSTOM_JOB
from vertex_api.validation.canonical_spec import CanonicalSpec


def estimate_max_persistent_resource_cost(pools: Sequence[Mapping[str, Any]], region: str, prices: Prices) -> Cost:
    """Return the cost of the machines in ResourcePools: hourly for the most that autoscaling allows, total `inf`."""
    jobs = (_build_equivalent_canonical_spec(pools, autoscaling_bound) for autoscaling_bound in ("max", "min"))
    highest, lowest = (estimate_cost_of_priced_parts(job, region, prices) for job in jobs)
    notes = [*highest.notes, "billed with jobs or without; no sum of USD at most counts it"]
    if lowest.hourly != highest.hourly and not highest.unpriced:
        notes.append(f"{lowest.hourly:,.2f} USD an hour with its fewest machines, and shown with its most")
    return replace(highest, total=inf, max_seconds=inf, notes=tuple(notes))


def estimate_max_persistent_resource_quota_by_metric(pools: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how much of each quota metric the most machines that autoscaling allows need."""
    return estimate_quota_by_metric(_build_equivalent_canonical_spec(pools, "max"))


def _build_equivalent_canonical_spec(pools: Sequence[Mapping[str, Any]], autoscaling_bound: str) -> CanonicalSpec:
    """Return a job with these pools, and with as many machines as the `autoscaling_bound` allows (`min`, `max`)."""
    worker_pools = [{**pool, "replicaCount": _get_replica_count_at_bound(pool, autoscaling_bound)} for pool in pools]
    return CanonicalSpec(CUSTOM_JOB, {"jobSpec": {"workerPoolSpecs": worker_pools}})


def _get_replica_count_at_bound(pool: Mapping[str, Any], autoscaling_bound: str) -> int:
    scaling = pool.get("autoscalingSpec", {})
    return int(scaling.get(f"{autoscaling_bound}ReplicaCount", pool.get("replicaCount", 1)))
