"""A review as Markdown for a comment of GitHub or GitLab: what matters first, then folded details, cut with a count."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from vertex_api.estimates.prices import ABOUT, CURRENCY, Money
from vertex_api.estimates.quota import METRIC_PREFIX

from ..plan.guardrails import FIGURES, Near
from ..plan.plan import PERSISTENT_RESOURCE, Totals
from .answers import answers, results
from .changes import Cause, ImageFinding, JobFinding, ScheduleFinding
from .cloud import DataLoss, Grant, OtherChange
from .pieces import MAX_ANSWERS, MAX_CAUSES, ListLimits, arrow, because, code, codes, count_of, folded, quoted, section
from .review import MAX_LENGTH, Review

_ACTIONS = {
    "submit": "to submit",
    "run again": "to run again",
    "adopt": "to adopt",
    "update": "to update in place, without a new run",
    "go on": "to go on under another URN",
    "delete": "to delete",
    "cancel": "to cancel, and remove from the stack",
    "keep": "to keep, and remove from the stack",
}
_MAX_NAMES = 5
_NO_TOTALS = Totals()
_NOTHING = "nothing"


LIST_LIMITS = (
    ListLimits(20, 10, 1000),
    ListLimits(20, 10, 200),
    ListLimits(20, 10, 50),
    ListLimits(10, 5, 20),
    ListLimits(5, 3, 5),
)
"""Tried in this order until a review is short enough."""


def render_markdown(review: Review) -> str:
    """Return a review as Markdown of at most `MAX_LENGTH` characters."""
    for limits in LIST_LIMITS:
        text = "\n".join(_lines(review, limits)) + "\n"
        if len(text) <= MAX_LENGTH:
            return text
    # Only names and paths of thousands of characters come here, so whole lines are left out.
    kept, cut = "", "\n**Longer lines are left out: see the preview itself.**\n"
    for line in text.splitlines(keepends=True):
        kept += line if len(kept) + len(line) + len(cut) <= MAX_LENGTH else ""
    return kept + cut


def _lines(review: Review, limits: ListLimits) -> Iterator[str]:
    yield f"### Preview of {code(review.stack)}" if review.stack else "### Preview"
    if review.rehearsal:
        yield from answers(review, review.rehearsal)
    if not review.problems:
        yield from _bill(review)
    yield ""
    if review.problems:
        yield f"**The preview failed: {count_of(len(review.problems), 'problem')}.**"
    else:
        yield f"**{_summary(review)}**"
    yield from section("", review.problems, limits.items * 2, quoted)
    yield from section("⚠️ Data that is lost", review.data_losses, limits.items, _data_loss)
    if review.rehearsal:
        yield from results(review.rehearsal, review.stack, limits)
    yield from section("Guardrails", [*_guardrails(review)], limits.items * 2, str)
    yield from section("Images and packages", review.images, limits.items, partial(_image, limits.names))
    groups = group_jobs(review.jobs, limits.items)
    yield from section("Jobs", groups, limits.items, partial(_job_group, limits.names))
    yield from section("Schedules", review.schedules, limits.items, _schedule)
    yield from section("Grants", review.grants, limits.items, _grant)
    earlier = [*review.earlier_runs.items()]
    yield from section("Earlier runs", earlier, limits.items, lambda each: f"{code(each[0])}: {each[1]}")
    yield from _totals(review, limits.items)
    yield from section("Warnings", review.warnings, limits.items, quoted)
    others = partial(_other_change, limits.names)
    yield from folded("job", review.jobs, limits.details, _job)
    yield from folded("other resource", review.other_changes, limits.details, others)
    pending, undone = " that the base makes too, not shown above", " of the base that are missing here"
    yield from folded("change", review.pending_in_base, limits.details, code, pending)
    yield from folded("change", review.only_in_base, limits.details, code, undone)


def _summary(review: Review) -> str:
    counts = {
        "image": sum(image.noun == "image" and image.change != "removed" for image in review.images),
        "package": sum(image.noun == "package" and image.change != "removed" for image in review.images),
    }
    parts = [f"{count_of(count, noun)} to build" for noun, count in counts.items() if count]
    for action, phrase in _ACTIONS.items():
        if count := sum(job.action == action for job in review.jobs):
            parts.append(f"{count_of(count, 'job')} {phrase.partition(',')[0]}")
    nouns = {"schedule": review.schedules, "grant": review.grants, "other resource": review.other_changes}
    parts += [f"{count_of(len(found), noun)} to change" for noun, found in nouns.items() if found]
    return ", ".join(parts) + "." if parts else "Nothing changes."


def _bill(review: Review) -> Iterator[str]:
    """Yield the line that says what the update costs."""
    if not (bill := review.bill):
        if review.rehearsal:
            yield "- **Cost**: none on Google Cloud"
        return
    jobs = f"{len(bill.jobs):,} of {count_of(bill.job_count, 'job')}"
    jobs = count_of(len(bill.jobs), "job") if review.unlisted_count else jobs
    ran = f"this update runs {jobs if bill.jobs else 'no job'}"
    if priced := len(bill.jobs) - len(bill.unknown):
        about = ABOUT if bill.nearest else ""
        ran += f": {about}{Money(bill.ceiling)} at most"
        if bill.expected_count:
            of_which = f" for {bill.expected_count:,} of them" if bill.expected_count < priced else ""
            ran += f", {Money(bill.expected)} expected{of_which} by earlier runs"
        else:
            ran += ", expected unknown: no earlier runs"
    parts = [ran]
    parts += [f"no price on file for {codes(bill.unpriced, MAX_ANSWERS)}"] if bill.unpriced else []
    parts += [f"not known before the update: {codes(bill.unknown, MAX_ANSWERS)}"] if bill.unknown else []
    if bill.machines:
        old, new = map(Money, bill.machines)
        parts.append(f"`{PERSISTENT_RESOURCE}` {old.digits} → {new} an hour, without an end")
    if (old_month := review.monthly_before or _NOTHING) != (month := review.monthly_after or _NOTHING):
        parts.append(f"schedules {old_month} → {month} at most")
    yield f"- **Cost**: {'; '.join(parts)}"


def _data_loss(loss: DataLoss) -> str:
    verb = "replaced" if loss.action == "replace" else "deleted"
    resource = f"{code(loss.type)} {code(loss.name)}"
    return f"{code(loss.id)} is {verb}, and loses its {loss.data} ({resource})"


def _grant(grant: Grant) -> str:
    role, member, target = map(code, (grant.role, grant.member, grant.target))
    return f"{'granted' if grant.is_new else 'revoked'}: {role} for {member} on {target}"


def _other_change(max_names: int, change: OtherChange) -> str:
    fields = f": {codes(change.fields, max_names)}" if change.fields else ""
    return f"{code(change.op)} {code(change.type)} {code(change.name)}{fields}"


def _image(max_names: int, image: ImageFinding) -> str:
    name = f"{image.noun} {code(image.name)}"
    if image.change != "changed":
        return f"{name} is {'new' if image.change == 'new' else 'removed from the stack'}"
    reasons = [
        f"{codes(files, max_names)} {verb}"
        for files, verb in (
            (image.changed_files, "changed"),
            (image.added_files, "added"),
            (image.removed_files, "removed"),
        )
        if files
    ]
    reasons += [
        f"{code(change.path_text)} {arrow(change.old_text, change.new_text)}"
        for change in image.other_changes[:max_names]
    ]
    if image.has_unlisted_files:
        reasons.append("its files (more than 200, so none is listed)")
    return f"{name} is rebuilt: {'; '.join(reasons) or 'by request, as by `--replace`'}"


@dataclass(frozen=True)
class JobGroup:
    """Jobs of one action and one policy of deletion."""

    jobs: tuple[JobFinding, ...]

    @property
    def shared_causes(self) -> tuple[Cause, ...]:
        """The causes that all of the jobs have, in the first one's order."""
        shared = set.intersection(*(set(job.causes) for job in self.jobs))
        return tuple(cause for cause in self.jobs[0].causes if cause in shared)

    @property
    def others(self) -> int:
        """How many of the jobs have causes that not all of them share."""
        shared_count = len(self.shared_causes)
        return sum(len(job.causes) > shared_count for job in self.jobs)


