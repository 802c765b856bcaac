"""Prices anew from the Cloud Billing Catalog API: its SKUs in their documented shape, typed and not recorded."""

import json
from datetime import date
from typing import Any

import pytest

from tools import refresh_prices
from tools.refresh_prices import DISKS, Row, UnclearPricesError, refresh, render
from vertex_api.estimates.prices import FILE, Prices
from vertex_api.validation.pools import DISK_TYPES

TODAY = date(2026, 11, 21)
ON_VERTEX = "Vertex AI: Training/Pipelines on "
CORE: Row = ("vcpu", "N1", "us-central1", 0.5, "2026-01-01", "billing")
RAM: Row = ("gb", "N1", "us-central1", 0.5, "2026-01-01", "billing")
H100: Row = ("accelerator", "NVIDIA_H100_80GB", "us-central1", 0.5, "2026-01-01", "billing")
A100: Row = ("accelerator", "NVIDIA_TESLA_A100", "us-central1", 0.5, "2026-01-01", "billing")
A100_80GB: Row = ("accelerator", "NVIDIA_A100_80GB", "us-central1", 0.5, "2026-01-01", "billing")
SSD: Row = ("disk", "pd-ssd", "us-central1", 0.5, "2026-01-01", "billing")
TPU: Row = ("accelerator", "TPU_V3", "us-central1", 9.2, "2026-01-01", "catalog")


def sku(description: str, nanos: int, *, units: str = "0", unit: str = "h", **other: Any) -> dict[str, Any]:
    """A SKU as `services.skus.list` documents it."""
    return {
        "name": f"services/{refresh_prices.VERTEX}/skus/{abs(hash(description)) % 10**6}",
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


def test_a_price_has_its_sku_and_today() -> None:
    (row,) = refresh([CORE], *CORE_SKUS, TODAY)
    assert row == ("vcpu", "N1", "us-central1", 0.03635265, "2026-11-21", "catalog-api")


def test_whole_dollars_and_billionths_add_up() -> None:
    skus = [sku(f"{ON_VERTEX}NVIDIA H100 80GB in Americas", 266033200, units="11")]
    (row,) = refresh([H100], skus, [sku("NVIDIA H100 80GB GPU running in Americas", 796550608, units="9")], TODAY)
    assert row[3] == pytest.approx(11.2660332)


def test_other_skus_of_the_machine_are_ignored() -> None:
    vertex, compute = CORE_SKUS
    others = [
        sku(f"{ON_VERTEX}N1 Predefined Instance Core running in Americas management fee", 1),
        sku("Vertex AI: Online/Batch Prediction N1 Predefined Instance Core running in Americas", 1),
        sku(f"{ON_VERTEX}N1 Predefined Instance Ram running in Americas", 1, unit="GiBy.h"),
        sku(f"{ON_VERTEX}N1 Predefined Instance Core running in Belgium", 1, regions=["europe-west1"]),
        sku(f"{ON_VERTEX}N1 Predefined Instance Core running in Americas", 1, usage="Preemptible"),
    ]
    assert refresh([CORE], [*others, *vertex], compute, TODAY) == refresh([CORE], vertex, compute, TODAY)


def test_the_two_a100_sizes_are_told_apart() -> None:
    vertex = [
        sku(f"{ON_VERTEX}NVIDIA TESLA A100 in Americas", 373994200, units="3"),
        sku(f"{ON_VERTEX}NVIDIA TESLA A100 80GB in Americas", 517292000, units="4"),
    ]
    compute = [
        sku("Nvidia Tesla A100 GPU running in Americas", 933908000, units="2"),
        sku("Nvidia Tesla A100 80GB GPU running in Americas", 928080000, units="3"),
    ]
    found = refresh([A100, A100_80GB], vertex, compute, TODAY)
    assert [row[3] for row in found] == pytest.approx([3.3739942, 4.517292])


@pytest.mark.parametrize(
    ("row", "vertex", "compute", "problem"),
    [
        (CORE, [], CORE_SKUS[1], "vcpu N1 in us-central1: exactly one on-demand SKU must match .* found: none"),
        (CORE, CORE_SKUS[0] * 2, CORE_SKUS[1], "found: 0000-0000-0000 Vertex AI: .*; 0000-0000-0000 Vertex AI:"),
        (CORE, CORE_SKUS[0], [sku("N1 Predefined Instance Core running in Americas", 25000000)], "1.454 times .* 1.15"),
        (RAM, [sku(f"{ON_VERTEX}N1 Predefined Instance Ram running in X", 4872550)], [], "by h, not by GiBy.h"),
        (SSD, [sku(f"{ON_VERTEX}SSD backed PD Capacity", 195500000, unit="GiBy.h")], [], "by GiBy.h, not by GiBy.mo"),
    ],
)
def test_unclear_catalog_prices_are_rejected(row: Row, vertex: list[Any], compute: list[Any], problem: str) -> None:
    with pytest.raises(UnclearPricesError, match=problem):
        refresh([row], vertex, compute, TODAY)


def test_all_that_is_refused_is_named_at_once() -> None:
    with pytest.raises(UnclearPricesError) as refused:
        refresh([CORE, RAM, H100], [], [], TODAY)
    assert len(str(refused.value).splitlines()) == 3


def test_every_row_but_tpus_is_looked_up() -> None:
    rows = [tuple(row) for row in json.loads(FILE.read_text())["prices"]]
    with pytest.raises(UnclearPricesError) as refused:
        refresh(rows, [], [], TODAY)
    looked_up = [f"{kind} {name} in {region}" for kind, name, region, *_ in rows if not name.startswith("TPU")]
    assert [line.partition(":")[0] for line in str(refused.value).splitlines()] == looked_up
    assert {name for kind, name, *_ in rows if kind == "disk"} == {*DISKS} <= {*DISK_TYPES}


def test_tpus_keep_their_price_and_their_day() -> None:
    assert refresh([TPU], [], [], TODAY) == [TPU]


def test_written_prices_are_read_with_sources() -> None:
    table = json.loads(FILE.read_text())
    new = refresh([CORE], *CORE_SKUS, TODAY)
    price = Prices.parse(render(table, [*new, TPU])).find("vcpu", "N1", "us-central1")
    assert price is not None
    assert (price.usd, price.as_of) == (0.03635265, "2026-11-21")
    assert "Cloud Billing Catalog API" in price.source


def test_the_file_is_as_the_tool_writes_it() -> None:
    table = json.loads(FILE.read_text())
    assert render(table, [tuple(row) for row in table["prices"]]) == FILE.read_text()


def test_without_a_key_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(refresh_prices.KEY, raising=False)
    assert refresh_prices.main() == 2
    assert refresh_prices.KEY in capsys.readouterr().err
