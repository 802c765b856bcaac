"""What a preview shows at its end, of the Plan of all jobs: its warnings, and for the target `gcp` `REPORTS`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import date
from math import isinf
from typing import Any

import pulumi

from vertex_api.errors import first_problems
from vertex_api.estimates.availability import AS_OF, PAGE, REGIONS, accelerator_regions
from vertex_api.estimates.cost import Cost
from vertex_api.estimates.prices import ABOUT, MAX_AGE, ZERO, is_old
from vertex_api.estimates.quota import (
    METRIC_PREFIX,
    UNKNOWN_METRIC,
    Shortage,
    find_shortages,
    quota_page,
    quota_table,
    show_grant,
)
from vertex_api.names import closest_name

from ..errors import GrantedQuotasUnknown, QuotaInsufficient
from ..plan.guardrails import FIGURES, Figure
from ..plan.plan import PERSISTENT_RESOURCE, Plan, add
from ..runtime.resource import PerRun
from .granted import fetch

MAX_LINES = 10
"""How many jobs the table of cost has: the most expensive ones."""
MAX_NAMES = 3
"""How many of the jobs that need a quota or an accelerator a warning names."""
_EXCLUDED = "on demand, without taxes, network, storage, logs, discounts"
_NEWER_PRICES = (
    "`vertex-training prices --update FILE` gets today's, or set vertex-training:prices; `vertex-training prices` "
    "shows each"
)
_warned: PerRun[set[str]] = PerRun()
"""The warnings of a run so far: a program's jobs are judged with those of its stack."""


def show_reports(plan: Plan) -> None:
    """Show what to look at again in the jobs, and all reports on those of Google Cloud; a local stack costs nothing.

    Raises QuotaInsufficient, in `pulumi up` too, if the guardrail `quotaCheck` blocks jobs that can never run.
    """
    if pulumi.runtime.is_dry_run():
        warned = _warned.get(set)
        for warning in first_problems(map(str, plan.warnings())):
            if warning not in warned:
                warned.add(warning)
                pulumi.warn(warning)
    if plan.is_cloud:
        for report in REPORTS:
            report(plan)


def show_cost(plan: Plan) -> None:
    """Log in a preview what the stack costs and which quotas it needs."""
    if plan.costs and pulumi.runtime.is_dry_run():
        pulumi.log.info("\n".join([*cost_lines(plan, date.today()), *schedule_lines(plan)]))


def cost_lines(plan: Plan, today: date) -> list[str]:
    """Return the sum, a table of jobs (most expensive first), what the figures mean, and notes, as lines.

    Jobs that schedules submit are left out: `schedule_lines` has them.
    """
    costs = {name: plan.costs[name] for name in plan.submitted}
    if not costs:
        return []
    # Endless costs come first, so that they are always seen, then those without a price: they may be the highest.
    names = sorted(
        costs, key=lambda name: (not costs[name].is_endless, not costs[name].unpriced, -costs[name].total, name)
    )
    shown, hidden = names[:MAX_LINES], names[MAX_LINES:]
    rows = [("job", *(each.column for each in FIGURES), "within", "quota")]
    rows += [(name, *_cells(costs[name]), _quotas(plan.quotas[name])) for name in shown]
    if hidden:
        rows.append((f"{len(hidden)} more", *_sums(costs[name] for name in hidden), "", ""))
    if len(names) > 1:
        rows.append(("stack", *_sums(costs.values()), "", _quotas(add(plan.quotas[name] for name in costs))))
    days = frozenset().union(*(each.as_of for each in costs.values()))
    as_of = f"prices as of {min(days)}, " if days else ""
    endless = [name for name in names if costs[name].is_endless]
    heading = [
        f"{total} {each.unit}"
        for each, total in zip(FIGURES, _sums(costs.values()), strict=True)
        if any(not isinf(each.of(cost)) for cost in costs.values())
    ]
    if expected := [plan.expected[name] for name in names if name in plan.expected]:
        heading.append(f"{sum(expected, ZERO)} expected by earlier runs")
    heading += [f"{name} without an end" for name in endless]
    lines = [
        # The engine shows the first line alone while it is at work.
        f"Cost in {plan.region}: {', '.join(heading)}",
        *_aligned(rows),
        f"  list-price estimate, {as_of}{_EXCLUDED}",
        f"  quota: what each job takes while it runs, and all at once; {METRIC_PREFIX}NAME",
    ]
    if any(UNKNOWN_METRIC in row[-1] for row in rows):
        lines.append(f"  {UNKNOWN_METRIC} the name of this quota is not on file")
    lines += [f"  {name}: {plan.past[name]}" for name in shown if name in plan.past]
    lines += [*_nearest(costs), *_notes(costs, shown)]
    if days and is_old(min(days), today):
        lines.append(f"  The prices as of {min(days)} are more than {MAX_AGE.days} days old: {_NEWER_PRICES}")
    return lines


