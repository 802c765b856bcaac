"""The work of a Completion: it waits for jobs, says what happens meanwhile, and has their results.

Jobs are polled by one list call per collection. A job that fails is reported with the reason.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from math import inf
from types import MappingProxyType
from typing import Any

from pulumi import dynamic

from vertex_api.errors import Interrupted, PermissionDenied, RateLimited, Unavailable, VertexError
from vertex_api.job import TUNING_JOB
from vertex_api.names import KINDS, SUCCEEDED_STATES, TERMINAL_STATES, JobJson, ResourceName, join_names, short_state
from vertex_api.scalars import to_seconds
from vertex_api.schedules import NAME_LABEL
from vertex_api.studies import count_ended, find_best, objectives_of

from ..errors import TrainingFailed
from ..plan.job_rules import MARK_LABEL
from ..runtime import engine, refusals, target
from ..runtime.resource import Provider
from . import covering, failures, lookup, metrics, runs
from .failures import MAX_NAMES, WAIT_REASONS, age_in_minutes, wait_reason
from .identity import stack_filter

HEARTBEAT_SECONDS = 60.0
_SHORTEST_LOOK, _LONGEST_LOOK = 1.0, 15.0
"""Jobs that fail of one reason, such as a module that their image lacks, fail within a tenth of the time."""
MAX_NOTED = 20
"""Of how many jobs that have succeeded more is said than that: many that end at once would flood the screen."""
UNDECLARED_MESSAGE = (
    "still running, though no longer declared: {}. Pulumi deletes such resources last, and not after a failure: "
    "`pulumi up --continue-on-error` deletes them all the same"
)


class CompletionProvider(Provider):
    """Waits while it is created or updated. If it fails the jobs stay recorded, and the next run waits again."""

    input_names = ("owner", "parent", "jobs", "deadlines")

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult("completion", self._outputs(props, {}))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Wait for the jobs as they are now. What those took that are the same is not told again."""
        earlier, ids = olds.get("results") or {}, olds.get("jobs") or {}
        same = {name: earlier[name] for name, id_ in news["jobs"].items() if name in earlier and ids.get(name) == id_}
        return dynamic.UpdateResult(self._outputs(news, same))

    def _outputs(self, props: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
        deadlines = {name: to_seconds(deadline) for name, deadline in (props.get("deadlines") or {}).items()}
        jobs = {name: id_ for name, id_ in props["jobs"].items() if id_ is not None}
        try:
            results = wait(props["parent"], props["owner"], jobs, deadlines, earlier)
        except TrainingFailed as error:
            with suppress(VertexError):  # the failure to report is the training's
                if others := _others(props["parent"], props["owner"], jobs):
                    raise TrainingFailed("\n".join([str(error), *others])) from error
            raise
        return {**props, "results": results}

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        results = lookup.results(props["parent"], props["owner"], props["jobs"])
        return self.read_result(id_, props, results=metrics.keep(results, props.get("results") or {}))


def _others(parent: str, stack: str, waited: Iterable[str]) -> list[str]:
    """Return what is to be said of the stack's jobs that are not among the `waited`. Raises VertexError.

    Pulumi removes those that are no longer declared at the end of a run, unless something has failed before.
    """
    ledgers = covering.of_stack(stack)
    if not ledgers:
        return []
    api = target.resolve(parent)
    declared = {ledger.mark(name) for ledger in ledgers for name in ledger.names | ledger.kept_names}
    told = {ledger.mark(name) for ledger in ledgers for name in waited}
    of_ledgers = tuple(f"{ledger.id}-" for ledger in ledgers)
    undeclared, newest = set[str](), dict[str, JobJson]()
    for kind in KINDS.values():
        for job in api.client.find(kind, api.parent, stack_filter(stack)):
            mark = job["labels"].get(MARK_LABEL, "")
            if mark in declared - told:
                name = str(job["labels"][NAME_LABEL])
                newest[name] = max(newest.get(name, job), job, key=lambda each: str(each.get("createTime")))
            elif mark not in told and mark.startswith(of_ledgers) and not _has_ended(job):
                undeclared.add(str(job["labels"][NAME_LABEL]))
    active = sorted(name for name, job in newest.items() if not _has_ended(job))
    failed = sorted(name for name, job in newest.items() if _has_failed(job))
    return [
        *([f"other jobs of the stack that have failed: {join_names(failed)}"] if failed else []),
        *([f"other jobs of the stack that still run: {join_names(active)}"] if active else []),
        *([UNDECLARED_MESSAGE.format(", ".join(sorted(undeclared)))] if undeclared else []),
    ]


def wait(
    parent: str,
    stack: str,
    ids: Mapping[str, str],
    deadlines: Mapping[str, float],
    earlier: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the results of jobs by name, once all have succeeded, and print what happens until then.

    `parent` is the jobs' location, `ids` are their resource names, `deadlines` seconds from the beginning of this wait,
    all by name. `earlier` has the results of those that have ended before. Raises TrainingFailed as soon as a job has
    failed or misses its deadline. Jobs that are active then stay active.
    """
    progress, advice = Progress(), failures.WaitAdvice(parent)
    jobs: dict[str, JobJson] = {}
    measured: dict[str, dict[str, float]] = {}
    pending = dict(ids)
    start, last_look = time.monotonic(), inf

    def require_in_time(waited: float) -> None:
        if overdue := [name for name in pending if deadlines.get(name, inf) <= waited]:
            links = target.resolve(parent).links
            pages = {name: links.page(ResourceName.parse(pending[name])) for name in overdue}
            raise TrainingFailed("\n".join(_overdue(name, jobs.get(name), waited, pages[name]) for name in overdue))

    while True:
        engine.require_alive("waiting")
        try:
            oldest = lookup.oldest_create_time(jobs[name] for name in pending if name in jobs)
            latest = lookup.jobs(parent, stack, pending, oldest)
        # The client has tried for minutes; a token may have ended meanwhile.
        except (Unavailable, RateLimited, Interrupted, PermissionDenied) as error:
            if last_look < inf:
                raise _failure(parent, jobs) from error
            require_in_time(time.monotonic() - start)
            reason = refusals.explained(str(error), "vertex-training.Completion")
            raise TrainingFailed(
                f"the jobs' state is unknown; they go on, and the next `pulumi up` waits for them: {reason}"
            ) from error
        jobs |= latest
        _print(progress.take_lines(jobs, time.time()))
        _print(advice.take_lines(jobs, time.time()))
        if last_look == inf and (missing := pending.keys() - latest.keys()):
            raise TrainingFailed(f"{', '.join(sorted(missing))}: deleted while waited for; run `pulumi refresh`")
        ended = {name: job for name, job in latest.items() if _has_ended(job)}
        _print(runs.cost_lines(parent, {name: job for name, job in ended.items() if name not in earlier}))
        waited = time.monotonic() - start
        if last_look == inf and any(map(_has_failed, latest.values())):
            last_look = waited + min(max(_SHORTEST_LOOK, waited / 10), _LONGEST_LOOK)
        if last_look < inf and (waited >= last_look or all(map(_has_ended, jobs.values()))):
            raise _failure(parent, jobs)
        values, lines = metrics.read(parent, {name: job for name, job in ended.items() if not _has_failed(job)})
        measured |= values
        _print(lines)
        if all(map(_has_ended, jobs.values())):
            results = {name: lookup.shown_results(parent, job) for name, job in jobs.items()}
            new = {name: job for name, job in jobs.items() if name not in earlier}
            empty = metrics.without_model(parent, new)
            _print(_notes(parent, new, empty))
            for name, result in results.items():
                if name in empty or metrics.NO_MODEL in earlier.get(name, {}):
                    result[metrics.NO_MODEL] = True
                if name in measured:
                    result["metrics"] = measured[name]
                if took := earlier.get(name, {}).get(runs.TOOK) or runs.took(parent, jobs[name], measured.get(name)):
                    result[runs.TOOK] = took
            return results
        pending = {name: pending[name] for name in pending if not (name in jobs and _has_ended(jobs[name]))}
        if last_look == inf:
            require_in_time(waited)
        ends = [last_look] if last_look < inf else [deadlines.get(name, inf) for name in pending]
        # Often for jobs of seconds on a laptop, rarely for jobs of hours.
        time.sleep(min(max(0.3, waited / 20), 15, *(end - waited for end in ends)))


def _notes(parent: str, jobs: Mapping[str, JobJson], empty: Collection[str]) -> list[str]:
    """Return what is to be said of searches that have succeeded, and of jobs that wrote no model (`empty`)."""
    api = target.resolve(parent)
    notable = [name for name, job in jobs.items() if name in empty or "studySpec" in job.get(TUNING_JOB, job)]
    return [
        f"{name}: {note}"
        for name in notable[:MAX_NOTED]
        for note in failures.success_notes(api, jobs[name], is_empty=name in empty)
    ]


def _has_ended(job: JobJson) -> bool:
    return job["state"] in TERMINAL_STATES


def _has_failed(job: JobJson) -> bool:
    return job["state"] in TERMINAL_STATES - SUCCEEDED_STATES


def _failure(parent: str, jobs: Mapping[str, JobJson]) -> TrainingFailed:
    """Return what is known of the jobs that have failed, and which of the others are active."""
    failed = {name: job for name, job in jobs.items() if _has_failed(job)}
    lines = failures.failure_reports(target.resolve(parent), failed)
    if active := [name for name, job in jobs.items() if not _has_ended(job)]:
        lines.append(f"still running: {join_names(active)}. They go on, and the next `pulumi up` waits for them")
    return TrainingFailed("\n".join(lines))


def _overdue(job_name: str, job: JobJson | None, waited: float, page: str) -> str:
    state = job["state"] if job else "of unknown state"
    return (
        f"{job_name}: still {state} after {waited:.0f} s, its lifecycle.deadline. The job goes on: {page}\n"
        "  run this again to wait on, raise the deadline, or set scheduling.timeout to have the service end such a job"
    )


def _print(lines: list[str]) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201


class Progress:
    """What the lines so far have said of jobs: what has changed, and a heartbeat if nothing has."""

    def __init__(self) -> None:
        self._statuses: dict[str, str] = {}
        self._last_time: float | None = None

    def take_lines(self, jobs: Mapping[str, JobJson], now: float) -> list[str]:
        """Return a few lines on jobs, by name, that have changed by `now` (seconds since 1970), each change once."""
        changed = {}
        for name, job in jobs.items():
            status = _status(job)
            if self._statuses.get(name) != status:
                self._statuses[name] = status
                changed[name] = job
        if len(changed) > MAX_NAMES:
            lines = [*_names_by_state(changed), _done_counts(jobs)]
        else:
            lines = [f"{name}: {self._statuses[name]}" for name in changed]
        queued = list(_queued(jobs, now))
        if self._last_time is None or (lines and not queued):
            self._last_time = now
        elif now - self._last_time > HEARTBEAT_SECONDS:
            lines.append("; ".join([f"waiting: {_done_counts(jobs)}", *queued]))
            self._last_time = now
        return lines


def _status(job: JobJson) -> str:
    state, tuning_job = short_state(job["state"]), job.get(TUNING_JOB, job)
    if state == "RUNNING" and "startTime" in job:
        minutes = age_in_minutes(job, datetime.fromisoformat(job["startTime"]).timestamp())
        state += f" after {minutes} min in the queue" if minutes else ""
    if "studySpec" not in tuning_job:
        return state
    metric = objectives_of(tuning_job["studySpec"])[0].id
    best_trial = find_best(tuning_job)
    best = f", best {metric} {best_trial['metrics'][metric]:.4g} in trial {best_trial['id']}" if best_trial else ""
    return f"{state}, {count_ended(tuning_job)} of {tuning_job['maxTrialCount']} trials done{best}"


def _names_by_state(jobs: Mapping[str, JobJson]) -> Iterator[str]:
    """Yield one line for each state: many jobs that change at once would flood the screen."""
    states = {name: short_state(job["state"]) for name, job in jobs.items()}
    for state in dict.fromkeys(states.values()):
        yield f"{state}: {join_names([name for name in jobs if states[name] == state])}"


def _done_counts(jobs: Mapping[str, JobJson]) -> str:
    text = f"{sum(map(_has_ended, jobs.values()))} of {len(jobs)} jobs done"
    tuning_jobs = [tuning_job for job in jobs.values() if "studySpec" in (tuning_job := job.get(TUNING_JOB, job))]
    if len(tuning_jobs) > 1:
        total = sum(int(job["maxTrialCount"]) for job in tuning_jobs)
        text += f", {sum(map(count_ended, tuning_jobs))} of {total} trials done"
    return text


def _queued(jobs: Mapping[str, JobJson], now: float) -> Iterator[str]:
    """Yield a text for each state before RUNNING: its jobs that are a minute old, since when, and why."""
    for state in WAIT_REASONS:
        minutes = {name: age_in_minutes(job, now) for name, job in jobs.items() if short_state(job["state"]) == state}
        if longest_first := sorted(filter(minutes.get, minutes), key=lambda name: -minutes[name]):
            longest = minutes[longest_first[0]]
            yield f"{join_names(longest_first)} {state} for {longest} min, as {wait_reason(state, longest)}"
