"""The cost of a job by list price: per hour while it runs, and in total if it runs until its timeout.

An estimate, never an invoice. Vertex AI bills vCPUs, memory, accelerators and boot disks one by one, by the hour. Spot
and flexible start are shown at the price on demand, which has always been above theirs and moves less.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isinf
from typing import Any

from vertex_api.catalog.job_spec_defaults import (
    DEFAULT_TIMEOUT,
    get_boot_disk_type_and_size,
    get_explicit_timeout_duration_or_none,
)
from vertex_api.catalog.machines import (
    Machine,
    find_machine_or_none,
    get_accelerator_and_count,
    get_accelerator_and_count_per_machine,
)
from vertex_api.estimates.price_table import HOURS_PER_MONTH, TPU_PRICE_NAMES, Prices, get_price_family
from vertex_api.scalar_types import parse_seconds
from vertex_api.validation.canonical_spec import CanonicalSpec

_BOARD_CORES = 8
_DISCOUNTED_STRATEGIES = {"SPOT": "spot", "FLEX_START": "flex-start"}


@dataclass(frozen=True)
class Cost:
    """The estimated cost of a job in USD: `hourly`, and `total` if each run takes `max_seconds`, its timeout.

    `has_timeout`: the spec sets this timeout. `total` and `max_seconds` are infinite for what runs until it is deleted.
    `unpriced` names what has no price on file in the region; the sums leave it out. `as_of`: the dates of the prices.
    """

    hourly: float = 0.0
    total: float = 0.0
    max_seconds: float = parse_seconds(DEFAULT_TIMEOUT)
    has_timeout: bool = False
    unpriced: tuple[str, ...] = ()
    as_of: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def is_endless(self) -> bool:
        """Whether it runs until somebody deletes it, so that its total cost has no limit."""
        return isinf(self.max_seconds)


def estimate_cost_of_priced_parts(spec: CanonicalSpec, region: str, prices: Prices) -> Cost:
    """Return the cost of a canonical job, or of the one that a pipeline runs, with all its trials.

    Hourly: replicas x (machine + accelerators + boot disk), over all pools and parallel trials. Total: that of one
    trial x timeout x number of trials.
    """
    job, fields = spec.job_spec, spec.backing_spec_or_self.fields
    timeout = get_explicit_timeout_duration_or_none(job)
    duration = Cost(max_seconds=parse_seconds(timeout or DEFAULT_TIMEOUT), has_timeout=timeout is not None)
    if job.get("persistentResourceId"):
        return replace(duration, notes=("on a persistent resource, which is billed by itself",))
    lookup = _RecordingPriceLookup(region, prices)
    pools = filter(None, job["workerPoolSpecs"])
    hourly = sum(pool.get("replicaCount", 1) * lookup.compute_hourly_price_of_one_machine(pool) for pool in pools)
    return replace(
        duration,
        hourly=hourly * fields.get("parallelTrialCount", 1),
        total=hourly * fields.get("maxTrialCount", 1) * duration.max_seconds / 3600,
        unpriced=tuple(lookup.unpriced),
        as_of=frozenset(lookup.as_of),
        notes=(*_list_pricing_notes(job), *lookup.notes),
    )


@dataclass
class _RecordingPriceLookup:
    """Looks up prices in one region, and records what has none, with the dates of the others and notes on them."""

    region: str
    prices: Prices
    unpriced: dict[str, None] = field(default_factory=dict)
    as_of: set[str] = field(default_factory=set)
    notes: dict[str, None] = field(default_factory=dict)

    def compute_hourly_price_of_one_machine(self, pool: Mapping[str, Any]) -> float:
        """Return the USD per hour of one machine of a pool, without the parts that have no price."""
        spec = pool.get("machineSpec", {})
        name = spec.get("machineType", "")
        machine = find_machine_or_none(name)
        disk, size = get_boot_disk_type_and_size(pool)
        usd = self._get_hourly_part_price_or_zero("disk", disk, size / HOURS_PER_MONTH)
        if machine is None:
            self.unpriced[name] = None
        elif machine.is_tpu:
            usd += self._get_hourly_tpu_price_or_zero(machine, spec)
        else:
            usd += self._get_hourly_part_price_or_zero("vcpu", get_price_family(name), machine.vcpus, name)
            usd += self._get_hourly_part_price_or_zero("gb", get_price_family(name), machine.memory_gb, name)
            kind, count = get_accelerator_and_count_per_machine(pool, machine)
            usd += self._get_hourly_part_price_or_zero("accelerator", kind, count) if kind else 0.0
        return usd

    def _get_hourly_tpu_price_or_zero(self, machine: Machine, machine_spec: Mapping[str, Any]) -> float:
        """TPUs are priced with their hosts: v2 and v3 by the board of eight cores, newer ones by the chip."""
        kind, cores = get_accelerator_and_count(machine_spec)
        if machine.topologies:
            chips = machine.chips * machine.count_tpu_machines(machine_spec.get("tpuTopology", ""), 0)
            name = TPU_PRICE_NAMES[machine.name.partition("-")[0]]
            return self._get_hourly_part_price_or_zero("accelerator", name, chips)
        if cores != _BOARD_CORES:
            self.unpriced[f"a {kind} pod of {cores} cores"] = None
            return 0.0
        return self._get_hourly_part_price_or_zero("accelerator", str(kind), 1)

    def _get_hourly_part_price_or_zero(self, kind: str, name: str, amount: float, unpriced_as: str = "") -> float:
        price = self.prices.find_price_or_none(kind, name, self.region)
        if price is None:
            self.unpriced[unpriced_as or name] = None
            return 0.0
        self.as_of.add(price.as_of)
        if "unconfirmed" in price.source:
            self.notes[f"the price of {name} is unconfirmed"] = None
        return price.usd * amount


def _list_pricing_notes(job_spec: Mapping[str, Any]) -> list[str]:
    provisioning = _DISCOUNTED_STRATEGIES.get(job_spec.get("scheduling", {}).get("strategy", ""))
    machine_specs = (pool.get("machineSpec", {}) for pool in job_spec["workerPoolSpecs"])
    affinities = {spec.get("reservationAffinity", {}).get("reservationAffinityType") for spec in machine_specs}
    if not provisioning and affinities & {"ANY_RESERVATION", "SPECIFIC_RESERVATION"}:
        provisioning = "reserved"
    return [f"{provisioning}, at the price on demand"] if provisioning else []
