"""Granted quotas: which value holds in a region."""

from typing import Any

import pytest

from vertex_api.estimates.quota import UNLIMITED, granted_quota

METRIC = "aiplatform.googleapis.com/custom_model_training_nvidia_l4_gpus"


def entry(value: str | None, locations: list[str], **dimensions: str) -> dict[str, Any]:
    details = [] if value is None else [{"value": value}]
    return {"dimensions": dimensions, "applicableLocations": locations, "details": details}


def granted(*entries: dict[str, Any], region: str = "us-central1") -> dict[str, float]:
    return granted_quota([{"metric": METRIC, "dimensionsInfos": list(entries)}], region)


HERE, ELSEWHERE = entry("8", ["us-central1"], region="us-central1"), entry("0", ["us-east1", "europe-west4"])


@pytest.mark.parametrize(("region", "amount"), [("us-central1", 8), ("us-east1", 0)])
def test_the_most_specific_entry_of_a_region_counts(region: str, amount: int) -> None:
    assert granted(HERE, ELSEWHERE, region=region) == {METRIC: amount}
    everywhere = entry("3", ["us-central1", "us-east1"])
    assert granted(HERE, ELSEWHERE, everywhere, region=region) == {METRIC: amount}


def test_a_quota_without_regions_is_global() -> None:
    assert granted(entry("5", ["global"])) == granted(entry("5", [])) == {METRIC: 5}


def test_entries_of_other_dimensions_do_not_count() -> None:
    assert granted(entry("9", ["us-central1"], region="us-central1", model="large"), HERE) == {METRIC: 8}


def test_minus_one_stands_for_unlimited() -> None:
    assert granted(entry("-1", ["us-central1"])) == {METRIC: UNLIMITED}


@pytest.mark.parametrize("entries", [(), (ELSEWHERE,), (entry(None, []),), (entry("many", []),)])
def test_an_unknown_value_is_left_out(entries: tuple[dict[str, Any], ...]) -> None:
    assert granted(*entries) == {}


def test_the_lowest_of_several_quotas_counts() -> None:
    infos = [{"metric": METRIC, "dimensionsInfos": [entry(value, [])]} for value in ("-1", "4", "6")]
    assert granted_quota(infos, "us-central1") == {METRIC: 4}
