"""A review as Markdown for a comment of GitHub or GitLab: what matters first, then folded details, cut with a count."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from .data_losses import DataLoss
from .grant_changes import Grant
from .image_and_package_changes import ImageFinding
from .input_changes import shorten_in_the_middle
from .job_changes import Cause, JobFinding
from .job_groups import JobGroup, group_jobs_by_all_causes_or_commonest
from .markdown_code_spans import format_count_with_noun, join_code_spans_and_count_others, render_code_span
from .markdown_cost_and_quota import iterate_totals_lines
from .other_resource_changes import OtherChange
from .preview_review import Review
from .schedule_changes import ScheduleFinding

T = TypeVar("T")

MAX_LENGTH = 60_000
"""GitHub takes 65,536 characters in a comment."""
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
        text = "\n".join(_iterate_lines(review, limits)) + "\n"
        if len(text) <= MAX_LENGTH:
            return text
    # Only names and paths of thousands of characters come here, so whole lines are left out.
    kept, cut = "", "\n**Longer lines are left out: see the preview itself.**\n"
    for line in text.splitlines(keepends=True):
        kept += line if len(kept) + len(line) + len(cut) <= MAX_LENGTH else ""
    return kept + cut


def _iterate_lines(review: Review, limits: ListLimits) -> Iterator[str]:
    yield f"### Preview of {render_code_span(review.stack)}" if review.stack else "### Preview"
    yield ""
    if review.problems:
        yield f"**The preview failed: {format_count_with_noun(len(review.problems), 'problem')}.**"
    else:
        yield f"**{_render_summary(review)}**"
    yield from _iterate_section_lines("", review.problems, limits.items * 2, _render_message)
    yield from _iterate_section_lines("⚠️ Data that is lost", review.data_losses, limits.items, _render_data_loss)
    yield from _iterate_section_lines(
        "Images and packages", review.images, limits.items, partial(_render_image_or_package, limits.names)
    )
    groups = group_jobs_by_all_causes_or_commonest(review.jobs, limits.items)
    yield from _iterate_section_lines("Jobs", groups, limits.items, partial(_render_job_group, limits.names))
    yield from _iterate_section_lines("Schedules", review.schedules, limits.items, _render_schedule)
    yield from _iterate_section_lines("Grants", review.grants, limits.items, _render_grant)
    yield from iterate_totals_lines(review, limits.items)
    yield from _iterate_section_lines("Warnings", review.warnings, limits.items, _render_message)
    others = partial(_render_other_change, limits.names)
    yield from _iterate_folded_list_lines("job", review.jobs, limits.details, _render_job)
    yield from _iterate_folded_list_lines("other resource", review.other_changes, limits.details, others)
    pending, undone = " that the base makes too, not shown above", " of the base that are missing here"
    yield from _iterate_folded_list_lines("change", review.pending_in_base, limits.details, render_code_span, pending)
    yield from _iterate_folded_list_lines("change", review.only_in_base, limits.details, render_code_span, undone)


def _render_summary(review: Review) -> str:
    counts = {
        "image": sum(image.noun == "image" and image.change != "removed" for image in review.images),
        "package": sum(image.noun == "package" and image.change != "removed" for image in review.images),
    }
    parts = [f"{format_count_with_noun(count, noun)} to build" for noun, count in counts.items() if count]
    for action, phrase in _ACTIONS.items():
        if count := sum(job.action == action for job in review.jobs):
            parts.append(f"{format_count_with_noun(count, 'job')} {phrase.partition(',')[0]}")
    nouns = {"schedule": review.schedules, "grant": review.grants, "other resource": review.other_changes}
    parts += [f"{format_count_with_noun(len(found), noun)} to change" for noun, found in nouns.items() if found]
    return ", ".join(parts) + "." if parts else "Nothing changes."


def _iterate_section_lines(
    title: str, items: Sequence[T], max_count: int, render_item: Callable[[T], str]
) -> Iterator[str]:
    if not items:
        return
    yield ""
    if title:
        yield f"**{title}**"
        yield ""
    yield from (f"- {render_item(item)}" for item in items[:max_count])
    if len(items) > max_count:
        yield f"- and {len(items) - max_count:,} more"


def _iterate_folded_list_lines(
    noun: str, items: Sequence[T], max_count: int, render_item: Callable[[T], str], addition: str = ""
) -> Iterator[str]:
    if not items:
        return
    yield ""
    yield f"<details><summary>{format_count_with_noun(len(items), noun)}{addition}</summary>"
    yield from _iterate_section_lines("", items, max_count, render_item)
    yield ""
    yield "</details>"


def _render_message(message: str) -> str:
    return render_code_span(shorten_in_the_middle(message, MAX_MESSAGE_LENGTH))


def _render_data_loss(loss: DataLoss) -> str:
    verb = "replaced" if loss.action == "replace" else "deleted"
    resource = f"{render_code_span(loss.type)} {render_code_span(loss.name)}"
    return f"{render_code_span(loss.id)} is {verb}, and loses its {loss.data} ({resource})"


def _render_grant(grant: Grant) -> str:
    role, member, target = map(render_code_span, (grant.role, grant.member, grant.target))
    return f"{'granted' if grant.is_new else 'revoked'}: {role} for {member} on {target}"


def _render_other_change(max_names: int, change: OtherChange) -> str:
    fields = f": {join_code_spans_and_count_others(change.fields, max_names)}" if change.fields else ""
    return f"{render_code_span(change.op)} {render_code_span(change.type)} {render_code_span(change.name)}{fields}"


def _render_image_or_package(max_names: int, image: ImageFinding) -> str:
    name = f"{image.noun} {render_code_span(image.name)}"
    if image.change != "changed":
        return f"{name} is {'new' if image.change == 'new' else 'removed from the stack'}"
    reasons = [
        f"{join_code_spans_and_count_others(files, max_names)} {verb}"
        for files, verb in (
            (image.changed_files, "changed"),
            (image.added_files, "added"),
            (image.removed_files, "removed"),
        )
        if files
    ]
    reasons += [
        f"{render_code_span(change.path_text)} {_render_value_change(change.old_text, change.new_text)}"
        for change in image.other_changes[:max_names]
    ]
    if image.has_unlisted_files:
        reasons.append("its files (more than 200, so none is listed)")
    return f"{name} is rebuilt: {'; '.join(reasons) or 'by request, as by `--replace`'}"


def _render_job_group(max_names: int, group: JobGroup) -> str:
    names = join_code_spans_and_count_others([job.name for job in group.jobs], max_names)
    action = _render_action_and_causes(group.jobs[0], group.shared_causes)
    others_count = group.count_of_jobs_with_unshared_causes
    others = f" ({others_count:,} also for other reasons)" if others_count else ""
    return f"{format_count_with_noun(len(group.jobs), 'job')} {action}{others}: {names}"


def _render_job(job: JobFinding) -> str:
    return f"{render_code_span(job.name)} ({job.type}): {_render_action_and_causes(job, job.causes)}"


def _render_action_and_causes(job: JobFinding, causes: Sequence[Cause]) -> str:
    phrase = _ACTIONS[job.action]
    if job.action == "run again" and job.on_delete != "delete":
        phrase += " (the earlier run is cancelled)" if job.on_delete == "cancel" else " (the earlier run is kept)"
    if not causes:
        return phrase
    shown = "; ".join(map(_render_cause, causes[:_MAX_CAUSES]))
    more = f"; and {len(causes) - _MAX_CAUSES:,} more" if len(causes) > _MAX_CAUSES else ""
    return f"{phrase} because of {shown}{more}"


def _render_schedule(schedule: ScheduleFinding) -> str:
    cron, time_zone = render_code_span(schedule.cron), render_code_span(schedule.time_zone)
    times = f"{cron} in {time_zone}{', paused' if schedule.is_paused else ''}"
    times += "".join(f"; {_render_message(text)}" for text in (schedule.next_times, schedule.cost) if text)
    if schedule.change != "changed":
        return f"{render_code_span(schedule.name)} is {schedule.change}: {times}"
    causes = "; ".join(map(_render_cause, schedule.causes[:_MAX_CAUSES]))
    more = f"; and {len(schedule.causes) - _MAX_CAUSES:,} more" if len(schedule.causes) > _MAX_CAUSES else ""
    return f"{render_code_span(schedule.name)} ({times}) changes because of {causes}{more}"


def _render_cause(cause: Cause) -> str:
    if cause.kind == "request":
        return "a request, as by `--replace`, or the provider's"
    noun = {"job": "upstream job ", "field": ""}.get(cause.kind, f"{cause.kind} ")
    has_values = cause.old_text is not None or cause.new_text is not None
    values = f" {_render_value_change(cause.old_text, cause.new_text)}" if has_values else ""
    return f"{noun}{render_code_span(cause.name)}{values}"


def _render_value_change(old_text: str | None, new_text: str | None) -> str:
    old, new = (render_code_span(text) if text is not None else "(none)" for text in (old_text, new_text))
    return f"{old} → {new}"
