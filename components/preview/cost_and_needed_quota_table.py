"""The table of cost and needed quota in a preview: a row for each job, the persistent resource, and the stack."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date

import pulumi

from vertex_api.estimates.cost import Cost
from vertex_api.estimates.prices import is_old
from vertex_api.estimates.quota import METRIC_PREFIX, UNKNOWN_METRIC, needed_quota, persistent_quota

from ..schedules.lines import cost_lines
from ..settings import gcp_stack_rules
from ..settings.settings import Settings

MAX_LINES = 10
"""How many jobs are shown: the most expensive ones."""
_EXCLUDED = "on demand, without taxes, network, storage, logs, discounts"


def show_cost(settings: Settings) -> None:
    """Log in a preview of the target gcp what the stack costs and which quotas it needs."""
    if settings.costs and pulumi.runtime.is_dry_run():
        scheduled = {job.name for job in settings.scheduled_jobs}
        costs = {name: cost for name, cost in settings.costs.items() if name not in scheduled}
        quotas = estimate_quotas_by_job_and_metric(settings)
        lines = []
        if costs:
            lines += render_cost_lines(settings.region, costs, {name: quotas[name] for name in costs}, date.today())
        lines += cost_lines(settings.region, settings.schedules, settings.costs)
        pulumi.log.info("\n".join(lines))


def estimate_quotas_by_job_and_metric(settings: Settings) -> dict[str, dict[str, int]]:
    """Return how much of each quota each of `settings.costs` needs, by the same names."""
    jobs = (*settings.jobs, *settings.scheduled_jobs)
    quotas = {job.name: needed_quota(job.required_valid_spec) for job in jobs}
    if machines := [pool for _, pool in gcp_stack_rules.iterate_resource_pools_with_paths(settings.cloud or {})]:
        quotas[gcp_stack_rules.PERSISTENT_RESOURCE] = persistent_quota(machines)
    return quotas


def render_cost_lines(
    region: str, costs: Mapping[str, Cost], quotas: Mapping[str, Mapping[str, int]], today: date
) -> list[str]:
    """Return the sum, a table of jobs (most expensive first), what the figures mean, and notes, as lines."""
    names = sorted(costs, key=lambda name: (*_get_sort_key_endless_and_unpriced_first(costs[name]), name))
    shown, hidden = names[:MAX_LINES], names[MAX_LINES:]
    rows = [("job", "an hour", "at most", "within", "quota")]
    rows += [_build_row_cells(name, costs[name], quotas[name]) for name in shown]
    if hidden:
        rows.append((f"{len(hidden)} more", *_format_hourly_and_total_sums(costs, hidden), "", ""))
    if len(names) > 1:
        quota_sums = sum(map(Counter, quotas.values()), Counter[str]())
        rows.append(("stack", *_format_hourly_and_total_sums(costs, names), "", _format_quotas(quota_sums)))
    days = frozenset().union(*(each.as_of for each in costs.values()))
    as_of = f"prices as of {min(days)}, " if days else ""
    hourly, total = _format_hourly_and_total_sums(costs, names)
    endless = [name for name in names if costs[name].is_endless]
    heading = [f"Cost in {region}: {hourly} USD an hour"]
    heading += [f"{total} USD at most"] if len(endless) < len(names) else []
    heading += [f"{name} without an end" for name in endless]
    lines = [
        # The engine shows the first line alone while it is at work.
        ", ".join(heading),
        *_align_columns(rows),
        f"  list-price estimate, {as_of}{_EXCLUDED}",
        f"  quota: what each job takes while it runs, and all at once; {METRIC_PREFIX}NAME",
    ]
    if any(UNKNOWN_METRIC in row[-1] for row in rows):
        lines.append(f"  {UNKNOWN_METRIC} the name of this quota is not on file")
    lines += _render_note_lines(costs, shown)
    if days and is_old(min(days), today):
        lines.append(f"  The prices as of {min(days)} are more than 90 days old: python -m tools.refresh_prices")
    return lines


def _get_sort_key_endless_and_unpriced_first(cost: Cost) -> tuple[bool, bool, float]:
    """Endless costs come first, so that they are always seen, then those without a price: they may be the highest."""
    return not cost.is_endless, not cost.unpriced, -cost.total


def _build_row_cells(name: str, cost: Cost, quota: Mapping[str, int]) -> tuple[str, str, str, str, str]:
    hourly, total = ("?", "?") if cost.unpriced else (f"{cost.hourly:,.2f}", f"{cost.total:,.2f}")
    if cost.is_endless:
        return name, hourly, "-", "as long as it is there", _format_quotas(quota)
    within = _format_in_largest_whole_unit(cost.max_seconds) + ("" if cost.has_timeout else ", as it has no timeout")
    return name, hourly, total, within, _format_quotas(quota)


def _format_hourly_and_total_sums(costs: Mapping[str, Cost], names: list[str]) -> tuple[str, str]:
    """Return the sum per hour of all priced costs in USD, and the total of those that are not endless."""
    priced = [costs[name] for name in names if not costs[name].unpriced]
    total = sum(each.total for each in priced if not each.is_endless)
    return f"{sum(each.hourly for each in priced):,.2f}", f"{total:,.2f}"


def _format_quotas(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount:,}" for name, amount in amounts.items()) or "none"


def _render_note_lines(costs: Mapping[str, Cost], names: list[str]) -> list[str]:
    lines = [f"  {name}: {note}" for name in names for note in costs[name].notes]
    missing = {name: ", ".join(costs[name].unpriced) for name in names if costs[name].unpriced}
    lines += [f"  {name}: no price on file for {missing[name]}" for name in missing]
    unpriced = [each for each in costs.values() if each.unpriced]
    count = sum(not each.is_endless for each in unpriced)
    without = [f"{count} job{'s' if count > 1 else ''}"] if count else []
    without += [gcp_stack_rules.PERSISTENT_RESOURCE] if count < len(unpriced) else []
    if without:
        lines.append(f"  The sum is without {' and '.join(without)} with no price on file")
    return lines


def _format_in_largest_whole_unit(seconds: float) -> str:
    """Return a duration in the largest unit in which it is whole."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f} {'day' if seconds == 86400 else unit}"
    return f"{seconds:g} s"


def _align_columns(rows: list[tuple[str, str, str, str, str]]) -> list[str]:
    align: tuple[Callable[..., str], ...] = (str.ljust, str.rjust, str.rjust, str.ljust, str.ljust)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(justify(cell, width) for justify, cell, width in zip(align, row, widths, strict=True)).rstrip()
        for row in rows
    ]