def group_jobs(jobs: Sequence[JobFinding], max_groups: int) -> list[JobGroup]:
    """Return the jobs in groups, the largest first: of equal causes, if that makes at most `max_groups`.

    Else each job is in the group of that cause of its own which most jobs have.
    """
    groups = _grouped(jobs, lambda job: job.causes)
    if len(groups) > max_groups:
        counts = Counter((job.action, cause) for job in jobs for cause in job.causes)
        groups = _grouped(jobs, lambda job: max(job.causes, key=lambda cause: counts[job.action, cause], default=None))
    return groups


def _grouped(jobs: Sequence[JobFinding], get_key: Callable[[JobFinding], Hashable]) -> list[JobGroup]:
    groups: dict[Hashable, list[JobFinding]] = {}
    for job in jobs:
        groups.setdefault((job.action, job.on_delete, get_key(job)), []).append(job)
    return [JobGroup(tuple(group)) for group in sorted(groups.values(), key=len, reverse=True)]


def _job_group(max_names: int, group: JobGroup) -> str:
    names = codes([job.name for job in group.jobs], max_names)
    action = _action(group.jobs[0], group.shared_causes)
    others_count = group.others
    others = f" ({others_count:,} also for other reasons)" if others_count else ""
    return f"{count_of(len(group.jobs), 'job')} {action}{others}: {names}"


