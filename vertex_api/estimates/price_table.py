"""List prices of training, each with its region, its date and its source.

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

FILE = Path(__file__).with_name("prices.json")
KINDS = ("vcpu", "gb", "accelerator", "disk")
HOURS_PER_MONTH = 730
"""A month, as disks are billed."""
MAX_AGE = timedelta(days=90)
"""Older prices are reported as old."""


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

    def find_price_or_none(self, kind: str, name: str, region: str) -> Price | None:
        """Return the price of a name in a region, None if it is not on file."""
        return self.table.get((kind, name, region))

    def copy_with_overrides(self, rows: Iterable[tuple[str, str, str, Price]]) -> "Prices":
        """Return these prices, replaced or extended by rows: rows of kind, name, region and price."""
        return Prices({**self.table, **{(kind, name, region): price for kind, name, region, price in rows}})


def is_price_old(as_of: str, today: date) -> bool:
    """Return whether a price as of a date is more than `MAX_AGE` old."""
    return today - date.fromisoformat(as_of) > MAX_AGE


def parse_prices(json_text: str) -> Prices:
    """Return the prices in the text of a file such as `prices.json`."""
    table = json.loads(json_text)
    sources, rows = table["sources"], table["prices"]
    return Prices({(kind, name, region): Price(usd, date, sources[key]) for kind, name, region, usd, date, key in rows})


@cache
def load_prices() -> Prices:
    """Return the prices of `prices.json`."""
    return parse_prices(FILE.read_text(encoding="utf-8"))
