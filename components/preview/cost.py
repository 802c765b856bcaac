"""What a preview says of cost and quota: a line for each job, one for machines that stay, and one for the stack."""

from collections.abc import Callable, Mapping
from datetime import date

import pulumi

from vertex_api.estimates import persistent_resource
from vertex_api.estimates.cost import Cost
from vertex_api.estimates.prices import is_old
from vertex_api.estimates.quota import METRIC_PREFIX, UNKNOWN_METRIC_MARK, estimate_quota

from ..settings import google_cloud
from ..settings.settings import Settings

MAX_LINES = 10
"""Of more jobs, only so many are shown: the dearest."""
_EXCLUDED = "on demand, without taxes, network, storage, logs, discounts"


def show_cost(settings: Settings) -> None:
    """Says in a preview of the target gcp, once, what the stack costs and needs. No resource knows of it."""
    if settings.costs and pulumi.runtime.is_dry_run():
        pulumi.log.info(
            "\n".join(render_cost_lines(settings.region, settings.costs, estimate_quotas(settings), date.today()))
        )


def estimate_quotas(settings: Settings) -> dict[str, dict[str, int]]:
    """What each of `settings.costs` needs of each quota, by the same names."""
    found = {job.name: estimate_quota(job.spec) for job in settings.jobs}
    if machines := [pool for _, pool in google_cloud.iterate_pools(settings.cloud or {})]:
        found[google_cloud.PERSISTENT_RESOURCE] = persistent_resource.estimate_pool_quota(machines)
    return found


def render_cost_lines(
    region: str, costs: Mapping[str, Cost], quotas: Mapping[str, Mapping[str, int]], today: date
) -> list[str]:
    """The lines: the sum, a table of jobs (dearest first), what the figures are, and what is to be known of them."""
    names = sorted(costs, key=lambda name: (*_sort_key(costs[name]), name))
    shown, hidden = names[:MAX_LINES], names[MAX_LINES:]
    rows = [("job", "an hour", "at most", "within", "quota")]
    rows += [_render_row(name, costs[name], quotas[name]) for name in shown]
    if hidden:
        rows.append((f"{len(hidden)} more", *_sum_texts(costs, hidden), "", ""))
    if len(names) > 1:
        rows.append(("stack", *_sum_texts(costs, names), "", _quota_text(_sum_quotas(quotas))))
    days = frozenset().union(*(each.as_of for each in costs.values()))
    as_of = f"prices as of {min(days)}, " if days else ""
    hourly, total = _sum_texts(costs, names)
    endless = [name for name in names if costs[name].is_endless]
    heading = [f"Cost in {region}: {hourly} USD an hour"]
    heading += [f"{total} USD at most"] if len(endless) < len(names) else []
    heading += [f"{name} without an end" for name in endless]
    said = [
        # The engine shows the first line alone while it is at work.
        ", ".join(heading),
        *_align(rows),
        f"  list-price estimate, {as_of}{_EXCLUDED}",
        f"  quota: what each job takes while it runs, and all at once; {METRIC_PREFIX}NAME",
    ]
    if any(UNKNOWN_METRIC_MARK in row[-1] for row in rows):
        said.append(f"  {UNKNOWN_METRIC_MARK} the name of this quota is not on file")
    said += _render_remarks(costs, shown)
    if days and is_old(min(days), today):
        said.append(f"  The prices as of {min(days)} are more than 90 days old: python -m tools.refresh_prices")
    return said


def _sort_key(cost: Cost) -> tuple[bool, bool, float]:
    """What has no end comes first, so that it is always seen; then what has no price: it may be the dearest."""
    return not cost.is_endless, not cost.missing, -cost.total


def _render_row(name: str, cost: Cost, quota: Mapping[str, int]) -> tuple[str, str, str, str, str]:
    hourly, total = ("?", "?") if cost.missing else (f"{cost.hourly:,.2f}", f"{cost.total:,.2f}")
    if cost.is_endless:
        return name, hourly, "-", "as long as it is there", _quota_text(quota)
    within = _duration_text(cost.within) if cost.has_timeout else f"{_duration_text(cost.within)}, as it has no timeout"
    return name, hourly, total, within, _quota_text(quota)


def _sum_texts(costs: Mapping[str, Cost], names: list[str]) -> tuple[str, str]:
    """USD per hour of what has a price, and at most of what has an end too."""
    priced = [costs[name] for name in names if not costs[name].missing]
    total = sum(each.total for each in priced if not each.is_endless)
    return f"{sum(each.hourly for each in priced):,.2f}", f"{total:,.2f}"


def _sum_quotas(quotas: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in quotas.values():
        for name, amount in each.items():
            found[name] = found.get(name, 0) + amount
    return found


def _quota_text(needed: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount:,}" for name, amount in needed.items()) or "none"


def _render_remarks(costs: Mapping[str, Cost], names: list[str]) -> list[str]:
    """What is to be known of what is shown, and what the sum is without."""
    said = [f"  {name}: {note}" for name in names for note in costs[name].notes]
    said += [
        f"  {name}: no price on file for {', '.join(costs[name].missing)}" for name in names if costs[name].missing
    ]
    unpriced = [each for each in costs.values() if each.missing]
    count = sum(not each.is_endless for each in unpriced)
    without = [f"{count} job{'s' if count > 1 else ''}"] if count else []
    without += [google_cloud.PERSISTENT_RESOURCE] if count < len(unpriced) else []
    if without:
        said.append(f"  The sum is without {' and '.join(without)} with no price on file")
    return said


def _duration_text(seconds: float) -> str:
    """Days, hours, minutes or seconds, whichever is whole and largest."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f} {'day' if seconds == 86400 else unit}"
    return f"{seconds:g} s"


def _align(rows: list[tuple[str, str, str, str, str]]) -> list[str]:
    """Names and texts to the left, figures to the right."""
    align: tuple[Callable[..., str], ...] = (str.ljust, str.rjust, str.rjust, str.ljust, str.ljust)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(side(cell, width) for side, cell, width in zip(align, row, widths, strict=True)).rstrip()
        for row in rows
    ]