def _job(job: JobFinding) -> str:
    action = f"goes on as {code(job.goes_on_as)}" if job.goes_on_as else _action(job, job.causes)
    return f"{code(job.name)} ({job.type}): {action}"


def _action(job: JobFinding, causes: Sequence[Cause]) -> str:
    phrase = _ACTIONS[job.action]
    if job.action == "run again" and job.on_delete != "delete":
        phrase += " (the earlier run is cancelled)" if job.on_delete == "cancel" else " (the earlier run is kept)"
    if not causes:
        return phrase
    shown = "; ".join(map(because, causes[:MAX_CAUSES]))
    more = f"; and {len(causes) - MAX_CAUSES:,} more" if len(causes) > MAX_CAUSES else ""
    return f"{phrase}{',' if ',' in phrase else ''} because of {shown}{more}"


def _schedule(schedule: ScheduleFinding) -> str:
    cron, time_zone = code(schedule.cron), code(schedule.time_zone)
    times = f"{cron} in {time_zone}{', paused' if schedule.is_paused else ''}"
    times += "".join(f"; {quoted(text)}" for text in (schedule.next_times, schedule.cost) if text)
    if schedule.change != "changed":
        return f"{code(schedule.name)} is {schedule.change}: {times}"
    causes = "; ".join(map(because, schedule.causes[:MAX_CAUSES]))
    more = f"; and {len(schedule.causes) - MAX_CAUSES:,} more" if len(schedule.causes) > MAX_CAUSES else ""
    return f"{code(schedule.name)} ({times}) changes because of {causes}{more}"


_RULE_CHANGES = {"removed": "⚠️ removed", "loosened": "⚠️ loosened", "changed": "⚠️ changed"}


def _guardrails(review: Review) -> Iterator[str]:
    """Yield which guardrails change, what jobs break of those before or lift, and which costs to look at."""
    for each in review.rule_changes:
        verb = _RULE_CHANGES.get(each.change, each.change)
        yield f"{verb}: {code(each.rule)} {arrow(each.old_text, each.new_text)}"
    yield from (f"⚠️ breaks what held before: {quoted(each)}" for each in review.broken_rules)
    for lift in review.lifts:
        yield f"⚠️ refused by the rules on file, and allowed by {code(lift.job)}: {code(lift.place)} {code(lift.text)}"
    for growth in review.growths:
        amounts = ", ".join(f"{Money(old).digits} → {Money(new).digits} {unit}" for unit, old, new in growth.amounts)
        yield f"⚠️ {growth.factor:,.0f} times the cost of {code(growth.name) if growth.name else 'all jobs'}: {amounts}"
    if review.bill and (names := review.bill.without_timeout):
        yield f"⚠️ without a timeout, so up to seven days: {codes(names, _MAX_NAMES)}"


