"""The table of prices: every one with its day and its source, under a name that something is priced by."""

import re
from datetime import date
from pathlib import Path

from vertex_api.estimates.availability import REGIONS
from vertex_api.estimates.prices import (
    KINDS,
    ZERO,
    Money,
    Prices,
    Source,
    bundled_prices,
    is_old,
    price_family,
    price_names,
)
from vertex_api.machines import MACHINES

DOCS = Path(__file__).parents[3] / "docs/cost.md"


def test_every_price_has_a_date_and_a_source() -> None:
    assert [*bundled_prices()]
    for kind, name, price in bundled_prices():
        assert price.usd > 0 and price.source.text, (kind, name, price)
        assert date.fromisoformat(price.source.as_of) <= date.today(), (kind, name, price)


def test_every_price_is_used_by_an_estimate() -> None:
    assert set(price_names()) == set(KINDS)
    assert [each for each in bundled_prices() if each[1] not in price_names()[each[0]]] == []
    assert {price.region for _, _, price in bundled_prices()} <= REGIONS == {*bundled_prices().places}


def test_what_has_no_price_is_known() -> None:
    # docs/cost.md names them, and a machine type that is added with no price appears here.
    prices = bundled_prices()
    unpriced = {
        (kind, name)
        for kind, names in price_names().items()
        for name in names
        if not all(prices.nearest(kind, name, region) for region in REGIONS)
    }
    families = {"A3-MEGA", "A3-ULTRA", "A4", "A4X", "G4"}
    models = ("B200", "GB200", "H100_MEGA_80GB", "H200_141GB", "RTX_PRO_6000")
    accelerators = {*(f"NVIDIA_{model}" for model in models), "TPU7X"}
    parts = {(kind, family) for kind in ("vcpu", "gb") for family in families}
    disks = {("disk", "hyperdisk-balanced")}
    assert unpriced == parts | disks | {("accelerator", name) for name in accelerators}
    (line,) = (line for line in DOCS.read_text().splitlines() if line.startswith("No region has a price on file"))
    shown = {*re.findall("`([^`]+)`", line)}
    assert {name for _, name in disks} <= shown
    assert {price_family(each.name) for each in MACHINES.values() if each.name.startswith(tuple(shown))} == {
        *families,
        "TPU7X",
    }


def test_the_page_names_the_regions_on_file() -> None:
    on_file: dict[frozenset[str], set[str]] = {}
    for kind, names in bundled_prices().table.items():
        for name in names:
            on_file.setdefault(frozenset(bundled_prices().regions(kind, name)), set()).add(name)
    shown = {
        frozenset(re.findall(r"[a-z]+-[a-z]+\d+", regions)): {*re.findall("`([^`]+)`", names)}
        for line in DOCS.read_text().partition("| On file in |")[2].partition("\n\n")[0].splitlines()[2:]
        for names, regions in [line.strip("|").split("|")]
    }
    assert on_file == shown


def test_the_nearest_region_is_that_by_way() -> None:
    prices = Prices(
        {"a": Source("2026-11-01", "a")},
        {
            "disk": {
                "pd-ssd": {"a": {"us-central1": 1.0, "asia-northeast1": 2.0, "europe-west3": 3.0, "moon-north1": 4.0}}
            }
        },
        bundled_prices().places,
    )

    def nearest(region: str) -> str | None:
        return (found := prices.nearest("disk", "pd-ssd", region)) and found.region

    expected = {"us-west1": "us-central1", "europe-west4": "europe-west3", "asia-south1": "europe-west3"}
    expected |= {"australia-southeast1": "asia-northeast1", "us-central1": "us-central1", "moon-north1": "moon-north1"}
    assert {region: nearest(region) for region in expected} == expected
    assert nearest("mars-south1") is None
    assert prices.nearest("disk", "pd-standard", "us-west1") is None


def test_a_price_is_old_after_90_days() -> None:
    assert not is_old("2026-07-30", date(2026, 10, 28))  # the 90th day
    assert is_old("2026-07-30", date(2026, 10, 29))


def test_money_says_how_it_is_shown() -> None:
    assert f"{Money(1234.5)} an hour" == "1,234.50 USD an hour"
    assert Money(0.005).digits == "0.01"
    assert f"{Money(2):>9}" == " 2.00 USD"
    assert f"{Money(1234.5):.1f}" == "1234.5"


def test_sums_and_multiples_of_money_are_money() -> None:
    total = sum([Money(1.25), Money(2)], ZERO) * 2 - 0.5
    assert (type(total), total) == (Money, 6.0)
