"""The table of prices: every one with its day and its source, under a name that something is priced by."""

from datetime import date

from vertex_api.estimates.prices import KINDS, ZERO, Money, bundled_prices, is_old, price_names


def test_every_price_has_a_date_and_a_source() -> None:
    assert len(bundled_prices().table) > 90
    for key, price in bundled_prices().table.items():
        assert price.usd > 0 and price.source, key
        assert date.fromisoformat(price.as_of) <= date(2026, 11, 21), key


def test_every_price_is_used_by_an_estimate() -> None:
    assert set(price_names()) == set(KINDS)
    assert [
        key for key in bundled_prices().table if key[1] not in price_names()[key[0]] and key[1] != "pd-balanced"
    ] == []


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
