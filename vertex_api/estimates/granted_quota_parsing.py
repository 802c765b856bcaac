"""What a project is granted of Vertex AI's quotas in a region.

The grants come from the Cloud Quotas API: a QuotaInfo has a `metric` and `dimensionsInfos`, from the most to the least
specific (its reference). Values are strings, and "-1" stands for no limit.
"""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

SERVICE = "aiplatform.googleapis.com"
"""The service whose quotas training counts against."""
UNLIMITED = inf


def get_granted_amounts_by_metric(quota_infos: Iterable[Mapping[str, Any]], region: str) -> dict[str, float]:
    """Return what is granted in a region by metric, in full (`aiplatform.googleapis.com/…`).

    A metric whose value is missing or no number is left out. Of several quotas of one metric the lowest one counts.
    """
    granted: dict[str, float] = {}
    for info in quota_infos:
        value = _get_granted_amount_in_region_or_none(info.get("dimensionsInfos") or (), region)
        if value is not None:
            granted[info["metric"]] = min(value, granted.get(info["metric"], UNLIMITED))
    return granted


def _get_granted_amount_in_region_or_none(dimensions_infos: Iterable[Mapping[str, Any]], region: str) -> float | None:
    """Return the value of the most specific entry that covers all of a region; None if no entry has one."""
    for info in dimensions_infos:
        dimensions = info.get("dimensions") or {}
        locations = info.get("applicableLocations") or (region,)
        covers_region = dimensions in ({}, {"region": region}) and (region in locations or "global" in locations)
        value = next((detail.get("value") for detail in info.get("details") or ()), None)
        if covers_region and value is not None:
            return _parse_amount_or_none(value)
    return None


def _parse_amount_or_none(text: str) -> float | None:
    try:
        amount = int(text)
    except ValueError:
        return None
    return UNLIMITED if amount < 0 else float(amount)
