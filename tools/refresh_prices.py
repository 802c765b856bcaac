"""Updates vertex_api/estimates/prices.json from the Cloud Billing Catalog API.

    CLOUD_BILLING_API_KEY=… python -m tools.refresh_prices

Looks up a price of each name in each region of training. Exactly one SKU of Vertex AI training must match it, in its
region and in the expected unit, and cost 1.15 times the SKU of Compute Engine; otherwise what is on file stays, with
its day, and is named. What has no known description of a SKU, such as TPUs, stays too.
"""

import json
import os
import re
import sys
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from vertex_api.estimates.availability import REGIONS
from vertex_api.estimates.prices import FILE, price_names

VERTEX = "C7E2-9256-1C43"
COMPUTE = "6F81-5844-456A"
KEY = "CLOUD_BILLING_API_KEY"
RATIO, TOLERANCE = 1.15, 0.01
SOURCE = "catalog-api"
SOURCE_TEXT = f"Cloud Billing Catalog API, service {VERTEX} (Vertex AI), on demand"

Key = tuple[str, str, str]
"""The kind, the name and the region of a price."""
Found = Mapping[Key, tuple[float, str]]
"""Prices in USD, each with the key of its source."""
Sku = Mapping[str, Any]
Skus = Mapping[str, list[Sku]]
"""By region."""

_TRAINING = "Vertex AI: Training/Pipelines on "
_UNITS = {"vcpu": "h", "gb": "GiBy.h", "accelerator": "h", "disk": "GiBy.mo"}
_FAMILIES = {"C2": "(?:C2|Compute optimized)", "M1": "(?:M1|Memory-optimized)"}
_OTHER = re.compile("management fee|prediction|reserved|commitment|spot|preemptible", re.IGNORECASE)
_PARTS = {"vcpu": "Core", "gb": "Ram"}
DISKS = {"pd-ssd": "SSD backed PD Capacity", "pd-standard": "Storage PD Capacity"}
"""How the descriptions of SKUs call the disks that have prices."""


_WIDTH = 110


class UnclearPriceError(Exception):
    """The catalog does not give a clear price."""


def refresh(known: Found, vertex_skus: Iterable[Sku], compute_skus: Iterable[Sku]) -> tuple[Found, list[str]]:
    """Return all prices with those that the catalog has now, and what is unclear of the known ones, a line each.

    The SKUs are those of the two services, in the API's form.
    """
    vertex, compute = by_region(vertex_skus), by_region(compute_skus)
    found, problems = dict(known), []
    for kind, name, region in dict.fromkeys([*known, *_wanted()]):
        if (pattern := _pattern(kind, name)) is None:
            continue
        try:
            usd = _usd(_single(vertex[region], f"{_TRAINING}{pattern}"), kind)
            base = _usd(_single(compute[region], pattern), kind)
            if abs(usd / base / RATIO - 1) > TOLERANCE:
                raise UnclearPriceError(f"{usd} is {usd / base:.3f} times Compute Engine's {base}, not {RATIO}")
            found[kind, name, region] = usd, SOURCE
        except UnclearPriceError as problem:
            if (kind, name, region) in known:
                problems.append(f"{kind} {name} in {region}: {problem}")
    return found, problems


def _wanted() -> Iterator[Key]:
    for kind, names in price_names().items():
        for name in sorted(names):
            yield from ((kind, name, region) for region in sorted(REGIONS))


def parse(file: Mapping[str, Any]) -> dict[Key, tuple[float, str]]:
    """Return the prices of a file."""
    return {
        (kind, name, region): (usd, source)
        for kind, names in file["prices"].items()
        for name, sources in names.items()
        for source, regions in sources.items()
        for region, usd in regions.items()
    }


def render(file: Mapping[str, Any], prices: Found, today: date) -> str:
    """Return the text of a file with other prices, in lines that a diff can show."""
    used = {source for _, source in prices.values()}
    sources = {**file["sources"], SOURCE: {"asOf": today.isoformat(), "text": SOURCE_TEXT}}
    nested: dict[str, dict[str, dict[str, dict[str, float]]]] = defaultdict(lambda: defaultdict(dict))
    for (kind, name, region), (usd, source) in sorted(prices.items()):
        nested[kind][name].setdefault(source, {})[region] = usd
    parts = {
        "currency": json.dumps("USD"),
        "sources": _object({key: json.dumps(each) for key, each in sources.items() if key in used}, 2),
        "places": _wrapped(file["places"], 2),
        "prices": _object({kind: _names(names) for kind, names in nested.items()}, 2),
    }
    return f"{_object(parts, 0)}\n"


