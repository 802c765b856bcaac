"""List prices from the Cloud Billing Catalog API: which SKU is whose price, and a table that is written anew.

Looks up a price of each name in each region of training. Exactly one SKU of Vertex AI training must match it, in its
region and in the expected unit, and cost 1.15 times the SKU of Compute Engine; otherwise what is on file stays, with
its day, and is named. What has no known description of a SKU, such as TPUs, stays too.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Any

import requests

from vertex_api import transport
from vertex_api.estimates.availability import REGIONS
from vertex_api.estimates.prices import CURRENCY, TPU_PRICE_NAMES, Prices, price_family, price_names
from vertex_api.machines import MACHINES, Machine
from vertex_api.retry import DISABLED_API

VERTEX = "C7E2-9256-1C43"
COMPUTE = "6F81-5844-456A"
ENDPOINT_VARIABLE = "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT"
"""The gcp provider's own variable for another address of the Cloud Billing API."""
PAGE_SIZE = 5000
"""The most that a page has."""
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
_FAMILIES |= {"A3-MEGA": "A3 ?(?:Plus|Mega)", "A3-ULTRA": "A3 ?Ultra"}
"""How descriptions call families, where that is not their name: those of Compute Engine's SKUs, which those of Vertex
AI have in them."""
_MODELS = {"NVIDIA_H100_MEGA_80GB": "H100 80GB (?:Plus|Mega)", "NVIDIA_RTX_PRO_6000": "RTX (?:PRO )?6000"}
"""The same of accelerators."""
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
    """Return the prices of a file. Raises ValueError for those in another currency, which none of ours is beside."""
    if file["currency"] != CURRENCY:
        raise ValueError(file["currency"])
    return {
        (kind, name, region): (usd, source)
        for kind, names in file["prices"].items()
        for name, sources in names.items()
        for source, regions in sources.items()
        for region, usd in regions.items()
    }


def coverage(prices: Prices) -> tuple[int, int]:
    """Return how many pairs of a machine type and a region have prices of their own for all in it, and of how many.

    That is of each region of training. Accelerators that can be attached do not count, as they can be left out.
    """
    pairs = [(machine, region) for machine in MACHINES.values() for region in sorted(REGIONS)]
    return sum(_is_priced(*pair, prices) for pair in pairs), len(pairs)


def _is_priced(machine: Machine, region: str, prices: Prices) -> bool:
    if machine.is_tpu:
        names = [TPU_PRICE_NAMES[machine.family]] if machine.topologies else [*machine.tpus]
        return all(prices.find("accelerator", name, region) for name in names)
    keys = [(kind, price_family(machine.name)) for kind in ("vcpu", "gb")]
    keys += [("accelerator", kind) for kind in machine.gpus if not machine.can_omit_accelerator]
    return all(prices.find(*key, region) for key in keys)


def render(file: Mapping[str, Any], prices: Found, today: date) -> str:
    """Return the text of a file with other prices, in lines that a diff can show."""
    used = {source for _, source in prices.values()}
    sources = {**file["sources"], SOURCE: {"asOf": today.isoformat(), "text": SOURCE_TEXT}}
    nested: dict[str, dict[str, dict[str, dict[str, float]]]] = defaultdict(lambda: defaultdict(dict))
    for (kind, name, region), (usd, source) in sorted(prices.items()):
        nested[kind][name].setdefault(source, {})[region] = usd
    parts = {
        "currency": json.dumps(CURRENCY),
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
    model = _MODELS.get(price_name) or price_name.removeprefix("NVIDIA_").removeprefix("TESLA_").replace("_", " ")
    # `A100 80GB` is another model than `A100`, and `H100 80GB Plus` than `H100 80GB`.
    return rf"NVIDIA (?:TESLA )?{model}\b(?! \d+GB| Plus| Mega)"


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
    if len(rates) != 1 or rates[0]["currencyCode"] != CURRENCY:
        raise UnclearPriceError(f"{sku['skuId']} has no single rate in {CURRENCY}")
    return int(rates[0].get("units", "0")) + int(rates[0].get("nanos", 0)) / 1e9


class CatalogRefused(Exception):
    """The Cloud Billing Catalog API gives no prices. The message is one line, and says what to do."""


def fetch(service: str, sign: Callable[[dict[str, str]], None]) -> Iterator[Sku]:
    """Yield all SKUs of a service, page by page (REST reference, services.skus.list). Raises CatalogRefused.

    `sign` adds the headers of a caller; a server that is reached by http gets none.
    """
    base = os.environ.get(ENDPOINT_VARIABLE) or "https://cloudbilling.googleapis.com/v1/"
    query: dict[str, str | int] = {"pageSize": PAGE_SIZE, "currencyCode": CURRENCY}
    while True:
        page = _page(f"{base.rstrip('/')}/services/{service}/skus", query, sign)
        yield from page.get("skus", [])
        if not (token := page.get("nextPageToken")):
            return
        query["pageToken"] = token


def _page(url: str, query: Mapping[str, Any], sign: Callable[[dict[str, str]], None]) -> dict[str, Any]:
    headers: dict[str, str] = {}
    if url.startswith("https://"):
        sign(headers)
    try:
        with transport.mount(requests.Session()) as session:
            answer = session.get(url, params=query, headers=headers, timeout=60)
            page = answer.json()
    except (requests.RequestException, ValueError) as error:
        raise CatalogRefused(f"the Cloud Billing Catalog API does not answer: {type(error).__name__}") from error
    if DISABLED_API.refusal.search(answer.text):
        raise CatalogRefused(
            "the Cloud Billing API is off; run `gcloud services enable cloudbilling.googleapis.com` for the project "
            "that your calls count for"
        )
    if answer.status_code >= 400 or not isinstance(page, dict):
        raise CatalogRefused(f"the Cloud Billing Catalog API answers with status {answer.status_code}")
    return page
