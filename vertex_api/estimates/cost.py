"""What a job costs by list price: per hour while it runs, and at most.

An estimate, never an invoice. Vertex AI bills vCPUs, memory, accelerators and boot disks one by one, by the hour. Spot
and flexible start are shown at the price on demand, which has always been above theirs and moves less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isinf
from typing import Any

from vertex_api.catalog.job_defaults import DEFAULT_TIMEOUT, get_boot_disk, get_timeout
from vertex_api.catalog.machines import Machine, get_machine, machines
from vertex_api.estimates.prices import HOURS_PER_MONTH, Prices
from vertex_api.scalars import parse_seconds
from vertex_api.validation.canonical import CanonicalSpec
from vertex_api.validation.rules.machine_spec import get_accelerator
from vertex_api.validation.rules.worker_pools import DISK_TYPES

TPU_PRICE_NAMES = {"ct5lp": "TPU_V5_LITEPOD", "ct6e": "TPU_V6E", "tpu7x": "TPU7X"}
"""What the chips of machines with a topology are called, by family: the API has no acceleratorType for the newer."""

# Families that Compute Engine prices apart from the family that begins their name.
_APART = {"a3-megagpu": "A3-MEGA", "a3-ultragpu": "A3-ULTRA"}
_BOARD_CORES = 8
_AT_ON_DEMAND = {"SPOT": "spot", "FLEX_START": "flex-start"}


@dataclass(frozen=True)
class Cost:
    """USD per hour and at most, `within` how many seconds a run, and whether the spec says so (`has_timeout`).

    Of what goes on until somebody ends it, `total` and `within` are infinite.
    `missing` names what has no price on file in the region; the figures are then without it and mean little. `as_of`
    are the days of the prices. `notes` are what a reader must know.
    """

    hourly: float = 0.0
    total: float = 0.0
    within: float = parse_seconds(DEFAULT_TIMEOUT)
    has_timeout: bool = False
    missing: tuple[str, ...] = ()
    as_of: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def is_endless(self) -> bool:
        """Whether it goes on until somebody ends it, so that there is no most that it can cost."""
        return isinf(self.within)


def estimate_cost(spec: CanonicalSpec, region: str, prices: Prices) -> Cost:
    """The cost of a canonical job, or of the one that a pipeline runs: of all trials at once, and of all that may run.

    Burn = replicas x (machine + accelerators + boot disk), over all pools; at most = burn x timeout.
    """
    job, fields = spec.job_spec, spec.training_job.fields
    trials, at_once = fields.get("maxTrialCount", 1), fields.get("parallelTrialCount", 1)
    timeout = get_timeout(job)
    within = parse_seconds(timeout or DEFAULT_TIMEOUT)
    if job.get("persistentResourceId"):
        on_a_resource = ("on a persistent resource, which is billed by itself",)
        return Cost(within=within, has_timeout=timeout is not None, notes=on_a_resource)
    bill = _Bill(region, prices)
    hourly = sum(pool.get("replicaCount", 1) * bill.price_machine(pool) for pool in job["workerPoolSpecs"] if pool)
    return Cost(
        hourly=hourly * at_once,
        total=hourly * trials * within / 3600,
        within=within,
        has_timeout=timeout is not None,
        missing=tuple(bill.missing),
        as_of=frozenset(bill.as_of),
        notes=tuple(_list_pricing_notes(job)) + tuple(bill.notes),
    )


@cache
def list_priceable_names() -> Mapping[str, frozenset[str]]:
    """By kind of price, the names that a price may be filed under."""
    families = frozenset(_get_price_family(each.name) for each in machines().values() if not each.is_tpu)
    gpus = frozenset(kind for each in machines().values() for kind in each.gpus)
    tpus = frozenset({*TPU_PRICE_NAMES.values(), *(kind for each in machines().values() for kind in each.tpus)})
    return {"vcpu": families, "gb": families, "accelerator": gpus | tpus, "disk": frozenset(DISK_TYPES)}


def get_accelerators(pool: Mapping[str, Any], found: Machine) -> tuple[str | None, int]:
    """Type and number of the GPUs of each machine of a pool: a machine that comes with GPUs comes with all of them."""
    if not found.can_omit_accelerator and len(found.gpus) == 1:
        ((kind, counts),) = found.gpus.items()
        return kind, counts[0]
    return get_accelerator(pool.get("machineSpec", {}))


@dataclass
class _Bill:
    """Adds up prices of one region, and keeps what has none."""

    region: str
    prices: Prices
    missing: dict[str, None] = field(default_factory=dict)
    as_of: set[str] = field(default_factory=set)
    notes: dict[str, None] = field(default_factory=dict)

    def price_machine(self, pool: Mapping[str, Any]) -> float:
        """USD per hour for one machine of a pool."""
        spec = pool.get("machineSpec", {})
        name = spec.get("machineType", "")
        found = get_machine(name)
        disk, size = get_boot_disk(pool)
        usd = self._price_part("disk", disk, size / HOURS_PER_MONTH)
        if found is None:
            self._record_unpriced(name)
        elif found.is_tpu:
            usd += self._price_tpus(found, spec)
        else:
            usd += self._price_part("vcpu", _get_price_family(name), found.vcpus, name)
            usd += self._price_part("gb", _get_price_family(name), found.memory_gb, name)
            kind, count = get_accelerators(pool, found)
            usd += self._price_part("accelerator", kind, count) if kind else 0.0
        return usd

    def _price_tpus(self, found: Machine, spec: Mapping[str, Any]) -> float:
        """TPUs are priced with their hosts: v2 and v3 by the board of eight cores, newer ones by the chip."""
        kind, cores = get_accelerator(spec)
        if found.topologies:
            chips = found.chips * found.count_tpu_machines(spec.get("tpuTopology", ""), 0)
            return self._price_part("accelerator", TPU_PRICE_NAMES[found.name.partition("-")[0]], chips)
        if cores != _BOARD_CORES:
            self._record_unpriced(f"a {kind} pod of {cores} cores")
            return 0.0
        return self._price_part("accelerator", str(kind), 1)

    def _price_part(self, kind: str, name: str, amount: float, shown: str = "") -> float:
        price = self.prices.find(kind, name, self.region)
        if price is None:
            self._record_unpriced(shown or name)
            return 0.0
        self.as_of.add(price.as_of)
        if "unconfirmed" in price.source:
            self.notes[f"the price of {name} is unconfirmed"] = None
        return price.usd * amount

    def _record_unpriced(self, name: str) -> None:
        self.missing[name] = None


def _get_price_family(machine_type: str) -> str:
    begins = machine_type.rpartition("-")[0]
    return _APART.get(begins, machine_type.partition("-")[0].upper())


def _list_pricing_notes(job: Mapping[str, Any]) -> list[str]:
    how = _AT_ON_DEMAND.get(job.get("scheduling", {}).get("strategy", ""))
    affinities = {
        pool.get("machineSpec", {}).get("reservationAffinity", {}).get("reservationAffinityType")
        for pool in job["workerPoolSpecs"]
    }
    if not how and affinities & {"ANY_RESERVATION", "SPECIFIC_RESERVATION"}:
        how = "reserved"
    return [f"{how}, at the price on demand"] if how else []
