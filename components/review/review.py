"""Review: all findings of a preview, compared with a preview of the base branch if there is one."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from vertex_api.estimates.quota import parse_quota_table
from vertex_api.retry import SUBMISSIONS_PER_MINUTE

from ..plan.guardrails import Near
from ..plan.plan import Plan, Totals
from ..rehearsal_file import Rehearsal
from ..runtime import pacing
from . import bill, changes, cloud, document, guardrails
from .bill import Bill, Growth
from .document import PreviewDocument
from .guardrails import RuleChange
from .rehearsed import Rehearsed, rehearsed
from .sides import digest_of, earlier_rules, pace_of, plan_of, rules_of

MAX_LENGTH = 60_000
"""GitHub takes 65,536 characters in a comment."""
_MAX_ITEMS = (1000, 200, 50, 20, 5)
"""How many items a list in JSON has at most, tried in this order until the JSON is short enough."""
_MAX_TEXT_LENGTH = 500


@dataclass(frozen=True)
class Submissions:
    """How many of Vertex AI's submissions an update takes, and how many a minute allows; None for no limit."""

    count: int
    per_minute: int | None

    @property
    def text(self) -> str:
        """How many there are, and for how long they are paced."""
        if self.per_minute and self.count > self.per_minute:
            return pacing.total_line(self.count, self.per_minute)
        return f"{self.count:,} submission{'' if self.count == 1 else 's'}"


@dataclass(frozen=True)
class Review:
    """What a reviewer needs of a preview.

    If the preview failed, there are `problems`, and everything else but `warnings` is empty. `before` and `after` are
    None for a target without cost. `bill` is what the jobs cost that the update runs, and None where `after` is.
    `growths` are costs that grow by more than the guardrail `warnCostFactor`. `monthly_after` is what all schedules
    cost at most, such as `12.50 USD a month`, and `monthly_before` what they do before, "" without any.
    `rule_changes` are those of guardrails, and `broken_rules` what the jobs break of those that held before.
    `lifts` are what jobs newly lift of the rules of the service.
    `rules_digest` stands for all that hold, wherever they come from.
    `earlier_runs` says of jobs that would run what their last runs took, by
    name. `granted_quota` has, by metric, what the preview shows as granted.
    `unlisted_count` is how many unchanged resources the preview does not list, so that the totals lack their jobs.
    `pending_in_base`
    names what the base would change in the same way, which is left out of the findings; `only_in_base` what the base
    would change and this preview does not.
    """

    project: str
    stack: str
    has_base: bool
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    images: tuple[changes.ImageFinding, ...] = ()
    jobs: tuple[changes.JobFinding, ...] = ()
    schedules: tuple[changes.ScheduleFinding, ...] = ()
    data_losses: tuple[cloud.DataLoss, ...] = ()
    grants: tuple[cloud.Grant, ...] = ()
    other_changes: tuple[cloud.OtherChange, ...] = ()
    before: Totals | None = None
    after: Totals | None = None
    bill: Bill | None = None
    growths: tuple[Growth, ...] = ()
    rule_changes: tuple[RuleChange, ...] = ()
    broken_rules: tuple[str, ...] = ()
    lifts: tuple[changes.Lift, ...] = ()
    rules_digest: str = ""
    near_limits: tuple[Near, ...] = ()
    monthly_before: str = ""
    monthly_after: str = ""
    earlier_runs: Mapping[str, str] = field(default_factory=dict)
    granted_quota: Mapping[str, str] = field(default_factory=dict)
    submissions: Submissions | None = None
    unlisted_count: int = 0
    pending_in_base: tuple[str, ...] = ()
    only_in_base: tuple[str, ...] = ()
    rehearsal: Rehearsed | None = None


