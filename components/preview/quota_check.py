"""The check of a stack's quotas: what its jobs need beside what the project is granted, and warnings or a refusal."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

import pulumi

from vertex_api.estimates.quota import METRIC_PREFIX, Shortage, find_shortages, quota_page, quota_table, show_grant

from ..errors import GrantedQuotasUnknown, QuotaInsufficient
from ..settings.settings import Settings
from .cost_and_needed_quota_table import estimate_quotas_by_job_and_metric
from .granted_quota_lookup import fetch_granted_quota_amounts

MAX_NAMES = 3
"""How many of the jobs that need a quota a warning names."""
NeededByJob = Mapping[str, Mapping[str, int]]
"""By job and metric."""


def check_quotas(settings: Settings) -> None:
    """Compare what the stack's jobs need with what the project is granted, as the guardrail `quotaCheck` says.

    With `warn`, a preview shows both and warns of shortages, once the answer is there. With `block`, this waits for the
    answer, in `pulumi up` too, and raises QuotaInsufficient if a job can never run. A look-up that fails is one line.
    Only for the target `gcp`.
    """
    mode = settings.guardrails.get("quotaCheck", "warn")
    needed = estimate_quotas_by_job_and_metric(settings)
    if settings.cloud is None or mode == "off" or not any(needed.values()):
        return
    if mode == "block":
        _look_up_granted_and_warn_or_block(settings, needed)
    elif pulumi.runtime.is_dry_run():
        report: Awaitable[Any] = asyncio.to_thread(_look_up_granted_and_warn_or_block, settings, needed)
        # As an Output, because Pulumi waits for those before the program ends.
        pulumi.Output.from_input(report)


def _look_up_granted_and_warn_or_block(settings: Settings, needed: NeededByJob) -> None:
    """Show what is needed and granted. Raises QuotaInsufficient if that blocks jobs, as the guardrail says."""
    project, region = settings.project, settings.region
    metrics = {METRIC_PREFIX + metric: metric for metric in set().union(*needed.values())}
    try:
        amounts = fetch_granted_quota_amounts(project, region, metrics)
    except GrantedQuotasUnknown as error:
        pulumi.log.info(f"Quota in {region}: what {project} is granted is unknown: {error}")
        return
    granted = {metrics[name]: amount for name, amount in amounts.items()}
    shortages = find_shortages(needed, granted)
    is_blocking = settings.guardrails.get("quotaCheck") == "block"
    refused = [shortage for shortage in shortages if is_blocking and shortage.is_by_job]
    lines = {each.metric: render_shortage_line(project, region, each) for each in shortages}
    if pulumi.runtime.is_dry_run():
        pulumi.log.info("\n".join(quota_table(project, region, needed, granted)))
        if warnings := [lines[each.metric] for each in shortages if each not in refused]:
            pulumi.warn("\n".join(warnings))
    if refused:
        heading = "guardrails.quotaCheck: nothing is submitted, because quotas are too small:"
        raise QuotaInsufficient("\n  ".join([heading, *(lines[each.metric] for each in refused)]))


def render_shortage_line(project: str, region: str, shortage: Shortage) -> str:
    """Return what is needed of a metric by which jobs, what is granted, and where to ask for more."""
    metric, granted = shortage.metric, f"{show_grant(shortage.granted)} granted to {project} in {region}"
    more = f"ask for more {METRIC_PREFIX}{metric} at {quota_page(project)}"
    if shortage.is_by_job:
        return f"{metric}: {_render_job_names_with_needs(shortage.needed_by_job)} cannot run with the {granted}; {more}"
    return (
        f"{metric}: all jobs at once need {shortage.needed:,}, more than the {granted}, so some wait in "
        f"JOB_STATE_QUEUED for others to end: {_render_job_names_with_needs(shortage.needed_by_job)}; {more}"
    )


def _render_job_names_with_needs(needed_by_job: Mapping[str, int]) -> str:
    items = [f"{name} (needs {needed:,})" for name, needed in needed_by_job.items()]
    more = f" and {len(items) - MAX_NAMES} more" if len(items) > MAX_NAMES else ""
    return ", ".join(items[:MAX_NAMES]) + more