def _cells(cost: Cost) -> list[str]:
    """Return the figures of a job, and how long it may take."""
    figures = [(each, each.of(cost)) for each in FIGURES]
    about = ABOUT if cost.nearest else ""
    cells = [
        "-" if isinf(figure) else "?" if each.missing(cost) else f"{about}{each.show(figure)}"
        for each, figure in figures
    ]
    if cost.is_endless:
        return [*cells, "as long as it is there"]
    return [*cells, _duration(cost.max_seconds) + ("" if cost.has_timeout else ", as it has no timeout")]


def _sums(costs: Iterable[Cost]) -> list[str]:
    costs = list(costs)
    return [f"{_about(each, costs)}{each.show(each.sum(costs))}" for each in FIGURES]


def _about(figure: Figure, costs: Iterable[Cost]) -> str:
    return ABOUT if any(cost.nearest and figure.is_countable(cost) for cost in costs) else ""


def _quotas(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount:,}" for name, amount in amounts.items()) or "none"


def _duration(seconds: float) -> str:
    """Return a duration in the largest unit in which it is whole."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f} {'day' if seconds == 86400 else unit}"
    return f"{seconds:g} s"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows with aligned columns: figures to the right."""
    justify = [str.ljust, *[str.rjust] * len(FIGURES), str.ljust, str.ljust]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(align(cell, width) for align, cell, width in zip(justify, row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _nearest(costs: Mapping[str, Cost]) -> list[str]:
    """Return a line for what counts with the price of another region, with the jobs that use it."""
    users: dict[tuple[str, str], list[str]] = {}
    for name, cost in costs.items():
        for part in cost.nearest:
            users.setdefault(part, []).append(name)
    parts: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (item, region), names in users.items():
        parts.setdefault((region, tuple(names)), []).append(item)
    return [
        f"  {ABOUT} {', '.join(items)} at the price of {region}, the nearest region with one on file: {_first(names)}"
        for (region, names), items in parts.items()
    ]


def _notes(costs: Mapping[str, Cost], names: Sequence[str]) -> list[str]:
    lines = [f"  {name}: {note}" for name in names for note in costs[name].notes]
    missing = {name: ", ".join(costs[name].unpriced) for name in names if costs[name].unpriced}
    lines += [f"  {name}: no price on file for {missing[name]}" for name in missing]
    unpriced = [each for each in costs.values() if each.unpriced]
    count = sum(not each.is_endless for each in unpriced)
    without = [f"{count} job{'s' if count > 1 else ''}"] if count else []
    without += [PERSISTENT_RESOURCE] if count < len(unpriced) else []
    if without:
        lines.append(f"  The sum is without {' and '.join(without)} with no price on file")
    return lines


def schedule_lines(plan: Plan) -> list[str]:
    """Return a heading and a line of cost for each schedule whose jobs are known, none without schedules."""
    if not plan.scheduled:
        return []
    lines = [f"  {name}: {line}" for name, line in plan.schedule_costs.items()]
    heading = f"Schedules in {plan.region}, at most by list price:"
    return [heading, *lines, f"  all that are not paused: {plan.scheduled_monthly} a month"]


def check_quotas(plan: Plan) -> None:
    """Compare what the jobs need with what the project is granted, as the guardrail `quotaCheck` says.

    With `warn`, a preview shows both and warns of shortages, once the answer is there. With `block`, this waits for the
    answer, in `pulumi up` too, and raises QuotaInsufficient if a job can never run. A look-up that fails is one line.
    """
    mode = plan.guardrails.get("quotaCheck", "warn")
    if mode == "off" or not any(plan.quotas.values()):
        return
    if mode == "block":
        _compare_quotas(plan)
    elif pulumi.runtime.is_dry_run():
        # As an Output, because Pulumi waits for those before the program ends.
        report: Awaitable[Any] = asyncio.to_thread(_compare_quotas, plan)
        pulumi.Output.from_input(report)


def _compare_quotas(plan: Plan) -> None:
    """Show what is needed and granted. Raises QuotaInsufficient if that blocks jobs, as the guardrail says."""
    project, region = plan.project, plan.region or ""
    metrics = {METRIC_PREFIX + metric: metric for metric in add(plan.quotas.values())}
    try:
        amounts = fetch(project, region, metrics)
    except GrantedQuotasUnknown as error:
        pulumi.log.info(f"Quota in {region}: what {project} is granted is unknown: {error}")
        return
    granted = {metrics[name]: amount for name, amount in amounts.items()}
    shortages = find_shortages(plan.quotas, granted)
    is_blocking = plan.guardrails.get("quotaCheck") == "block"
    refused = [shortage for shortage in shortages if is_blocking and shortage.is_by_job]
    lines = {each.metric: shortage_line(project, region, each) for each in shortages}
    if pulumi.runtime.is_dry_run():
        pulumi.log.info("\n".join(quota_table(project, region, plan.quotas, granted)))
        if warnings := [lines[each.metric] for each in shortages if each not in refused]:
            pulumi.warn("\n".join(warnings))
    if refused:
        heading = "guardrails.quotaCheck: nothing is submitted, because quotas are too small:"
        raise QuotaInsufficient("\n  ".join([heading, *(lines[each.metric] for each in refused)]))


def shortage_line(project: str, region: str, shortage: Shortage) -> str:
    """Return what is needed of a metric by which jobs, what is granted, and where to ask for more."""
    metric, granted = shortage.metric, f"{show_grant(shortage.granted)} granted to {project} in {region}"
    more = f"ask for more {METRIC_PREFIX}{metric} at {quota_page(project)}"
    items = [f"{name} (needs {needed:,})" for name, needed in shortage.needed_by_job.items()]
    if shortage.is_by_job:
        return f"{metric}: {_first(items)} cannot run with the {granted}; {more}"
    return (
        f"{metric}: all jobs at once need {shortage.needed:,}, more than the {granted}, so some wait in "
        f"JOB_STATE_QUEUED for others to end: {_first(items)}; {more}"
    )


def _first(items: Sequence[str]) -> str:
    more = f" and {len(items) - MAX_NAMES} more" if len(items) > MAX_NAMES else ""
    return ", ".join(items[:MAX_NAMES]) + more


def warn_of_accelerators(plan: Plan) -> None:
    """Warn in a preview about an unknown region, and about accelerators that the region may not have."""
    if pulumi.runtime.is_dry_run() and (lines := accelerator_lines(plan)):
        pulumi.warn("\n".join(lines))


def accelerator_lines(plan: Plan) -> list[str]:
    """Return a line for an unknown region, or for each accelerator that the region does not offer."""
    region = plan.region or ""
    if region not in REGIONS:
        near = closest_name(region, REGIONS)
        guess = f"; did you mean {near}?" if near else "."
        return [f"{region} is not known as a region with training as of {AS_OF}{guess} See {PAGE}"]
    lines = []
    for accelerator, users in plan.unavailable.items():
        places = ", ".join(accelerator_regions().get(accelerator, ())) or "no known region"
        absence = f"{accelerator} is not offered for training in {region} as of {AS_OF}"
        lines.append(f"{absence} ({_first(users)}); offered in {places}")
    return [*lines, f"Tables change: see {PAGE}"] if lines else []


REPORTS: tuple[Callable[[Plan], None], ...] = (show_cost, check_quotas, warn_of_accelerators)
