"""The cost of a job by list price: per hour while it runs, and in total if it runs until its timeout.

An estimate, never an invoice. Vertex AI bills vCPUs, memory, accelerators and boot disks one by one, by the hour. Spot
and flexible start are shown at the price on demand, which has always been above theirs and moves less.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isinf
from typing import Any

from vertex_api.estimates.prices import (
    CURRENCY,
    HOURS_PER_MONTH,
    TPU_PRICE_NAMES,
    ZERO,
    Money,
    Prices,
    price_family,
)
from vertex_api.job import Job
from vertex_api.jobspec import DEFAULT_TIMEOUT, boot_disk, replica_count
from vertex_api.machines import Machine, accelerator_of, machine_of
from vertex_api.scalars import to_seconds

_BOARD_CORES = 8
_DISCOUNTED_STRATEGIES = {"SPOT": "spot", "FLEX_START": "flex-start"}


@dataclass(frozen=True)
class Cost:
    """The estimated cost of a job: `hourly`, and `total` if each run takes `max_seconds`, its timeout.

    `has_timeout`: the spec sets this timeout. `total` and `max_seconds` are infinite for what runs until it is deleted.
    `unpriced` names what has no price on file; the sums leave it out. `nearest` is what has none in the region, each
    with the nearest region whose price the sums have instead. `as_of`: the dates of the prices.
    """

    hourly: Money = ZERO
    total: Money = ZERO
    max_seconds: float = to_seconds(DEFAULT_TIMEOUT)
    has_timeout: bool = False
    unpriced: tuple[str, ...] = ()
    nearest: tuple[tuple[str, str], ...] = ()
    as_of: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def is_endless(self) -> bool:
        """Whether it runs until somebody deletes it, so that its total cost has no limit."""
        return isinf(self.max_seconds)


def show_nearest(costs: Iterable[Cost]) -> str:
    """Return what costs count with the price of another region, as text, empty if nothing."""
    items: dict[str, dict[str, None]] = {}
    for item, region in (pair for cost in costs for pair in cost.nearest):
        items.setdefault(region, {})[item] = None
    return "; ".join(f"{', '.join(names)} at the price of {region}" for region, names in items.items())


def estimate_cost(job: Job, region: str, prices: Prices) -> Cost:
    """Return the cost of a job, or of the one that a pipeline runs, with all its trials, as far as it has prices.

    Hourly: replicas x (machine + accelerators + boot disk), over all pools and parallel trials. Total: that of one
    trial x timeout x number of trials.
    """
    duration = Cost(max_seconds=job.max_seconds, has_timeout=job.timeout is not None)
    if job.persistent_resource:
        return replace(duration, notes=("on a persistent resource, which is billed by itself",))
    bill = _Bill(region, prices)
    hourly = Money(sum(replica_count(pool) * bill.machine(pool) for pool in job.pools))
    return replace(
        duration,
        hourly=hourly * job.parallel_trials,
        total=Money(hourly * job.trials * job.max_seconds / 3600),
        unpriced=tuple(bill.unpriced),
        nearest=tuple(bill.nearest),
        as_of=frozenset(bill.as_of),
        notes=(*_discounts(job.job_spec), *bill.notes),
    )


def persistent_cost(pools: Sequence[Mapping[str, Any]], region: str, prices: Prices) -> Cost:
    """Return the cost of a persistent resource with these ResourcePools: hourly for its most machines, total `inf`.

    Google's overview of persistent resources: each machine is billed by the prices of custom training for as long as it
    is there, whether a job runs or not; of a pool with autoscaling, those that are there.
    """
    highest = estimate_cost(Job.of_pools(pools, "max"), region, prices)
    lowest = estimate_cost(Job.of_pools(pools, "min"), region, prices)
    notes = [*highest.notes, f"billed with jobs or without; no sum of {CURRENCY} at most counts it"]
    if lowest.hourly != highest.hourly and not highest.unpriced:
        notes.append(f"{lowest.hourly} an hour with its fewest machines, and shown with its most")
    return replace(highest, total=Money(inf), max_seconds=inf, notes=tuple(notes))


@dataclass
class _Bill:
    """Looks up prices in one region, and records what has none there, with the dates of the others, and notes."""

    region: str
    prices: Prices
    unpriced: dict[str, None] = field(default_factory=dict)
    nearest: dict[tuple[str, str], None] = field(default_factory=dict)
    as_of: set[str] = field(default_factory=set)
    notes: dict[str, None] = field(default_factory=dict)

    def machine(self, pool: Mapping[str, Any]) -> float:
        """Return the USD per hour of one machine of a pool, without the parts that have no price."""
        spec, machine = pool.get("machineSpec", {}), machine_of(pool)
        name = spec.get("machineType", "")
        disk, size = boot_disk(pool)
        usd = self._part("disk", disk, size / HOURS_PER_MONTH)
        if machine is None:
            self.unpriced[name] = None
        elif machine.is_tpu:
            usd += self._tpu(machine, spec)
        else:
            family = price_family(name)
            for part, amount in (("vcpu", machine.vcpus), ("gb", machine.memory_gb)):
                usd += self._part(part, family, amount, name)
            kind, count = machine.accelerator(pool)
            usd += self._part("accelerator", kind, count) if kind else 0.0
        return usd

    def _tpu(self, machine: Machine, machine_spec: Mapping[str, Any]) -> float:
        """TPUs are priced with their hosts: v2 and v3 by the board of eight cores, newer ones by the chip."""
        kind, cores = accelerator_of(machine_spec)
        if machine.topologies:
            chips = machine.chips * machine.hosts(machine_spec.get("tpuTopology", ""), 0)
            return self._part("accelerator", TPU_PRICE_NAMES[machine.family], chips)
        if cores != _BOARD_CORES:
            self.unpriced[f"a {kind} pod of {cores} cores"] = None
            return 0.0
        return self._part("accelerator", str(kind), 1)

    def _part(self, kind: str, name: str, amount: float, shown: str = "") -> float:
        price = self.prices.nearest(kind, name, self.region)
        if price is None:
            self.unpriced[shown or name] = None
            return 0.0
        if price.region != self.region:
            self.nearest[shown or name, price.region] = None
        self.as_of.add(price.source.as_of)
        if "unconfirmed" in price.source.text:
            self.notes[f"the price of {name} is unconfirmed"] = None
        return price.usd * amount


def _discounts(job_spec: Mapping[str, Any]) -> list[str]:
    provisioning = _DISCOUNTED_STRATEGIES.get(job_spec.get("scheduling", {}).get("strategy", ""))
    machine_specs = (pool.get("machineSpec", {}) for pool in job_spec["workerPoolSpecs"])
    affinities = {spec.get("reservationAffinity", {}).get("reservationAffinityType") for spec in machine_specs}
    if not provisioning and affinities & {"ANY_RESERVATION", "SPECIFIC_RESERVATION"}:
        provisioning = "reserved"
    return [f"{provisioning}, at the price on demand"] if provisioning else []
