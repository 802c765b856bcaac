"""Money, and the list prices of training, each with its region, its date and its source.

`prices.json` is the table: `prices` holds `[kind, name, region, USD, date, source]`, `sources` says what a source is.
The kinds and their units: `vcpu` (a vCPU for an hour) and `gb` (a GiB of memory for an hour) by machine family,
`accelerator` (one for an hour), `disk` (a GiB for a month of 730 hours). `tools/refresh_prices.py` writes it anew.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from vertex_api.machines import MACHINES
from vertex_api.validation.pools import DISK_TYPES

FILE = Path(__file__).with_name("prices.json")
CURRENCY = "USD"
"""Of all list prices."""
KINDS = ("vcpu", "gb", "accelerator", "disk")
HOURS_PER_MONTH = 730
"""A month, as disks are billed."""
MAX_AGE = timedelta(days=90)
"""Older prices are reported as old."""
TPU_PRICE_NAMES = {"ct5lp": "TPU_V5_LITEPOD", "ct6e": "TPU_V6E", "tpu7x": "TPU7X"}
"""What the chips of machines with a topology are called, by family: the API has no acceleratorType for the newer."""

# Families that Compute Engine prices apart from the family that begins their name.
_SEPARATE_FAMILIES = {"a3-megagpu": "A3-MEGA", "a3-ultragpu": "A3-ULTRA"}
_DIGITS = 2
"""Of amounts that are shown."""


class Money(float):
    """An amount in `CURRENCY`, which says how it is shown: nothing else formats money.

    `f"{cost.hourly} an hour"` is `1,234.50 USD an hour`; `cost.hourly.digits` is `1,234.50`, for a table whose heading
    names the currency. Sums and multiples of money are money: `sum((each.total for each in costs), ZERO)`.
    """

    __slots__ = ()

    def __add__(self, other: float) -> "Money":
        return Money(float(self) + other)

    __radd__ = __add__

    def __sub__(self, other: float) -> "Money":
        return Money(float(self) - other)

    def __mul__(self, factor: float) -> "Money":
        return Money(float(self) * factor)

    __rmul__ = __mul__

    @property
    def digits(self) -> str:
        """The amount without its currency."""
        return f"{float(self):,.{_DIGITS}f}"

    def __str__(self) -> str:
        return f"{self.digits} {CURRENCY}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec) if not spec.endswith("f") else format(float(self), spec)


ZERO = Money()


@dataclass(frozen=True)
class Price:
    """A price in USD, the date as of which it was valid (`2026-07-30`), and its source."""

    usd: float
    as_of: str
    source: str


@dataclass(frozen=True)
class Prices:
    """Prices by kind, name and region. A price of another region is never used instead of a missing one."""

    table: Mapping[tuple[str, str, str], Price]

    @classmethod
    def parse(cls, json_text: str) -> "Prices":
        """Return the prices in the text of a file such as `prices.json`."""
        table = json.loads(json_text)
        sources, rows = table["sources"], table["prices"]
        return cls(
            {(kind, name, region): Price(usd, date, sources[key]) for kind, name, region, usd, date, key in rows}
        )

    def find(self, kind: str, name: str, region: str) -> Price | None:
        """Return the price of a name in a region, None if it is not on file."""
        return self.table.get((kind, name, region))

    def override(self, rows: Iterable[tuple[str, str, str, Price]]) -> "Prices":
        """Return these prices, replaced or extended by rows: rows of kind, name, region and price."""
        return Prices({**self.table, **{(kind, name, region): price for kind, name, region, price in rows}})


def prices_with(own: Mapping[str, Any] | None) -> Prices:
    """Return the bundled prices with a stack's own in their place, by kind, then name, then region."""
    bundled = bundled_prices()
    if own is None:
        return bundled
    return bundled.override(
        (kind, name, region, Price(usd, own["asOf"], own["source"]))
        for kind in KINDS
        for name, regions in own.get(kind, {}).items()
        for region, usd in regions.items()
    )


@cache
def bundled_prices() -> Prices:
    """Return the prices of the `prices.json` of this package."""
    return Prices.parse(FILE.read_text(encoding="utf-8"))


def is_old(as_of: str, today: date) -> bool:
    """Return whether a price as of a date is more than `MAX_AGE` old."""
    return today - date.fromisoformat(as_of) > MAX_AGE


@cache
def price_names() -> Mapping[str, frozenset[str]]:
    """Return the names that a price can have, by kind of price."""
    machines = MACHINES.values()
    families = frozenset(price_family(each.name) for each in machines if not each.is_tpu)
    accelerators = frozenset(TPU_PRICE_NAMES.values()).union(*(each.accelerators for each in machines))
    return {"vcpu": families, "gb": families, "accelerator": accelerators, "disk": frozenset(DISK_TYPES)}


def price_family(machine_type: str) -> str:
    """Return the machine family that the vCPUs and the memory of a machine type are priced by."""
    return _SEPARATE_FAMILIES.get(machine_type.rpartition("-")[0], machine_type.partition("-")[0].upper())
