"""Money, and the list prices of training, each with its region, its date and its source.

`prices.json` is the table: `prices` holds USD by kind, name, source and region, `sources` the day and the origin of
each source, `places` where a region is (degrees north and east of the town that Google names). The kinds and their
units: `vcpu` (a vCPU for an hour) and `gb` (a GiB of memory for an hour) by machine family, `accelerator` (one for an
hour), `disk` (a GiB for a month of 730 hours). `catalog` writes it anew.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache
from math import cos, dist, isfinite, radians, sin
from pathlib import Path
from typing import Any, NamedTuple

from vertex_api.machines import MACHINES
from vertex_api.validation.pools import DISK_TYPES

FILE = Path(__file__).with_name("prices.json")
VARIABLE = "VERTEX_TRAINING_PRICES"
"""Names a file such as `prices.json` that counts in its place."""
CURRENCY = "USD"
"""Of all list prices."""
KINDS = ("vcpu", "gb", "accelerator", "disk")
HOURS_PER_MONTH = 730
"""A month, as disks are billed."""
MAX_AGE = timedelta(days=90)
"""Older prices are reported as old."""
TPU_PRICE_NAMES = {"ct5lp": "TPU_V5_LITEPOD", "ct6e": "TPU_V6E", "tpu7x": "TPU7X"}
"""What the chips of machines with a topology are called, by family: the API has no acceleratorType for the newer."""

_MAX_BYTES = 16 << 20
"""Of a file of prices; that of this package has 8 KiB."""
_OWN = "own"
"""The key of the source of a stack's own prices."""
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
ABOUT = "~"
"""Before an amount in which the price of another region stands for one that is not on file."""


class Source(NamedTuple):
    """Where prices come from, and the date as of which they were valid (`2026-07-30`)."""

    as_of: str
    text: str


class Price(NamedTuple):
    """A price in USD, its source, and the region in which it applies."""

    usd: float
    source: Source
    region: str


Table = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
"""USD by kind, name, key of the source and region. Of two sources, the first counts."""


@dataclass(frozen=True)
class Prices:
    """The prices of a table, and the `places` of regions, by which one is nearest to another."""

    sources: Mapping[str, Source]
    table: Table
    places: Mapping[str, tuple[float, float]]
    currency: str = CURRENCY
    _nearest: dict[tuple[str, str, str], Price | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, json_text: str) -> "Prices":
        """Return the prices in the text of a file such as `prices.json`."""
        file = json.loads(json_text)
        sources = {key: Source(each["asOf"], each["text"]) for key, each in file["sources"].items()}
        return cls(sources, file["prices"], file["places"], file["currency"])

    def __iter__(self) -> Iterator[tuple[str, str, Price]]:
        """Yield the kind, the name and the price of each."""
        for kind, names in self.table.items():
            for name in names:
                for region in self.regions(kind, name):
                    if price := self.find(kind, name, region):
                        yield kind, name, price

    def regions(self, kind: str, name: str) -> list[str]:
        """Return the regions in which a name has a price on file."""
        by_source = self.table.get(kind, {}).get(name, {})
        return list(dict.fromkeys(region for regions in by_source.values() for region in regions))

    def find(self, kind: str, name: str, region: str) -> Price | None:
        """Return the price of a name in a region, None if it is not on file."""
        for key, regions in self.table.get(kind, {}).get(name, {}).items():
            if region in regions:
                return Price(regions[region], self.sources[key], region)
        return None

    def nearest(self, kind: str, name: str, region: str) -> Price | None:
        """Return the price in a region, or in the nearest one that has it on file; None if no place is known."""
        key = kind, name, region
        if key not in self._nearest:
            self._nearest[key] = self.find(*key) or self._find_elsewhere(*key)
        return self._nearest[key]

    def _find_elsewhere(self, kind: str, name: str, region: str) -> Price | None:
        known = [each for each in self.regions(kind, name) if each in self.places]
        if not known or (here := self.places.get(region)) is None:
            return None
        nearest = min(known, key=lambda each: (dist(_point(self.places[each]), _point(here)), each))
        return self.find(kind, name, nearest)

    def override(self, source: Source, own: Mapping[str, Mapping[str, Mapping[str, float]]]) -> "Prices":
        """Return these prices, replaced or extended by those of a source: USD by kind, name and region."""
        table = {kind: dict(names) for kind, names in self.table.items()}
        for kind, names in own.items():
            for name, regions in names.items():
                table[kind][name] = {_OWN: regions, **table[kind].get(name, {})}
        return replace(self, sources={**self.sources, _OWN: source}, table=table, _nearest={})


def _point(place: tuple[float, float]) -> tuple[float, float, float]:
    """Return a place on a sphere: the shorter the way between two through it, the shorter that around it."""
    north, east = map(radians, place)
    return cos(north) * cos(east), cos(north) * sin(east), sin(north)


def prices_with(own: Mapping[str, Any] | None) -> Prices:
    """Return the prices on file with a stack's own in their place, by kind, then name, then region."""
    if own is None:
        return filed_prices()
    source = Source(own["asOf"], own["source"])
    return filed_prices().override(source, {kind: own.get(kind, {}) for kind in KINDS})


class PricesUnusable(Exception):
    """The file that `VARIABLE` names has no prices. The message is one line, and says what to do."""


def filed_prices() -> Prices:
    """Return the prices of the file that `VARIABLE` names, or of this package. Raises PricesUnusable."""
    path = os.environ.get(VARIABLE)
    return read_prices(path) if path else bundled_prices()


@cache
def read_prices(path: str) -> Prices:
    """Return the prices of a file. Raises PricesUnusable."""
    problem = f"{path} is no file of prices"
    try:
        prices = Prices.parse(_read_ordinary(path).decode())
        dates = [date.fromisoformat(source.as_of) for source in prices.sources.values()]
        amounts = [price.usd for _, _, price in prices]
        if dates and amounts and {*prices.table} <= {*KINDS} and all(usd >= 0 and isfinite(usd) for usd in amounts):
            if prices.currency == CURRENCY:
                return prices
            problem = f"{path} has prices in {prices.currency}, and limits and sums are in {CURRENCY}"
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    remedy = f"write it by `vertex-training prices --update {path}`, or unset {VARIABLE}"
    raise PricesUnusable(f"{problem}; {remedy}")


def _read_ordinary(path: str) -> bytes:
    """Return the content of a file; a pipe would be waited for. Raises OSError, and ValueError for what is none."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or len(content := file.read(_MAX_BYTES + 1)) > _MAX_BYTES:
            raise ValueError
        return content


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