def _totals(review: Review, max_items: int) -> Iterator[str]:
    """Yield the lines with the totals of a review, which are those of Google Cloud, and what limits them."""
    if review.before or review.after:
        yield from _costs(review, review.before or _NO_TOTALS, review.after or _NO_TOTALS)
        yield from _quotas(review, review.before or _NO_TOTALS, review.after or _NO_TOTALS, max_items)
    before, after = review.monthly_before, review.monthly_after
    if before or after:
        yield ""
        change = f"{before or _NOTHING} → {after or _NOTHING}" if before != after else after
        yield f"All schedules that are not paused: at most {change}"
    if review.submissions and review.submissions.count and review.after:
        yield ""
        yield review.submissions.text
    if review.rules_digest:
        yield ""
        yield f"Digest of all guardrails that hold: {code(review.rules_digest)}"
    if review.near_limits:
        yield ""
        yield "**Guardrails that are nearly reached**"
        yield ""
        yield from (_near(each) for each in review.near_limits)


def _costs(review: Review, before: Totals, after: Totals) -> Iterator[str]:
    """Yield the table of costs, and what it lacks; nothing for a stack whose jobs all are of schedules."""
    if before == after == _NO_TOTALS:
        return
    yield ""
    yield f"| Cost by list price | {_before_title(review)} | after |"
    yield "|---|---:|---:|"
    for each in FIGURES:
        cells = [f"{ABOUT if side.nearest else ''}{each.show(side.sums[each.sum_name])}" for side in (before, after)]
        yield f"| {each.unit} | {' | '.join(cells)} |"
    if before.expected or after.expected:
        amounts = [Money(totals.expected).digits for totals in (before, after)]
        yield f"| {CURRENCY} expected by earlier runs | {' | '.join(amounts)} |"
    notes = [
        f"{codes(names, _MAX_NAMES)} {text}"
        for names, text in (
            (after.endless, "without an end"),
            (after.unpriced, "without a price on file"),
            (after.unknown, "not counted: the spec is known after the update"),
        )
        if names
    ]
    if after.nearest:
        notes.append(f"{ABOUT} counts {after.nearest}, the nearest region with one on file")
    if review.unlisted_count:
        notes.append(
            f"{count_of(review.unlisted_count, 'unchanged resource')} not counted: "
            "preview with `--show-sames` to count all jobs"
        )
    if notes:
        yield ""
        yield from (f"- {note}" for note in notes)


def _quotas(review: Review, before: Totals, after: Totals, max_items: int) -> Iterator[str]:
    metrics = sorted({*before.quota, *after.quota})
    if not metrics:
        return
    granted = review.granted_quota
    yield ""
    yield (
        f"| Quota of all jobs at once, `{METRIC_PREFIX}`… | {_before_title(review)} | after |"
        + " granted |" * bool(granted)
    )
    yield "|---|---:|---:|" + "---:|" * bool(granted)
    for metric in metrics[:max_items]:
        amounts = [f"{totals.quota.get(metric, 0):,}" for totals in (before, after)]
        amounts += [granted.get(metric, "?")] if granted else []
        yield f"| {code(metric)} | {' | '.join(amounts)} |"
    if len(metrics) > max_items:
        yield ""
        yield f"and {len(metrics) - max_items:,} more quotas"


def _before_title(review: Review) -> str:
    return "base" if review.has_base else "before"


def _near(near: Near) -> str:
    who = f", by {code(near.name)}" if near.name else ""
    return f"- `{near.rule}`: {near.text} ({near.value / near.limit:.0%}{who})"
