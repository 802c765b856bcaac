"""The lines of a preview on what schedules cost at most, a run and a month. Reviews parse them."""

import re
from collections.abc import Iterable, Mapping

from vertex_api.estimates.cost import Cost

from ..schema.declared_schedule import DeclaredSchedule

_START, _END = "Schedules in ", ", at most by list price:"
_LINE = re.compile(r"  (\S+): (.+)")
_MONTHS = 12


def render_schedule_cost_lines(
    region: str, schedules: Iterable[DeclaredSchedule], costs: Mapping[str, Cost]
) -> list[str]:
    """Return a heading and a line for each schedule, none without schedules. `costs` are those of the jobs by name."""
    lines = [_render_cost_line(schedule, costs) for schedule in schedules]
    return [f"{_START}{region}{_END}", *lines] if lines else []


def parse_schedule_cost_texts_by_name(preview_messages: Iterable[str]) -> dict[str, str]:
    """Return what schedules cost, as these lines among a preview's messages say it; nothing without them."""
    for message in preview_messages:
        lines = iter(message.splitlines())
        if any(line.startswith(_START) and line.endswith(_END) for line in lines):
            return {match[1]: match[2] for line in lines if (match := _LINE.fullmatch(line))}
    return {}


def _render_cost_line(schedule: DeclaredSchedule, costs: Mapping[str, Cost]) -> str:
    # Imported here, because most stacks have no schedules.
    from vertex_api.schedules.cron import compute_average_times_per_year

    per_month = compute_average_times_per_year(schedule.cron) / _MONTHS
    runs = f"{per_month:,.1f}".removesuffix(".0") + " runs a month"
    unpriced = [item for name in schedule.job_names for item in costs[name].unpriced]
    if unpriced:
        amount = f"no price on file for {', '.join(dict.fromkeys(unpriced))}, {runs}"
    else:
        usd = sum(costs[name].total for name in schedule.job_names)
        amount = f"{usd:,.2f} USD a run, {usd * per_month:,.2f} USD a month ({runs})"
    return f"  {schedule.name}: {amount}{', paused' if schedule.paused else ''}"
