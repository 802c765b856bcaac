"""The command `vertex-training prices`: the list prices on file, and a file with those of today."""

import json
import sys
import tempfile
from argparse import Namespace
from datetime import date
from pathlib import Path
from shlex import quote

from vertex_api import credentials
from vertex_api.estimates import prices
from vertex_api.estimates.prices import FILE, VARIABLE, Prices

_UNITS = {"vcpu": "vCPU hour", "gb": "GiB hour", "accelerator": "hour", "disk": "GiB month"}
"""By kind of price."""


def show(args: Namespace) -> int:
    """Print the list prices that match all given arguments. Returns the exit code: 1 if none does."""
    try:
        filed = prices.filed_prices()
    except prices.PricesUnusable as error:
        sys.stderr.write(f"vertex-training: {VARIABLE}: {error}\n")
        return 2
    keys = [
        (kind, name)
        for kind, names in filed.table.items()
        for name in names
        if args.kind in (None, kind) and args.name in (None, name)
    ]
    found = [
        (kind, name, region, price)
        for kind, name in keys
        for region in ([args.region] if args.region else sorted(filed.regions(kind, name)))
        if (price := filed.nearest(kind, name, region))
    ]
    if not found:
        sys.stderr.write("vertex-training: no list price matches; `vertex-training prices` shows all\n")
        return 1
    sources = {source: number for number, source in enumerate(sorted({price.source for *_, price in found}), 1)}
    for kind, name, region, price in found:
        amount = f"{price.usd:<12g}{f'{prices.CURRENCY} per {_UNITS[kind]}':<20}"
        other = f"  {prices.ABOUT} of {price.region}, the nearest region with one" if price.region != region else ""
        number = f"[{sources[price.source]}]"
        print(f"{kind:<12}{name:<22}{region:<24}{amount}{price.source.as_of} {number}{other}")  # noqa: T201
    for source, position in sources.items():
        print(f"[{position}] as of {source.as_of}: {source.text}")  # noqa: T201
    return 0


def update(file: Path) -> int:
    """Write today's list prices into a file. Returns the exit code: 0, or 1 if there are none to be had.

    What the catalog has no clear price for stays as the file has it, or this package.
    """
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import Request

    from vertex_api.estimates import catalog

    try:
        former = json.loads(file.read_text(encoding="utf-8"))
        old = catalog.parse(former)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        former = json.loads(FILE.read_text(encoding="utf-8"))
        old = catalog.parse(former)
    try:
        caller = credentials.load()
        if not caller.valid:
            caller.refresh(Request())
        services = (catalog.VERTEX, catalog.COMPUTE)
        new, unclear = catalog.refresh(old, *(catalog.fetch(each, caller.apply) for each in services))
    except GoogleAuthError as error:
        sys.stderr.write(f"vertex-training: credentials: {credentials.explain(error)}\n")
        return 1
    except catalog.CatalogRefused as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 1
    text = catalog.render(former, new, date.today())
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, delete=False) as written:
            written.write(text)
        Path(written.name).chmod(0o644)
        Path(written.name).replace(file)
    except OSError as error:
        sys.stderr.write(f"vertex-training: {file} cannot be written: {error.strerror}\n")
        return 1
    sys.stderr.writelines(f"stays as it is: {each}\n" for each in unclear)
    added, changed = len(new) - len(old), sum(new[each][0] != usd for each, (usd, _) in old.items())
    priced, pairs = catalog.coverage(Prices.parse(text))
    print(f"{file}: {len(new):,} prices, {added:,} of them new and {changed:,} changed")  # noqa: T201
    print(f"{priced:,} of {pairs:,} pairs of a machine type and a region have prices of their own")  # noqa: T201
    print(f"export {VARIABLE}={quote(str(file.absolute()))}")  # noqa: T201
    return 0
