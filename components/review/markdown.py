"""A review as Markdown for a comment of GitHub or GitLab: what matters first, then folded details, cut with a count."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from vertex_api.errors import visible
from vertex_api.estimates.prices import ABOUT, CURRENCY, Money
from vertex_api.estimates.quota import METRIC_PREFIX
from vertex_api.names import either

from ..plan.guardrails import FIGURES, Near
from ..plan.plan import PERSISTENT_RESOURCE, Totals
from ..rehearsals import Drill, size
from .changes import Cause, ImageFinding, JobFinding, ScheduleFinding, shorten
from .rehearsed import MetricFinding, Rehearsed, RehearsedJob, Verdict
from .resources import DataLoss, Grant, OtherChange
from .review import MAX_LENGTH, Review

T = TypeVar("T")

MAX_MESSAGE_LENGTH = 500
_ACTIONS = {
    "submit": "to submit",
    "run again": "to run again",
    "adopt": "to adopt",
    "update": "to update in place, without a new run",
    "delete": "to delete",
    "cancel": "to cancel, and remove from the stack",
    "keep": "to keep, and remove from the stack",
}
_MAX_CAUSES = 3
_MAX_NAMES = 5
_MAX_ANSWERS, _MAX_REASON_LENGTH = 3, 160
_VERDICTS: Mapping[Verdict, str] = {"worse": "⚠️ worse", "better": "better", "": "changed"}
_JUDGED: Mapping[Verdict, str] = {"worse": " (worse)", "better": " (better)"}
_SPOT = "⚠️ on Spot machines, and begins anew when they are taken away"
_NO_TOTALS = Totals()
_NOTHING = "nothing"


@dataclass(frozen=True)
class ListLimits:
    """How many items a list has at most: of each section, of names in an item, and of each folded list."""

    items: int
    names: int
    details: int


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
        yield from _answers(review, review.rehearsal)
    if not review.problems:
        yield from _bill(review)
    yield ""
    if review.problems:
        yield f"**The preview failed: {count_of(len(review.problems), 'problem')}.**"
    else:
        yield f"**{_summary(review)}**"
    yield from _section("", review.problems, limits.items * 2, _message)
    yield from _section("⚠️ Data that is lost", review.data_losses, limits.items, _data_loss)
    if review.rehearsal:
        yield from _rehearsal(review.rehearsal, review.stack, limits)
    yield from _section("Guardrails", [*_guardrails(review)], limits.items * 2, str)
    yield from _section("Images and packages", review.images, limits.items, partial(_image, limits.names))
    groups = group_jobs(review.jobs, limits.items)
    yield from _section("Jobs", groups, limits.items, partial(_job_group, limits.names))
    yield from _section("Schedules", review.schedules, limits.items, _schedule)
    yield from _section("Grants", review.grants, limits.items, _grant)
    earlier = [*review.earlier_runs.items()]
    yield from _section("Earlier runs", earlier, limits.items, lambda each: f"{code(each[0])}: {each[1]}")
    yield from _totals(review, limits.items)
    yield from _section("Warnings", review.warnings, limits.items, _message)
    others = partial(_other_change, limits.names)
    yield from _folded("job", review.jobs, limits.details, _job)
    yield from _folded("other resource", review.other_changes, limits.details, others)
    pending, undone = " that the base makes too, not shown above", " of the base that are missing here"
    yield from _folded("change", review.pending_in_base, limits.details, code, pending)
    yield from _folded("change", review.only_in_base, limits.details, code, undone)


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


def _answers(review: Review, rehearsal: Rehearsed) -> Iterator[str]:
    """Yield what a reviewer asks first, on three lines."""
    yield f"- **Runs**: {_runs(rehearsal)}"
    yield f"- **Model**: {_models(rehearsal)}"
    yield f"- **Data**: {_data(review, rehearsal)}"


def _runs(rehearsal: Rehearsed) -> str:
    """Return whether the jobs run, why the first one does not, and what is not known."""
    jobs = rehearsal.jobs
    failed, skipped = ([job for job in jobs if job.outcome == outcome] for outcome in ("failed", "skipped"))
    count = len(jobs) - len(skipped)
    answer = f"yes, {count_of(count, 'rehearsed job')}" if count else "not known, as no job was rehearsed"
    if failed:
        also = ", in the base too" if all(job.outcome_before == "failed" for job in failed) else ""
        names = codes([job.name for job in failed], _MAX_ANSWERS)
        answer = f"❌ no, {len(failed):,} of {count_of(count, 'job')} failed{also}: {names}{_reason(failed[0])}"
        if len(failed[0].reason) > 1:
            answer += f", and its log ends with {code(shorten(failed[0].reason[-1].strip(), _MAX_REASON_LENGTH))}"
    notes = (
        ("⚠️ on Spot machines and begins anew when they are taken away:", [job.name for job in jobs if job.loses_work]),
        ("skipped:", [job.name for job in skipped]),
        ("not rehearsed:", rehearsal.not_rehearsed),
    )
    return "; ".join([answer, *(f"{text} {codes(names, _MAX_ANSWERS)}" for text, names in notes if names)])


def _reason(job: RehearsedJob) -> str:
    return f": {code(shorten(job.reason[0], _MAX_REASON_LENGTH))}" if job.reason else ""


def _models(rehearsal: Rehearsed) -> str:
    """Return which metrics are lost, worse, better, or others than in the base: the first of each."""
    jobs = rehearsal.jobs
    lost: dict[MetricFinding, list[str]] = {}
    for job in jobs:
        for metric in job.unreported:
            lost.setdefault(replace(metric, old=None), []).append(job.name)
    texts = [f"{codes(names, _MAX_ANSWERS)} {_lost(metric, names)}" for metric, names in lost.items()]
    parts = [f"❌ {_first(texts)}"] if texts else []
    for verdict, text in _VERDICTS.items():
        judged = [f"{code(job.name)} {_metric(metric)}" for job in jobs for metric in job.judged(verdict)]
        parts += [f"{text}: {_first(judged)}"] if judged else []
    if parts:
        return "; ".join(parts)
    if same := sum(len(job.judged("same")) for job in jobs):
        return f"as in the base, by {count_of(same, 'metric')}"
    reported = [f"{code(job.name)} {_metric(metric)}" for job in jobs for metric in job.judged("new")]
    return f"not compared: {_first(reported)}" if reported else "not known, as no metric is reported"


def _first(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _MAX_ANSWERS:,} more" if len(texts) > _MAX_ANSWERS else ""
    return ", ".join(texts[:_MAX_ANSWERS]) + more


def _lost(metric: MetricFinding, names: Sequence[str]) -> str:
    """Return that the jobs of these names do not report a metric, and which searches need it."""
    one = len(names) == 1
    verb = f"no longer report{'s' * one}" if metric.verdict == "lost" else f"{'does' if one else 'do'} not report"
    searches, needs = metric.needed_by, f"need{'s' * (len(metric.needed_by) == 1)}"
    needed = "it" if [*searches] == [*names] else codes(searches, _MAX_ANSWERS)
    return f"{verb} {code(metric.name)}{f', which {needed} {needs}' if searches else ''}"


def _metric(metric: MetricFinding) -> str:
    old, new = metric.texts
    return f"{code(metric.name)} {new if old in ('', new) else f'{old} → {new}'}"


def _data(review: Review, rehearsal: Rehearsed) -> str:
    """Return which data changes, which inputs were missing, and which buckets, hosts and variables are new."""
    causes = dict.fromkeys(cause for job in review.jobs for cause in job.causes if cause.kind == "data")
    parts = [_first([_cause(cause).removeprefix("data ") for cause in causes])] if causes else []
    if absent := list(dict.fromkeys(uri for job in rehearsal.jobs for uri in job.missing_inputs)):
        parts.append(f"⚠️ not found: {codes(absent, _MAX_ANSWERS)}")
    if new := sorted({new for job in rehearsal.jobs for new in job.new}):
        parts.append(_first([f"new {noun} {code(name)}" for noun, name in new]))
    elif not parts and any(job.has_base for job in rehearsal.jobs):
        parts.append(f"no new {either(rehearsal.recorded)}")
    return "; ".join(parts) or "not compared"


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
        ran += f": {Money(bill.ceiling)} at most"
        if bill.expected_count:
            of_which = f" for {bill.expected_count:,} of them" if bill.expected_count < priced else ""
            ran += f", {Money(bill.expected)} expected{of_which} by earlier runs"
        else:
            ran += ", expected unknown: no earlier runs"
    parts = [ran]
    parts += [f"no price on file for {codes(bill.unpriced, _MAX_ANSWERS)}"] if bill.unpriced else []
    parts += [f"not known before the update: {codes(bill.unknown, _MAX_ANSWERS)}"] if bill.unknown else []
    if bill.machines:
        old, new = map(Money, bill.machines)
        parts.append(f"`{PERSISTENT_RESOURCE}` {old.digits} → {new} an hour, without an end")
    if (old_month := review.monthly_before or _NOTHING) != (month := review.monthly_after or _NOTHING):
        parts.append(f"schedules {old_month} → {month} at most")
    yield f"- **Cost**: {'; '.join(parts)}"


def _rehearsal(rehearsal: Rehearsed, stack: str, limits: ListLimits) -> Iterator[str]:
    """Yield a line for each job, or for those that did alike if there are many, and the last lines of failed ones."""
    other = rehearsal.stack if rehearsal.stack != stack else ""
    facts = (" of", other), (" at", rehearsal.commit[:10]), (" against", rehearsal.base)
    title = "Rehearsal" + "".join(f"{word} {code(fact)}" for word, fact in facts if fact)
    jobs, render = rehearsal.jobs, partial(_rehearsed, limits.names)
    groups: dict[Hashable, list[RehearsedJob]] = {}
    for job in jobs:
        groups.setdefault((job.outcome, job.outcome_before, job.reason[:1], *_signs(job)), []).append(job)
    is_long = len(jobs) > limits.items
    if is_long:
        yield from _section(title, [*groups.values()], limits.items, partial(_rehearsed_alike, limits.names))
    else:
        yield from _section(title, jobs, limits.items, render)
    failed = [job for job in jobs if job.outcome == "failed" and len(job.reason) > 1]
    yield from _folded("failed job", failed, limits.names, _last_lines, ", with last lines")
    if is_long:
        yield from _folded("rehearsed job", jobs, limits.details, render)


def _rehearsed(max_names: int, job: RehearsedJob) -> str:
    """Return what a job did, as one line."""
    before = job.seconds_before if job.outcome == job.outcome_before else None
    parts = [_outcome(job, _change(before, job.seconds)), *_unreported(job)]
    if job.loses_work:
        parts.append(_SPOT)
    if job.peak_memory:
        memory = f" of {job.memory / 2**30:.3g}" if job.memory else ""
        parts.append(f"peak memory {job.peak_memory / 2**30:.1f}{memory} GiB")
    reported = [metric for metric in job.metrics if metric.new is not None]
    parts += [f"{_metric(each)}{_JUDGED.get(each.verdict, '')}" for each in reported[:max_names]]
    if len(reported) > max_names:
        parts.append(f"{len(reported) - max_names:,} more metrics")
    if job.file_count:
        parts.append(
            f"wrote {codes(job.folders, _MAX_CAUSES)} ({count_of(job.file_count, 'file')}, {size(job.file_bytes)})"
        )
    parts += [f"did not find {codes(job.missing_inputs, max_names)}"] if job.missing_inputs else []
    parts += [f"new {noun} {code(name)}" for noun, name in job.new[:max_names]]
    parts += [_drill(drill) for drill in job.drills]
    return f"{code(job.name)}{f' ({job.type})' if job.type else ''} {', '.join(parts)}"


def _unreported(job: RehearsedJob) -> list[str]:
    return [_lost(metric, [job.name]) for metric in job.unreported]


def _outcome(job: RehearsedJob, time: str) -> str:
    if job.outcome == "succeeded":
        return f"ran {time}" if time else "succeeded"
    if job.outcome == "skipped":
        return f"skipped{_reason(job)}"
    also = ", as in the base," if job.outcome_before == "failed" else ""
    return f"**failed**{also}{f' after {time}' if time else ''}{_reason(job)}"


def _change(before: float | None, now: float | None, arrow: str = " → ") -> str:
    """Return seconds, beside those before them if they are others; "" if there are none."""
    texts = ["under 1 s" if each < 1 else f"{each:,.0f} s" for each in (before, now) if each is not None]
    return "" if now is None else arrow.join(dict.fromkeys(texts))


def _drill(drill: Drill) -> str:
    """Return what a job did after a fault, and why that is not known."""
    resumed, reason = drill.get("resumed"), drill.get("reason", "")
    text = {None: "is not known to go on", False: "begins anew", True: "goes on"}[resumed]
    text += f" after {code(drill['fault'])}"
    if resumed and "fromStep" in drill:
        text += f" from step {drill['fromStep']:,}"
    if "lostSteps" in drill:
        text += f" ({count_of(drill['lostSteps'], 'step')} lost)"
    text += "" if drill.get("sameEnd", True) else " and ends elsewhere"
    return f"{text}: {code(shorten(reason, _MAX_REASON_LENGTH))}" if reason and not resumed else text


def _rehearsed_alike(max_names: int, jobs: Sequence[RehearsedJob]) -> str:
    times = [job.seconds for job in jobs if job.seconds is not None]
    outcome = _outcome(jobs[0], _change(min(times), max(times), " to ") if times else "")
    did = ", ".join([outcome, *_signs(jobs[0])])
    return f"{count_of(len(jobs), 'job')} {did}: {codes([job.name for job in jobs], max_names)}"


def _signs(job: RehearsedJob) -> tuple[str, ...]:
    """Return what may be alike for many jobs: no measures."""
    signs = _unreported(job)
    signs += [_SPOT] if job.loses_work else []
    signs += [f"did not find {codes(job.missing_inputs, _MAX_ANSWERS)}"] if job.missing_inputs else []
    for verdict, text in _JUDGED.items():
        signs += [f"{code(metric.name)}{text}" for metric in job.judged(verdict)]
    return (*signs, *(f"new {noun} {code(name)}" for noun, name in job.new))


def _last_lines(job: RehearsedJob) -> str:
    """Return what is known of a failure, in a fenced block that nothing in it ends."""
    lines = [visible(line) for line in job.reason]
    fence = "`" * max(3, *(len(run) + 1 for line in lines for run in re.findall("`+", line) or [""]))
    return "\n  ".join([f"{code(job.name)}:", fence, *lines, fence])


def _section(title: str, items: Sequence[T], max_count: int, render_item: Callable[[T], str]) -> Iterator[str]:
    if not items:
        return
    yield ""
    if title:
        yield f"**{title}**"
        yield ""
    yield from (f"- {render_item(item)}" for item in items[:max_count])
    if len(items) > max_count:
        yield f"- and {len(items) - max_count:,} more"


def _folded(
    noun: str, items: Sequence[T], max_count: int, render_item: Callable[[T], str], addition: str = ""
) -> Iterator[str]:
    if not items:
        return
    yield ""
    yield f"<details><summary>{count_of(len(items), noun)}{addition}</summary>"
    yield from _section("", items, max_count, render_item)
    yield ""
    yield "</details>"


def _message(message: str) -> str:
    return code(shorten(message, MAX_MESSAGE_LENGTH))


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
        f"{code(change.path_text)} {_values(change.old_text, change.new_text)}"
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
    return f"{code(job.name)} ({job.type}): {_action(job, job.causes)}"


def _action(job: JobFinding, causes: Sequence[Cause]) -> str:
    phrase = _ACTIONS[job.action]
    if job.action == "run again" and job.on_delete != "delete":
        phrase += " (the earlier run is cancelled)" if job.on_delete == "cancel" else " (the earlier run is kept)"
    if not causes:
        return phrase
    shown = "; ".join(map(_cause, causes[:_MAX_CAUSES]))
    more = f"; and {len(causes) - _MAX_CAUSES:,} more" if len(causes) > _MAX_CAUSES else ""
    return f"{phrase} because of {shown}{more}"


def _schedule(schedule: ScheduleFinding) -> str:
    cron, time_zone = code(schedule.cron), code(schedule.time_zone)
    times = f"{cron} in {time_zone}{', paused' if schedule.is_paused else ''}"
    times += "".join(f"; {_message(text)}" for text in (schedule.next_times, schedule.cost) if text)
    if schedule.change != "changed":
        return f"{code(schedule.name)} is {schedule.change}: {times}"
    causes = "; ".join(map(_cause, schedule.causes[:_MAX_CAUSES]))
    more = f"; and {len(schedule.causes) - _MAX_CAUSES:,} more" if len(schedule.causes) > _MAX_CAUSES else ""
    return f"{code(schedule.name)} ({times}) changes because of {causes}{more}"


def _cause(cause: Cause) -> str:
    if cause.kind == "request":
        return "a request, as by `--replace`, or the provider's"
    if cause.kind == "data":
        return f"data {code(cause.name)}: {code(cause.new_text or '')}"
    noun = {"job": "upstream job ", "field": ""}.get(cause.kind, f"{cause.kind} ")
    has_values = cause.old_text is not None or cause.new_text is not None
    values = f" {_values(cause.old_text, cause.new_text)}" if has_values else ""
    return f"{noun}{code(cause.name)}{values}"


_RULE_CHANGES = {"removed": "⚠️ removed", "loosened": "⚠️ loosened", "changed": "⚠️ changed"}


def _guardrails(review: Review) -> Iterator[str]:
    """Yield which guardrails change, what the jobs break of those before, and which costs to look at."""
    for each in review.rule_changes:
        verb = _RULE_CHANGES.get(each.change, each.change)
        yield f"{verb}: {code(each.rule)} {_values(each.old_text, each.new_text)}"
    yield from (f"⚠️ breaks what held before: {_message(each)}" for each in review.broken_rules)
    for growth in review.growths:
        amounts = ", ".join(f"{Money(old).digits} → {Money(new).digits} {unit}" for unit, old, new in growth.amounts)
        yield f"⚠️ {growth.factor:,.0f} times the cost of {code(growth.name) if growth.name else 'all jobs'}: {amounts}"
    if review.bill and (names := review.bill.without_timeout):
        yield f"⚠️ without a timeout, so up to seven days: {codes(names, _MAX_NAMES)}"


def _values(old_text: str | None, new_text: str | None) -> str:
    old, new = (code(text) if text is not None else "(none)" for text in (old_text, new_text))
    return f"{old} → {new}"


def _totals(review: Review, max_items: int) -> Iterator[str]:
    """Yield the lines with the totals of a review, none if it has no jobs for Google Cloud."""
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


def code(text: str) -> str:
    """Return a text as a code span on one line, whatever is in it."""
    shown = visible(text)
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    is_padded = not shown.strip() or shown[0] in "` " or shown[-1] in "` "
    padding = " " if is_padded else ""
    return f"{fence}{padding}{shown or '(empty)'}{padding}{fence}"


def codes(texts: Sequence[str], max_count: int) -> str:
    """Return texts as code spans with commas, of which those beyond `max_count` are counted only."""
    shown = ", ".join(map(code, texts[:max_count]))
    hidden_count = len(texts) - max_count
    return f"{shown} and {hidden_count:,} more" if hidden_count > 0 else shown


def count_of(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 job` and `1,000 jobs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
