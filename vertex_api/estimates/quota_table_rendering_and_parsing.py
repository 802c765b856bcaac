"""Rendering of the table of quotas that previews show, and parsing of it by reviews."""

import re
from collections.abc import Iterable, Mapping
from math import isinf

from .needed_quota import UNKNOWN_METRIC_MARK

_START, _MIDDLE = "Quota in ", ": needed by all jobs at once, and granted to "
_ROW = re.compile(r"  (\S.*?) {2,}(\S+) {2,}(\S+)")
_COLUMNS = ("quota", "needed", "granted")


def render_quota_table_lines_summed_over_jobs(
    project: str, region: str, needed_by_job: Mapping[str, Mapping[str, int]], granted: Mapping[str, float]
) -> list[str]:
    """Return the lines of a table of the metrics that are needed: what all jobs need at once, and what is granted."""
    names = sorted(set().union(*needed_by_job.values()))
    needed = {name: sum(metrics.get(name, 0) for metrics in needed_by_job.values()) for name in names}
    rows = [_COLUMNS]
    rows += [(name, f"{needed[name]:,}", format_granted_amount(granted.get(name))) for name in names]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"{_START}{region}{_MIDDLE}{project}"]
    lines += [f"  {name:{widths[0]}}  {need:>{widths[1]}}  {grant:>{widths[2]}}" for name, need, grant in rows]
    if granted.keys() < set(names):
        lines.append(f"  ? no such quota is listed for the project, or its name is not on file ({UNKNOWN_METRIC_MARK})")
    return lines


def format_granted_amount(amount: float | None) -> str:
    """Return an amount as texts show it, `?` for `None`."""
    if amount is None:
        return "?"
    return "unlimited" if isinf(amount) else f"{amount:,.0f}"


def parse_granted_amount_texts_by_metric(preview_messages: Iterable[str]) -> dict[str, str]:
    """Return what is granted, as the table among a preview's messages shows it; nothing without a table."""
    for message in preview_messages:
        title, *lines = message.splitlines() or [""]
        if title.startswith(_START) and _MIDDLE in title:
            rows = [row.groups() for line in lines if (row := _ROW.fullmatch(line))]
            return {name: granted for name, _, granted in rows if (name, granted) != (_COLUMNS[0], _COLUMNS[2])}
    return {}
