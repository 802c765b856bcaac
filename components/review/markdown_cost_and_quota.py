"""The part of a review that counts: cost, quota, submissions and guardrails that are nearly reached."""

from collections.abc import Iterator

from vertex_api.estimates.quota import METRIC_PREFIX

from ..plan.guardrails import FIGURES, Near
from ..plan.plan import Totals
from ..runtime.pacing import total_line
from .markdown_code_spans import format_count_with_noun, join_code_spans_and_count_others, render_code_span
from .preview_review import Review
from .stack_cost_and_quota import Submissions

_NO_TOTALS = Totals()
_MAX_NAMES = 5


def iterate_totals_lines(review: Review, max_items: int) -> Iterator[str]:
    """Yield the lines with the totals of a review, none if it has no jobs for Google Cloud."""
    if review.before or review.after:
        yield from _iterate_cost_lines(review, review.before or _NO_TOTALS, review.after or _NO_TOTALS)
        yield from _iterate_quota_lines(review, review.before or _NO_TOTALS, review.after or _NO_TOTALS, max_items)
    if review.submissions and review.submissions.count and review.after:
        yield ""
        yield render_submission_count_with_duration_if_paced(review.submissions)
    if review.near_limits:
        yield ""
        yield "**Guardrails that are nearly reached**"
        yield ""
        yield from (_render_nearly_reached_guardrail_bullet(each) for each in review.near_limits)


def render_submission_count_with_duration_if_paced(submissions: Submissions) -> str:
    """Return how many submissions an update takes, and for how long if they have to be paced."""
    if submissions.per_minute and submissions.count > submissions.per_minute:
        return total_line(submissions.count, submissions.per_minute)
    return format_count_with_noun(submissions.count, "submission")


def _iterate_cost_lines(review: Review, before: Totals, after: Totals) -> Iterator[str]:
    yield ""
    yield f"| Cost by list price | {_get_before_column_title(review)} | after |"
    yield "|---|---:|---:|"
    for each in FIGURES:
        yield f"| {each.unit} | {before.sums[each.sum_name].digits} | {after.sums[each.sum_name].digits} |"
    notes = [
        f"{join_code_spans_and_count_others(names, _MAX_NAMES)} {text}"
        for names, text in (
            (after.endless, "without an end"),
            (after.unpriced, "without a price on file"),
            (after.unknown, "not counted: the spec is known after the update"),
        )
        if names
    ]
    if review.unlisted_count:
        notes.append(
            f"{format_count_with_noun(review.unlisted_count, 'unchanged resource')} not counted: "
            "preview with `--show-sames` to count all jobs"
        )
    if notes:
        yield ""
        yield from (f"- {note}" for note in notes)


def _iterate_quota_lines(review: Review, before: Totals, after: Totals, max_items: int) -> Iterator[str]:
    metrics = sorted({*before.quota, *after.quota})
    if not metrics:
        return
    granted = review.granted_quota
    yield ""
    yield (
        f"| Quota of all jobs at once, `{METRIC_PREFIX}`… | {_get_before_column_title(review)} | after |"
        + " granted |" * bool(granted)
    )
    yield "|---|---:|---:|" + "---:|" * bool(granted)
    for metric in metrics[:max_items]:
        amounts = [f"{totals.quota.get(metric, 0):,}" for totals in (before, after)]
        amounts += [granted.get(metric, "?")] if granted else []
        yield f"| {render_code_span(metric)} | {' | '.join(amounts)} |"
    if len(metrics) > max_items:
        yield ""
        yield f"and {len(metrics) - max_items:,} more quotas"


def _get_before_column_title(review: Review) -> str:
    return "base" if review.has_base else "before"


def _render_nearly_reached_guardrail_bullet(near: Near) -> str:
    who = f", by {render_code_span(near.name)}" if near.name else ""
    return f"- `{near.rule}`: {near.text} ({near.value / near.limit:.0%}{who})"
