"""The table of prices: every one with its day and its source, under a name that something is priced by."""

import re
from datetime import date
from pathlib import Path

from vertex_api.estimates.prices import KINDS, ZERO, Money, bundled_prices, is_old, price_family, price_names
from vertex_api.machines import MACHINES
from vertex_api.validation.pools import DISK_TYPES

DOCS = Path(__file__).parents[3] / "docs/cost.md"


def test_every_price_has_a_date_and_a_source() -> None:
    assert len(bundled_prices().table) > 90
    for key, price in bundled_prices().table.items():
        assert price.usd > 0 and price.source, key
        assert date.fromisoformat(price.as_of) <= date.today(), key


def test_every_price_is_used_by_an_estimate() -> None:
    assert set(price_names()) == set(KINDS)
    assert [key for key in bundled_prices().table if key[1] not in price_names()[key[0]]] == []


def test_what_has_no_price_is_known() -> None:
    # Each for a reason: docs/cost.md names them, and a machine type that is added with no price appears here.
    priced = {(kind, name) for kind, name, _ in bundled_prices().table}
    unpriced = {kind: {name for name in names if (kind, name) not in priced} for kind, names in price_names().items()}
    families = {"A3-MEGA", "A3-ULTRA", "A4", "A4X", "G4"}
    accelerators = {
        *("NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200", "NVIDIA_GB200", "NVIDIA_RTX_PRO_6000"),
        "TPU7X",
    }
    disks = {"hyperdisk-balanced"}
    assert unpriced == {"vcpu": families, "gb": families, "accelerator": accelerators, "disk": disks}
    (line,) = (line for line in DOCS.read_text().splitlines() if line.startswith("No region has a price on file"))
    shown = {*re.findall("`([^`]+)`", line)}
    assert {price_family(each.name) for each in MACHINES.values() if each.name.startswith(tuple(shown))} == {
        *families,
        "TPU7X",
    }
    assert shown & {*DISK_TYPES} == disks


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
