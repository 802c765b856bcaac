"""What a rehearsal adds to a review: the answers that a reviewer asks for first, and what each job did."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from vertex_api.errors import visible
from vertex_api.names import either

from ..rehearsal_file import Drill, size
from .changes import shorten
from .pieces import MAX_ANSWERS, MAX_CAUSES, ListLimits, because, code, codes, count_of, folded, section, some
from .rehearsed import MetricFinding, Rehearsed, RehearsedJob, Verdict
from .review import Review

_MAX_REASON_LENGTH = 160
_VERDICTS: Mapping[Verdict, str] = {"worse": "⚠️ worse", "better": "better", "": "changed"}
_JUDGED: Mapping[Verdict, str] = {"worse": " (worse)", "better": " (better)"}
_SPOT = "⚠️ on Spot machines, and begins anew when they are taken away"


def answers(review: Review, rehearsal: Rehearsed) -> Iterator[str]:
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
        names = codes([job.name for job in failed], MAX_ANSWERS)
        answer = f"❌ no, {len(failed):,} of {count_of(count, 'job')} failed{also}: {names}{_reason(failed[0])}"
        if len(failed[0].reason) > 1:
            answer += f", and its log ends with {code(shorten(failed[0].reason[-1].strip(), _MAX_REASON_LENGTH))}"
    notes = (
        ("⚠️ on Spot machines and begins anew when they are taken away:", [job.name for job in jobs if job.loses_work]),
        ("skipped:", [job.name for job in skipped]),
        ("not rehearsed:", rehearsal.not_rehearsed),
    )
    return "; ".join([answer, *(f"{text} {codes(names, MAX_ANSWERS)}" for text, names in notes if names)])


def _reason(job: RehearsedJob) -> str:
    return f": {code(shorten(job.reason[0], _MAX_REASON_LENGTH))}" if job.reason else ""


def _models(rehearsal: Rehearsed) -> str:
    """Return which metrics are lost, worse, better, or others than in the base: the first of each."""
    jobs = rehearsal.jobs
    lost: dict[MetricFinding, list[str]] = {}
    for job in jobs:
        for metric in job.unreported:
            lost.setdefault(replace(metric, old=None), []).append(job.name)
    texts = [f"{codes(names, MAX_ANSWERS)} {_lost(metric, names)}" for metric, names in lost.items()]
    parts = [f"❌ {some(texts)}"] if texts else []
    for verdict, text in _VERDICTS.items():
        judged = [f"{code(job.name)} {_metric(metric)}" for job in jobs for metric in job.judged(verdict)]
        parts += [f"{text}: {some(judged)}"] if judged else []
    if parts:
        return "; ".join(parts)
    if same := sum(len(job.judged("same")) for job in jobs):
        return f"as in the base, by {count_of(same, 'metric')}"
    reported = [f"{code(job.name)} {_metric(metric)}" for job in jobs for metric in job.judged("new")]
    return f"not compared: {some(reported)}" if reported else "not known, as no metric is reported"


def _lost(metric: MetricFinding, names: Sequence[str]) -> str:
    """Return that the jobs of these names do not report a metric, and which searches need it."""
    one = len(names) == 1
    verb = f"no longer report{'s' * one}" if metric.verdict == "lost" else f"{'does' if one else 'do'} not report"
    searches, needs = metric.needed_by, f"need{'s' * (len(metric.needed_by) == 1)}"
    needed = "it" if [*searches] == [*names] else codes(searches, MAX_ANSWERS)
    return f"{verb} {code(metric.name)}{f', which {needed} {needs}' if searches else ''}"


def _metric(metric: MetricFinding) -> str:
    old, new = metric.texts
    if old in ("", new):
        return f"{code(metric.name)} {new}"
    return f"{code(metric.name)} {old} → {new}{' with other parameters' if metric.has_other_parameters else ''}"


def _data(review: Review, rehearsal: Rehearsed) -> str:
    """Return which data changes, what was missing or not granted, and what jobs use anew."""
    causes = dict.fromkeys(cause for job in review.jobs for cause in job.causes if cause.kind == "data")
    parts = [some([because(cause).removeprefix("data ") for cause in causes])] if causes else []
    if absent := list(dict.fromkeys(uri for job in rehearsal.jobs for uri in job.missing_inputs)):
        parts.append(f"⚠️ not found: {codes(absent, MAX_ANSWERS)}")
    if lacking := list(dict.fromkeys(each for job in rehearsal.jobs for each in job.lacking)):
        parts.append(f"⚠️ not granted: {codes(lacking, MAX_ANSWERS)}")
    if new := sorted({new for job in rehearsal.jobs for new in job.new}):
        parts.append(some([f"new {noun} {code(name)}" for noun, name in new]))
    elif not parts and any(job.has_base for job in rehearsal.jobs):
        parts.append(f"no new {either(rehearsal.recorded)}")
    return "; ".join(parts) or "not compared"


def results(rehearsal: Rehearsed, stack: str, limits: ListLimits) -> Iterator[str]:
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
        yield from section(title, [*groups.values()], limits.items, partial(_rehearsed_alike, limits.names))
    else:
        yield from section(title, jobs, limits.items, render)
    failed = [job for job in jobs if job.outcome == "failed" and len(job.reason) > 1]
    yield from folded("failed job", failed, limits.names, _last_lines, ", with last lines")
    if is_long:
        yield from folded("rehearsed job", jobs, limits.details, render)


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
            f"wrote {codes(job.folders, MAX_CAUSES)} ({count_of(job.file_count, 'file')}, {size(job.file_bytes)})"
        )
    parts += [f"did not find {codes(job.missing_inputs, max_names)}"] if job.missing_inputs else []
    parts += [f"is not granted {codes(job.lacking, max_names)}"] if job.lacking else []
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
    signs += [f"did not find {codes(job.missing_inputs, MAX_ANSWERS)}"] if job.missing_inputs else []
    signs += [f"is not granted {codes(job.lacking, MAX_ANSWERS)}"] if job.lacking else []
    for verdict, text in _JUDGED.items():
        signs += [f"{code(metric.name)}{text}" for metric in job.judged(verdict)]
    return (*signs, *(f"new {noun} {code(name)}" for noun, name in job.new))


def _last_lines(job: RehearsedJob) -> str:
    """Return what is known of a failure, in a fenced block that nothing in it ends."""
    lines = [visible(line) for line in job.reason]
    fence = "`" * max(3, *(len(run) + 1 for line in lines for run in re.findall("`+", line) or [""]))
    return "\n  ".join([f"{code(job.name)}:", fence, *lines, fence])