def _names(names: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    shown = {name: {key: _wrapped(each, 8) for key, each in by_source.items()} for name, by_source in names.items()}
    return _object({name: _object(groups, 6) for name, groups in shown.items()}, 4)


def _object(items: Mapping[str, str], indent: int) -> str:
    margin = " " * indent
    body = ",\n".join(f"{margin}  {json.dumps(key)}: {text}" for key, text in items.items())
    return f"{{\n{body}\n{margin}}}"


def _wrapped(values: Mapping[str, Any], indent: int) -> str:
    """Return an object as JSON in lines, with several of its values in each."""
    margin, lines = " " * indent, [""]
    for key, value in values.items():
        item = f"{json.dumps(key)}: {json.dumps(value)}"
        if len(lines[-1]) + len(item) > _WIDTH - indent:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{item},"
    body = f"\n{margin}  ".join(lines).removesuffix(",")
    return f"{{\n{margin}  {body}\n{margin}}}"


def _pattern(kind: str, price_name: str) -> str | None:
    """Return a pattern of the description of a SKU after its prefix; `None` if it is unknown."""
    if kind in _PARTS:
        family = _FAMILIES.get(price_name, re.escape(price_name))
        return rf"{family} (?:Predefined |Instance |Predefined Instance ){_PARTS[kind]}\b"
    if kind == "disk":
        return rf"{DISKS[price_name]}\b" if price_name in DISKS else None
    if not price_name.startswith("NVIDIA_"):
        return None
    model = price_name.removeprefix("NVIDIA_").removeprefix("TESLA_").replace("_", " ")
    # `A100 80GB` is another model than `A100`.
    return rf"NVIDIA (?:TESLA )?{model}\b(?! \d+GB)"


def by_region(skus: Iterable[Sku]) -> Skus:
    """Return the SKUs of machines on demand."""
    found = defaultdict(list)
    for sku in skus:
        if sku["category"]["usageType"] == "OnDemand" and not _OTHER.search(sku["description"]):
            for region in sku["serviceRegions"]:
                found[region].append(sku)
    return found


def _single(skus: Iterable[Sku], pattern: str) -> Sku:
    matching = [sku for sku in skus if re.match(pattern, sku["description"], re.IGNORECASE)]
    if len(matching) != 1:
        listing = "; ".join(f"{sku['skuId']} {sku['description']}" for sku in matching) or "none"
        raise UnclearPriceError(f"exactly one on-demand SKU must match /{pattern}/; found: {listing}")
    return matching[0]


def _usd(sku: Sku, kind: str) -> float:
    """Return USD per unit: the only rate of the newest price. `units` is int64 as text, `nanos` billionths."""
    expression = sku["pricingInfo"][-1]["pricingExpression"]
    if expression["usageUnit"] != _UNITS[kind]:
        raise UnclearPriceError(f"{sku['skuId']} is priced by {expression['usageUnit']}, not by {_UNITS[kind]}")
    rates = [rate["unitPrice"] for rate in expression["tieredRates"]]
    if len(rates) != 1 or rates[0]["currencyCode"] != "USD":
        raise UnclearPriceError(f"{sku['skuId']} has no single rate in USD")
    return int(rates[0].get("units", "0")) + int(rates[0].get("nanos", 0)) / 1e9


def _fetch(service: str, api_key: str) -> Iterator[Sku]:
    """Yield all SKUs of a service, over the network: the only part that no test runs."""
    token = ""
    while True:
        query = urllib.parse.urlencode({"key": api_key, "pageSize": 5000, "pageToken": token})
        url = f"https://cloudbilling.googleapis.com/v1/services/{service}/skus?{query}"
        with urllib.request.urlopen(url, timeout=60) as reply:
            page = json.load(reply)
        yield from page.get("skus", [])
        token = page.get("nextPageToken", "")
        if not token:
            return


def main() -> int:
    """Look up all prices and write the file. Return the exit code."""
    key = os.environ.get(KEY)
    if not key:
        print(f"set {KEY} to an API key of a project in which the Cloud Billing API is enabled", file=sys.stderr)
        return 2
    file = json.loads(FILE.read_text(encoding="utf-8"))
    old = parse(file)
    try:
        new, problems = refresh(old, _fetch(VERTEX, key), _fetch(COMPUTE, key))
    except OSError as error:
        print(f"the Cloud Billing Catalog API does not answer: {error}", file=sys.stderr)
        return 1
    FILE.write_text(render(file, new, date.today()), encoding="utf-8")
    for problem in problems:
        print(f"stays as it is: {problem}", file=sys.stderr)
    changed = sum(new[each][0] != usd for each, (usd, _) in old.items())
    print(f"{len(new)} prices, {len(new) - len(old)} of them new and {changed} changed: {FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
