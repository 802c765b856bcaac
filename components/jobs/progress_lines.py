"""Progress of jobs that are waited for, in lines: what has changed, and a heartbeat if nothing has."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from vertex_api.job import TUNING_JOB
from vertex_api.names import TERMINAL_STATES, short_state
from vertex_api.studies import count_ended, find_best, objectives_of

Job = Mapping[str, Any]
HEARTBEAT_SECONDS = 60.0
_MAX_NAMES = 5
"""How many changes at once have lines of their own, and how many names are in one line for more changes."""
_QUEUE_REASONS = {
    "QUEUED": "quota or machines are short",
    "PENDING": "machines and images are being prepared",
}
"""States before a job runs, and their reasons (Google's page on the training service)."""


class Progress:
    """What the lines so far have said of jobs."""

    def __init__(self) -> None:
        self._statuses: dict[str, str] = {}
        self._last_time: float | None = None

    def take_change_and_heartbeat_lines(self, jobs_by_name: Mapping[str, Job], now: float) -> list[str]:
        """Return a few lines on the jobs that have changed by `now` (seconds since 1970), once for each change."""
        changed = {}
        for name, job in jobs_by_name.items():
            status = _describe_state_and_trials(job)
            if self._statuses.get(name) != status:
                self._statuses[name] = status
                changed[name] = job
        if len(changed) > _MAX_NAMES:
            lines = [*_iterate_state_lines_with_names(changed), _render_done_job_and_trial_counts(jobs_by_name)]
        else:
            lines = [f"{name}: {self._statuses[name]}" for name in changed]
        queued = list(_iterate_unstarted_job_lines(jobs_by_name, now))
        if self._last_time is None or (lines and not queued):
            self._last_time = now
        elif now - self._last_time > HEARTBEAT_SECONDS:
            lines.append("; ".join([f"waiting: {_render_done_job_and_trial_counts(jobs_by_name)}", *queued]))
            self._last_time = now
        return lines


def describe_run_summary_change_or_none(
    job_name: str, previous_run_summary: Mapping[str, Any], run_summary: Mapping[str, Any]
) -> str | None:
    """Return a line on a job whose output `run` has changed; None if it has not."""
    if previous_run_summary == run_summary:
        return None
    previous_state = previous_run_summary.get("state", run_summary["state"])
    arrow = f"{short_state(previous_state)} → " if previous_state != run_summary["state"] else ""
    done = (
        f", {run_summary['trials']['ended']} of {run_summary['trials']['of']} trials done"
        if "trials" in run_summary
        else ""
    )
    error = f": {run_summary['error']}" if run_summary.get("error") else ""
    return f"{job_name}: {arrow}{short_state(run_summary['state'])}{done}{error}"


def _describe_state_and_trials(job: Job) -> str:
    state, tuning_job = short_state(job["state"]), job.get(TUNING_JOB, job)
    if state == "RUNNING" and "startTime" in job:
        minutes = count_minutes_since_creation(job, _parse_iso_time_to_unix_seconds(job["startTime"]))
        state += f" after {minutes} min in the queue" if minutes else ""
    if "studySpec" not in tuning_job:
        return state
    metric = objectives_of(tuning_job["studySpec"])[0].id
    best_trial = find_best(tuning_job)
    best = f", best {metric} {best_trial['metrics'][metric]:.4g} in trial {best_trial['id']}" if best_trial else ""
    return f"{state}, {count_ended(tuning_job)} of {tuning_job['maxTrialCount']} trials done{best}"


def _iterate_state_lines_with_names(jobs: Mapping[str, Job]) -> Iterator[str]:
    """Yield one line for each state: many jobs that change at once would flood the screen."""
    states = {name: short_state(job["state"]) for name, job in jobs.items()}
    for state in dict.fromkeys(states.values()):
        yield f"{state}: {join_first_names_and_count_others([name for name in jobs if states[name] == state])}"


def _render_done_job_and_trial_counts(jobs: Mapping[str, Job]) -> str:
    done = sum(job["state"] in TERMINAL_STATES for job in jobs.values())
    text = f"{done} of {len(jobs)} jobs done"
    tuning_jobs = [tuning_job for job in jobs.values() if "studySpec" in (tuning_job := job.get(TUNING_JOB, job))]
    if len(tuning_jobs) > 1:
        total = sum(int(job["maxTrialCount"]) for job in tuning_jobs)
        text += f", {sum(map(count_ended, tuning_jobs))} of {total} trials done"
    return text


def _iterate_unstarted_job_lines(jobs_by_name: Mapping[str, Job], now: float) -> Iterator[str]:
    """Yield a line for each state before RUNNING: its jobs that are a minute old, since when, and why."""
    for state, reason in _QUEUE_REASONS.items():
        queued = [name for name, job in jobs_by_name.items() if short_state(job["state"]) == state]
        minutes = {name: count_minutes_since_creation(jobs_by_name[name], now) for name in queued}
        if longest_first := sorted(filter(minutes.get, queued), key=lambda name: -minutes[name]):
            names = join_first_names_and_count_others(longest_first)
            yield f"{names} {state} for {minutes[longest_first[0]]} min, as {reason}"


def join_first_names_and_count_others(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def count_minutes_since_creation(job: Job, moment: float) -> int:
    """Return the whole minutes from a job's creation to a moment in seconds since 1970."""
    return max(0, int((moment - _parse_iso_time_to_unix_seconds(job["createTime"])) // 60))


def _parse_iso_time_to_unix_seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
