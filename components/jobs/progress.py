"""Progress of jobs that are waited for, in lines: what has changed, and a sign of life where nothing has."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from vertex_api.states import TERMINAL_STATES, strip_state_prefix
from vertex_api.studies import trials
from vertex_api.studies.metrics import list_objectives

from .pipeline_results import STUDY

Job = Mapping[str, Any]
HEARTBEAT_SECONDS = 60.0
_NAMED = 5
"""How many changes of one look have lines of their own, and how many names stand in a line for more of them."""
_QUEUED = {
    "QUEUED": "quota or machines are short",
    "PENDING": "machines and images are made ready",
}
"""States before a job runs, and what they mean (Google's page on the training service)."""


class Progress:
    """What has been said of jobs so far."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._spoken: float | None = None

    def lines(self, jobs: Mapping[str, Job], now: float) -> list[str]:
        """What is to be said of the jobs by name, as they are `now` (seconds since 1970). At most a few lines."""
        changed = {}
        for name, job in jobs.items():
            status = _status(job)
            if self._said.get(name) != status:
                self._said[name] = status
                changed[name] = job
        if len(changed) > _NAMED:
            lines = [*_grouped(changed), _count(jobs)]
        else:
            lines = [f"{name}: {self._said[name]}" for name in changed]
        queued = list(_queued(jobs, now))
        if self._spoken is None or (lines and not queued):
            self._spoken = now
        elif now - self._spoken > HEARTBEAT_SECONDS:
            lines.append("; ".join([f"waiting: {_count(jobs)}", *queued]))
            self._spoken = now
        return lines


def moved(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The line on a job whose `run`, as `jobs.job` has it, is another than `before`; None where it is not."""
    if before == now:
        return None
    came_from = f"{strip_state_prefix(before['state'])} → " if before.get("state") not in (None, now["state"]) else ""
    done = f", {now['trials']['ended']} of {now['trials']['of']} trials done" if "trials" in now else ""
    error = f": {now['error']}" if now.get("error") else ""
    return f"{name}: {came_from}{strip_state_prefix(now['state'])}{done}{error}"


def _status(job: Job) -> str:
    state, study = strip_state_prefix(job["state"]), job.get(STUDY, job)
    if state == "RUNNING" and "startTime" in job and (minutes := _minutes(job, _seconds(job["startTime"]))):
        state += f" after {minutes} min in the queue"
    if "studySpec" not in study:
        return state
    metric = list_objectives(study["studySpec"])[0].id
    best = trials.find_best_trial(study)
    found = f", best {metric} {best['metrics'][metric]:.4g} in trial {best['id']}" if best else ""
    return f"{state}, {trials.count_ended_trials(study)} of {study['maxTrialCount']} trials done{found}"


def _grouped(jobs: Mapping[str, Job]) -> Iterator[str]:
    """One line for each state: many jobs that change at once would flood the screen."""
    by_state: dict[str, list[str]] = {}
    for name, job in jobs.items():
        by_state.setdefault(strip_state_prefix(job["state"]), []).append(name)
    for state, names in by_state.items():
        yield f"{state}: {_some(names)}"


def _count(jobs: Mapping[str, Job]) -> str:
    done = sum(job["state"] in TERMINAL_STATES for job in jobs.values())
    counted = f"{done} of {len(jobs)} jobs done"
    searches = [study for job in jobs.values() if "studySpec" in (study := job.get(STUDY, job))]
    if len(searches) > 1:
        total = sum(int(job["maxTrialCount"]) for job in searches)
        counted += f", {sum(map(trials.count_ended_trials, searches))} of {total} trials done"
    return counted


def _queued(jobs: Mapping[str, Job], now: float) -> Iterator[str]:
    """The jobs that have not begun to run after a minute: since when, and why."""
    for state, why in _QUEUED.items():
        waiting = {name: _minutes(job, now) for name, job in jobs.items() if strip_state_prefix(job["state"]) == state}
        longest_first = sorted((name for name, minutes in waiting.items() if minutes), key=lambda name: -waiting[name])
        if longest_first:
            since = waiting[longest_first[0]]
            yield f"{_some(longest_first)} {state} for {since} min, as {why}"


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _minutes(job: Job, moment: float) -> int:
    """Whole minutes from a job's creation to a moment in seconds since 1970."""
    return max(0, int((moment - _seconds(job["createTime"])) // 60))


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