def build_review(
    preview: PreviewDocument, base: PreviewDocument | None = None, rehearsal: Rehearsal | None = None
) -> Review:
    """Return the findings of a preview, and of a rehearsal of its jobs if there is one.

    With a `base`, they are those that the base does not have.
    """
    problems, warnings = document.errors(preview.diagnostics), document.warnings(preview.diagnostics)
    if base and base.has_failed:
        base = None
        warnings.append("the preview of the base failed, so this one is compared with the stack as it is")
    if preview.has_failed:
        return Review(preview.project, preview.stack, base is not None, tuple(problems), tuple(warnings))
    base_steps = {step.urn: step for step in base.steps} if base else {}
    steps = [step for step in preview.steps if step.op == "same" or step != base_steps.get(step.urn)]
    changed_urns = {step.urn for step in preview.steps if step.op != "same"}
    before = plan_of(base, is_after=True) if base else plan_of(preview, is_after=False)
    after = plan_of(preview, is_after=True)
    all_jobs = changes.jobs(preview.steps, preview.steps)
    found_jobs = changes.jobs(steps, preview.steps) if base else all_jobs
    run = [job for job in found_jobs if job.action in changes.RUNNING]
    old_rules, rules = rules_of(base) if base else earlier_rules(preview), rules_of(preview)
    schedules = changes.schedules(steps, preview.steps, preview.diagnostics)
    costs = after.schedule_costs if after else {}
    return Review(
        preview.project,
        preview.stack,
        base is not None,
        warnings=tuple(warnings),
        images=tuple(changes.images(steps)),
        jobs=tuple(found_jobs),
        schedules=tuple(replace(each, cost=costs.get(each.name, "")) for each in schedules),
        data_losses=tuple(cloud.data_losses(steps)),
        grants=tuple(cloud.grants(steps)),
        other_changes=tuple(cloud.others(steps)),
        before=before.totals if before else None,
        after=after.totals if after else None,
        bill=bill.of(before, after, run) if after else None,
        growths=tuple(bill.growths(before, after, guardrails.warn_factor(old_rules, rules)))
        if before and after
        else (),
        rule_changes=tuple(guardrails.changes(old_rules, rules)) if old_rules is not None else (),
        broken_rules=tuple(guardrails.broken(old_rules, rules, after)) if old_rules and after else (),
        lifts=tuple(changes.lifts(steps)),
        rules_digest=digest_of(preview),
        near_limits=tuple(after.near) if after else (),
        monthly_before=_monthly(before),
        monthly_after=_monthly(after),
        earlier_runs=_earlier_runs(after, run),
        granted_quota=parse_quota_table(each.message for each in preview.diagnostics),
        submissions=Submissions(sum(job.submissions for job in all_jobs), _pace(preview)),
        unlisted_count=preview.unlisted_count,
        pending_in_base=tuple(
            step.name for step in preview.steps if step.op != "same" and step == base_steps.get(step.urn)
        ),
        only_in_base=tuple(
            step.name for step in base_steps.values() if step.op != "same" and step.urn not in changed_urns
        ),
        rehearsal=rehearsed(rehearsal, preview.steps, found_jobs) if rehearsal else None,
    )


def _earlier_runs(plan: Plan | None, jobs: Iterable[changes.JobFinding]) -> dict[str, str]:
    past = plan.past if plan else {}
    return {job.name: str(past[job.name]) for job in jobs if job.name in past}


def _monthly(plan: Plan | None) -> str:
    return f"{plan.scheduled_monthly} a month" if plan and plan.scheduled else ""


def _pace(preview: PreviewDocument) -> int | None:
    """Return how many submissions a minute Vertex AI takes, or the stack sets; None for a target without a limit."""
    if (per_minute := pace_of(preview)) is not None:
        return per_minute
    return SUBMISSIONS_PER_MINUTE if preview.stack_values.get("target") == "gcp" else None


def render_json(review: Review) -> str:
    """Return a review as JSON of at most `MAX_LENGTH` characters: `omitted` says of which lists how much is missing."""
    fields = asdict(review)
    for side in ("before", "after"):
        if totals := fields[side]:
            fields[side] = {**totals.pop("sums"), **totals}
    for max_items in _MAX_ITEMS:
        omitted: dict[str, int] = {}
        cut = _cut(fields, max_items, "", omitted)
        text = json.dumps({**cut, "omitted": omitted}, indent=1) + "\n"
        if len(text) <= MAX_LENGTH:
            break
    return text


def _cut(value: Any, max_items: int, path: str, omitted: dict[str, int]) -> Any:
    if isinstance(value, dict):
        return {key: _cut(each, max_items, f"{path}.{key}".removeprefix("."), omitted) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > max_items:
            omitted[path] = omitted.get(path, 0) + len(value) - max_items
        return [_cut(each, max_items, path, omitted) for each in value[:max_items]]
    return value[:_MAX_TEXT_LENGTH] if isinstance(value, str) else value
