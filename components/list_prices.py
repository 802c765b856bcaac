"""The prices that hold for a stack: those on file, and those that its own file names instead."""

from collections.abc import Iterator
from datetime import date

from components import shapes
from vertex import prices
from vertex.cost import priced
from vertex.rules import Finding
from vertex.spelling import nearest


def broken(given: shapes.Prices) -> Iterator[Finding]:
    """What is wrong with a stack's own prices: names that nothing is priced by, prices below zero, what is no day."""
    try:
        date.fromisoformat(given["asOf"])
    except ValueError:
        yield ("asOf",), f'"{given["asOf"]}" is not a day, such as 2026-07-30'
    for kind, known in priced().items():
        for name, regions in given.get(kind, {}).items():  # type: ignore[attr-defined]
            if name not in known:
                yield (kind, name), f"nothing is priced by this name{nearest(name, known)}"
            for region, usd in regions.items():
                if usd < 0:
                    yield (kind, name, region), f"{usd} is below zero"


def prices_of(given: shapes.Prices | None) -> prices.Prices:
    """The prices on file with a stack's own, which have been checked, in place of them or beside them."""
    if given is None:
        return prices.on_file()
    return prices.on_file().overridden(
        (kind, name, region, prices.Price(usd, given["asOf"], given["source"]))
        for kind in prices.KINDS
        for name, regions in given.get(kind, {}).items()  # type: ignore[attr-defined]
        for region, usd in regions.items()
    )
