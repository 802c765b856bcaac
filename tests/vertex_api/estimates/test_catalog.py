"""Prices anew from the Cloud Billing Catalog API: its SKUs in their documented shape, typed and not recorded."""

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from vertex_api.estimates import catalog
from vertex_api.estimates.availability import REGIONS
from vertex_api.estimates.catalog import DISKS, SOURCE, Found, Key, coverage, parse, refresh, render
from vertex_api.estimates.prices import FILE, Prices, price_names
from vertex_api.validation.pools import DISK_TYPES

TODAY = date(2026, 11, 21)
ON_VERTEX = "Vertex AI: Training/Pipelines on "
CORE: Key = ("vcpu", "N1", "us-central1")
RAM: Key = ("gb", "N1", "us-central1")
H100: Key = ("accelerator", "NVIDIA_H100_80GB", "us-central1")
A100: Key = ("accelerator", "NVIDIA_TESLA_A100", "us-central1")
A100_80GB: Key = ("accelerator", "NVIDIA_A100_80GB", "us-central1")
SSD: Key = ("disk", "pd-ssd", "us-central1")
TPU: Key = ("accelerator", "TPU_V3", "us-central1")


def old(*keys: Key) -> Found:
    return dict.fromkeys(keys, (0.5, "catalog"))


def sku(description: str, nanos: int, *, units: str = "0", unit: str = "h", **other: Any) -> dict[str, Any]:
    """A SKU as `services.skus.list` documents it."""
    return {
        "name": f"services/{catalog.VERTEX}/skus/{abs(hash(description)) % 10**6}",
        "skuId": "0000-0000-0000",
        "description": description,
        "category": {
            "serviceDisplayName": "Vertex AI",
            "resourceFamily": "ApplicationServices",
            "resourceGroup": "Vertex Training",
            "usageType": other.get("usage", "OnDemand"),
        },
        "serviceRegions": other.get("regions", ["us-central1"]),
        "pricingInfo": [
            {
                "effectiveTime": "2026-11-20T08:00:00.000Z",
                "summary": "",
                "pricingExpression": {
                    "usageUnit": unit,
                    "displayQuantity": 1,
                    "tieredRates": [
                        {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": units, "nanos": nanos}}
                    ],
                },
                "currencyConversionRate": 1,
            }
        ],
        "serviceProviderName": "Google",
    }


CORE_SKUS = (
    [sku(f"{ON_VERTEX}N1 Predefined Instance Core running in Americas", 36352650)],
    [sku("N1 Predefined Instance Core running in Americas", 31611000)],
)


def test_a_price_has_its_sku() -> None:
    assert refresh(old(CORE), *CORE_SKUS) == ({CORE: (0.03635265, SOURCE)}, [])


def test_a_price_that_was_not_on_file_is_added() -> None:
    assert refresh({}, *CORE_SKUS) == ({CORE: (0.03635265, SOURCE)}, [])


def test_whole_dollars_and_billionths_add_up() -> None:
    skus = [sku(f"{ON_VERTEX}NVIDIA H100 80GB in Americas", 266033200, units="11")]
    found, _ = refresh(old(H100), skus, [sku("NVIDIA H100 80GB GPU running in Americas", 796550608, units="9")])
    assert found[H100][0] == pytest.approx(11.2660332)


def test_other_skus_of_the_machine_are_ignored() -> None:
    vertex, compute = CORE_SKUS
    others = [
        sku(f"{ON_VERTEX}N1 Predefined Instance Core running in Americas management fee", 1),
        sku("Vertex AI: Online/Batch Prediction N1 Predefined Instance Core running in Americas", 1),
        sku(f"{ON_VERTEX}N1 Predefined Instance Ram running in Americas", 1, unit="GiBy.h"),
        sku(f"{ON_VERTEX}N1 Predefined Instance Core running in Belgium", 1, regions=["europe-west1"]),
        sku(f"{ON_VERTEX}N1 Predefined Instance Core running in Americas", 1, usage="Preemptible"),
    ]
    assert refresh(old(CORE), [*others, *vertex], compute) == refresh(old(CORE), vertex, compute)


def test_the_two_a100_sizes_are_told_apart() -> None:
    vertex = [
        sku(f"{ON_VERTEX}NVIDIA TESLA A100 in Americas", 373994200, units="3"),
        sku(f"{ON_VERTEX}NVIDIA TESLA A100 80GB in Americas", 517292000, units="4"),
    ]
    compute = [
        sku("Nvidia Tesla A100 GPU running in Americas", 933908000, units="2"),
        sku("Nvidia Tesla A100 80GB GPU running in Americas", 928080000, units="3"),
    ]
    found, _ = refresh(old(A100, A100_80GB), vertex, compute)
    assert [found[A100][0], found[A100_80GB][0]] == pytest.approx([3.3739942, 4.517292])


@pytest.mark.parametrize(
    ("key", "vertex", "compute", "problem"),
    [
        (CORE, [], CORE_SKUS[1], "vcpu N1 in us-central1: exactly one on-demand SKU must match .* found: none"),
        (CORE, CORE_SKUS[0] * 2, CORE_SKUS[1], "found: 0000-0000-0000 Vertex AI: .*; 0000-0000-0000 Vertex AI:"),
        (CORE, CORE_SKUS[0], [sku("N1 Predefined Instance Core running in Americas", 25000000)], "1.454 times .* 1.15"),
        (RAM, [sku(f"{ON_VERTEX}N1 Predefined Instance Ram running in X", 4872550)], [], "by h, not by GiBy.h"),
        (SSD, [sku(f"{ON_VERTEX}SSD backed PD Capacity", 195500000, unit="GiBy.h")], [], "by GiBy.h, not by GiBy.mo"),
    ],
)
def test_unclear_catalog_prices_stay_and_are_named(
    key: Key, vertex: list[Any], compute: list[Any], problem: str
) -> None:
    found, (named,) = refresh(old(key), vertex, compute)
    assert found[key] == (0.5, "catalog") and re.search(problem, named)


def test_all_names_and_regions_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set()
    monkeypatch.setattr(catalog, "_usd", lambda found, kind: asked.add(found) or 1.15)
    monkeypatch.setattr(catalog, "_single", lambda skus, pattern: pattern)
    monkeypatch.setattr(catalog, "RATIO", 1.0)
    known = parse(json.loads(FILE.read_text()))
    found, problems = refresh(known, [], [])
    kept = {each for each, (_, source) in found.items() if source != SOURCE}
    assert problems == [] and {name for _, name, _ in kept if not name.startswith("TPU")} == set()
    names = {(kind, name) for kind, names in price_names().items() for name in names}
    assert names - {each[:2] for each in found} == {("accelerator", "TPU7X"), ("disk", "hyperdisk-balanced")}
    assert {region for *_, region in found} == REGIONS
    assert {*DISKS} <= {*DISK_TYPES}


def test_tpus_keep_their_price_and_their_source() -> None:
    assert refresh(old(TPU), [], []) == (old(TPU), [])


def test_written_prices_are_read_with_sources() -> None:
    file = json.loads(FILE.read_text())
    new, _ = refresh(old(CORE, TPU), *CORE_SKUS)
    written = Prices.parse(render(file, new, TODAY))
    price = written.find("vcpu", "N1", "us-central1")
    assert price is not None
    assert (price.usd, price.source.as_of) == (0.03635265, "2026-11-21")
    assert "Cloud Billing Catalog API" in price.source.text
    kept = written.find("accelerator", "TPU_V3", "us-central1")
    assert kept is not None and kept.source.as_of == file["sources"]["catalog"]["asOf"]


def test_the_file_is_as_the_tool_writes_it() -> None:
    file = json.loads(FILE.read_text())
    assert render(file, parse(file), TODAY) == FILE.read_text()


def test_each_model_and_family_has_skus_of_its_own() -> None:
    names = ["NVIDIA_H100_80GB", "NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200"]
    keys: list[Key] = [("accelerator", name, "us-central1") for name in names]
    keys += [("vcpu", name, "us-central1") for name in ("A3", "A3-MEGA", "A3-ULTRA", "A4", "A4X")]
    texts = ["NVIDIA H100 80GB", "NVIDIA H100 80GB Plus", "NVIDIA H200 141GB", "NVIDIA B200"]
    texts += [f"{family} Instance Core" for family in ("A3", "A3Plus", "A3Ultra", "A4", "A4X")]
    cents = {text: position for position, text in enumerate(texts, 1)}
    vertex = [sku(f"{ON_VERTEX}{text} running in Americas", 11_500_000 * each) for text, each in cents.items()]
    base = [sku(f"{text} running in Americas", 10_000_000 * each) for text, each in cents.items()]
    found, problems = refresh(old(*keys), vertex, base)
    assert problems == []
    assert [round(found[key][0] / 0.0115) for key in keys] == [*cents.values()]


def test_most_pairs_have_no_price_of_their_own() -> None:
    priced, pairs = coverage(Prices.parse(FILE.read_text()))
    assert f"{priced:,} of {pairs:,} pairs" in (Path(__file__).parents[3] / "docs" / "cost.md").read_text()
