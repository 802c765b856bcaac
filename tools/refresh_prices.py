"""Updates vertex_api/estimates/prices.json from the Cloud Billing Catalog API.

    CLOUD_BILLING_API_KEY=… python -m tools.refresh_prices

Looks up every price in the file again. Exactly one SKU of Vertex AI training must match a row, in its region and in
the expected unit, and cost 1.15 times the SKU of Compute Engine; otherwise nothing is written. TPUs stay as they are,
because the descriptions of their SKUs are unknown. To add a price, add a row with any number, then run this.
"""

import json
import os
import re
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from vertex_api.estimates.prices import FILE

VERTEX = "C7E2-9256-1C43"
COMPUTE = "6F81-5844-456A"
KEY = "CLOUD_BILLING_API_KEY"
RATIO, TOLERANCE = 1.15, 0.01
SOURCE = "catalog-api"
SOURCE_TEXT = f"Cloud Billing Catalog API, service {VERTEX} (Vertex AI), on demand"

Row = tuple[str, str, str, float, str, str]
Sku = Mapping[str, Any]

_TRAINING = "Vertex AI: Training/Pipelines on "
_UNITS = {"vcpu": "h", "gb": "GiBy.h", "accelerator": "h", "disk": "GiBy.mo"}
_FAMILIES = {"C2": "(?:C2|Compute optimized)", "M1": "(?:M1|Memory-optimized)"}
_PARTS = {"vcpu": "Core", "gb": "Ram"}
DISKS = {"pd-ssd": "SSD backed PD Capacity", "pd-standard": "Storage PD Capacity"}
"""How the descriptions of SKUs call the disks that have prices."""


class UnclearPricesError(Exception):
    """The catalog does not give clear prices; each line of the message is one of them."""


def refresh(rows: Sequence[Row], vertex_skus: Sequence[Sku], compute_skus: Sequence[Sku], today: date) -> list[Row]:
    """Return the rows with today's prices. The SKUs are those of the two services, in the API's form.

    Raises UnclearPricesError with every row that no SKU or several match, or whose price is implausible.
    """
    refreshed, problems = [], []
    for row in rows:
        kind, name, region = row[:3]
        pattern = _pattern(kind, name)
        if pattern is None:
            refreshed.append(row)
            continue
        try:
            usd = _usd(_single(vertex_skus, f"{_TRAINING}{pattern}", region), kind)
            base = _usd(_single(compute_skus, pattern, region), kind)
            if abs(usd / base / RATIO - 1) > TOLERANCE:
                raise UnclearPricesError(f"{usd} is {usd / base:.3f} times Compute Engine's {base}, not {RATIO}")
            refreshed.append((kind, name, region, usd, today.isoformat(), SOURCE))
        except UnclearPricesError as problem:
            problems.append(f"{kind} {name} in {region}: {problem}")
    if problems:
        raise UnclearPricesError("\n".join(problems))
    return refreshed


def render(table: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Return the file's text: one price a line, so that a change of one is a change of one line."""
    used = {row[-1] for row in rows}
    sources = {name: text for name, text in {**table["sources"], SOURCE: SOURCE_TEXT}.items() if name in used}
    source_lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(text)}" for name, text in sources.items())
    prices = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    return f'{{\n  "currency": "USD",\n  "sources": {{\n{source_lines}\n  }},\n  "prices": [\n{prices}\n  ]\n}}\n'


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


def _single(skus: Sequence[Sku], pattern: str, region: str) -> Sku:
    matching = [sku for sku in skus if _matches(sku, pattern, region)]
    if len(matching) != 1:
        listing = "; ".join(f"{sku['skuId']} {sku['description']}" for sku in matching) or "none"
        raise UnclearPricesError(f"exactly one on-demand SKU must match /{pattern}/; found: {listing}")
    return matching[0]


def _matches(sku: Sku, pattern: str, region: str) -> bool:
    text = sku["description"]
    is_other = re.search("management fee|prediction|reserved|commitment|spot|preemptible", text, re.IGNORECASE)
    is_on_demand = sku["category"]["usageType"] == "OnDemand" and region in sku["serviceRegions"]
    return is_on_demand and not is_other and bool(re.match(pattern, text, re.IGNORECASE))


def _usd(sku: Sku, kind: str) -> float:
    """Return USD per unit: the only rate of the newest price. `units` is int64 as text, `nanos` billionths."""
    expression = sku["pricingInfo"][-1]["pricingExpression"]
    if expression["usageUnit"] != _UNITS[kind]:
        raise UnclearPricesError(f"{sku['skuId']} is priced by {expression['usageUnit']}, not by {_UNITS[kind]}")
    rates = [rate["unitPrice"] for rate in expression["tieredRates"]]
    if len(rates) != 1 or rates[0]["currencyCode"] != "USD":
        raise UnclearPricesError(f"{sku['skuId']} has no single rate in USD")
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
    table = json.loads(FILE.read_text(encoding="utf-8"))
    old = [tuple(row) for row in table["prices"]]
    try:
        new = refresh(old, [*_fetch(VERTEX, key)], [*_fetch(COMPUTE, key)], date.today())
    except OSError as error:
        print(f"the Cloud Billing Catalog API does not answer: {error}", file=sys.stderr)
        return 1
    except UnclearPricesError as problem:
        print(f"nothing is written:\n{problem}", file=sys.stderr)
        return 1
    FILE.write_text(render(table, new), encoding="utf-8")
    changed = sum(before[3] != after[3] for before, after in zip(old, new, strict=True))
    print(f"{len(new)} prices, {changed} of them changed: {FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
