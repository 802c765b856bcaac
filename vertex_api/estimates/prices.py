"""List prices of training, each with its region, its date and its source.

`prices.json` is the table: `prices` holds `[kind, name, region, USD, date, source]`, `sources` says what a source is.
The kinds and their units: `vcpu` (a vCPU for an hour) and `gb` (a GiB of memory for an hour) by machine family,
`accelerator` (one for an hour), `disk` (a GiB for a month of 730 hours). `tools/refresh_prices.py` writes it anew.
"""

from __future__ import annotations

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
"""From then on a price is said to be old."""


@dataclass(frozen=True)
class Price:
    """A price in USD, the day (`2026-07-30`) on which it was one, and where that stands."""

    usd: float
    as_of: str
    source: str


@dataclass(frozen=True)
class Prices:
    """Prices by kind, name and region. What is not in it has no price: none is taken from a neighbour."""

    table: Mapping[tuple[str, str, str], Price]

    def find(self, kind: str, name: str, region: str) -> Price | None:
        """The price of a name in a region; None if it is not on file."""
        return self.table.get((kind, name, region))

    def override(self, others: Iterable[tuple[str, str, str, Price]]) -> Prices:
        """These prices, with others (kind, name, region and price) in place of those on file or beside them."""
        return Prices({**self.table, **{(kind, name, region): price for kind, name, region, price in others}})


def is_old(as_of: str, today: date) -> bool:
    """Whether a price of a day is older than 90 days."""
    return today - date.fromisoformat(as_of) > MAX_AGE


def parse_prices(text: str) -> Prices:
    """The prices in a table's text."""
    held = json.loads(text)
    return Prices(
        {
            (kind, name, region): Price(usd, as_of, held["sources"][source])
            for kind, name, region, usd, as_of, source in held["prices"]
        }
    )


@cache
def load_prices() -> Prices:
    """The table beside this module."""
    return parse_prices(FILE.read_text(encoding="utf-8"))
