"""The rules for the prices of a stack file, and their merging into the prices on file."""

from collections.abc import Iterator
from datetime import date, timedelta

from vertex_api.estimates import prices
from vertex_api.estimates.availability import REGIONS
from vertex_api.estimates.prices import price_names
from vertex_api.names import closest_name, did_you_mean
from vertex_api.validation.formats import Violation

from ..schema import shapes

_MAX_LEAD = timedelta(days=1)
"""How far ahead of this machine's date another time zone may be."""


def find_price_violations(declared_prices: shapes.Prices, own_region: str | None = None) -> Iterator[Violation]:
    """Find unknown names and regions, negative prices and wrong dates in a stack's prices. `own_region` is valid."""
    try:
        if date.fromisoformat(declared_prices["asOf"]) > date.today() + _MAX_LEAD:
            yield ("asOf",), f'"{declared_prices["asOf"]}" must not be in the future'
    except ValueError:
        yield ("asOf",), f'"{declared_prices["asOf"]}" is not a date, such as 2026-07-30'
    if not declared_prices["source"].strip():
        yield ("source",), "is empty; write where the prices come from"
    known_regions = REGIONS | {region for _, _, region in prices.bundled_prices().table} | {own_region}
    for kind, known in price_names().items():
        for name, regions in declared_prices.get(kind, {}).items():  # type: ignore[attr-defined]
            if name not in known:
                yield (kind, name), f"is not a name that has a price{did_you_mean(name, known)}"
            for region, usd in regions.items():
                if region not in known_regions:
                    closest = closest_name(region, REGIONS)
                    hint = f"; did you mean {closest}?" if closest else ", such as us-central1"
                    yield (kind, name, region), f"is not a known region{hint}"
                if usd < 0:
                    yield (kind, name, region), f"{usd} is below zero"


def merge_prices(declared_prices: shapes.Prices | None) -> prices.Prices:
    """Return the prices on file, with a stack's own valid prices added or in their place."""
    if declared_prices is None:
        return prices.bundled_prices()
    return prices.bundled_prices().override(
        (kind, name, region, prices.Price(usd, declared_prices["asOf"], declared_prices["source"]))
        for kind in prices.KINDS
        for name, regions in declared_prices.get(kind, {}).items()  # type: ignore[attr-defined]
        for region, usd in regions.items()
    )
