"""Waiting for jobs: one list call per collection and poll, progress as it happens, and the reason if a job fails."""

import time
from collections.abc import Mapping
from math import inf
from typing import Any

from vertex_api.errors import Interrupted, RateLimited, Unavailable
from vertex_api.job import TUNING_JOB, job_results
from vertex_api.names import SUCCEEDED_STATES, TERMINAL_STATES, ResourceName

from ..errors import TrainingFailed
from ..runtime import target
from ..runtime.engine import require_alive
from . import failure_diagnosis
from .capacity_wait_advice import CapacityAdvice
from .pipeline_tuning_job_fetching import fetch_existing_jobs_with_tuning_jobs_in_pipelines, get_oldest_create_time
from .progress_lines import Progress

Job = Mapping[str, Any]


def print_progress_until_all_succeed_and_get_results(
    api_parent: str,
    project_and_stack_name: str,
    resource_names_by_job: Mapping[str, str],
    deadlines_by_job: Mapping[str, float],
) -> dict[str, Any]:
    """Return the results of jobs by name, once all have succeeded.

    `api_parent` is the jobs' location, `deadlines_by_job` are seconds from the beginning of this wait. Raises
    TrainingFailed as soon as a job has failed or misses its deadline. Jobs that are active then stay active.
    """
    progress, capacity_advice = Progress(), CapacityAdvice(api_parent)
    jobs: dict[str, Job] = {}
    pending = dict(resource_names_by_job)
    start = time.monotonic()
    while True:
        require_alive("waiting")
        try:
            oldest = get_oldest_create_time(jobs[name] for name in pending if name in jobs)
            latest = fetch_existing_jobs_with_tuning_jobs_in_pipelines(
                api_parent, project_and_stack_name, pending, oldest
            )
        except (Unavailable, RateLimited, Interrupted) as error:  # the client has tried for minutes
            _raise_if_overdue(api_parent, pending, jobs, deadlines_by_job, time.monotonic() - start)
            raise TrainingFailed(f"the jobs' state is unknown, and they go on: {error}") from error
        jobs |= latest
        _print_lines(*progress.take_change_and_heartbeat_lines(jobs, time.time()))
        _print_lines(*capacity_advice.take_new_advice_lines(jobs, time.time()))
        if missing := pending.keys() - latest.keys():
            raise TrainingFailed(f"{', '.join(sorted(missing))}: deleted while waited for; run `pulumi refresh`")
        if failed := [name for name in latest if jobs[name]["state"] in TERMINAL_STATES - SUCCEEDED_STATES]:
            api = target.resolve(api_parent)
            reports = (failure_diagnosis.build_failure_report(api, name, jobs[name]) for name in failed)
            raise TrainingFailed("\n".join(reports))
        if all(map(_has_ended, jobs.values())):
            for name, job in jobs.items():
                notes = failure_diagnosis.iterate_unreported_metric_lines(job.get(TUNING_JOB, job))
                _print_lines(*(f"{name}: {note}" for note in notes))
            return {name: job_results(job) for name, job in jobs.items()}
        waited = time.monotonic() - start
        pending = {name: pending[name] for name in pending if not (name in jobs and _has_ended(jobs[name]))}
        _raise_if_overdue(api_parent, pending, jobs, deadlines_by_job, waited)
        remaining = (deadlines_by_job.get(name, inf) - waited for name in pending)
        # Often for jobs of seconds on a laptop, rarely for jobs of hours.
        time.sleep(min(max(0.3, waited / 20), 15, *remaining))


def _raise_if_overdue(
    api_parent: str,
    pending_resource_names_by_job: Mapping[str, str],
    jobs: Mapping[str, Job],
    deadlines_by_job: Mapping[str, float],
    waited_seconds: float,
) -> None:
    """Raise TrainingFailed if a pending job, of those by resource name, misses its deadline."""
    overdue = [name for name in pending_resource_names_by_job if deadlines_by_job.get(name, inf) <= waited_seconds]
    if overdue:
        links = target.resolve(api_parent).links
        pages = {name: links.page(ResourceName.parse(pending_resource_names_by_job[name])) for name in overdue}
        lines = (_render_overdue_message(pages[name], name, jobs.get(name), waited_seconds) for name in overdue)
        raise TrainingFailed("\n".join(lines))


def _has_ended(job: Job) -> bool:
    return job["state"] in TERMINAL_STATES


def _render_overdue_message(page_url: str, job_name: str, job: Job | None, waited_seconds: float) -> str:
    state = job["state"] if job else "of unknown state"
    return (
        f"{job_name}: still {state} after {waited_seconds:.0f} s, its lifecycle.deadline. The job goes on: {page_url}\n"
        "  run this again to wait on, raise the deadline, or set scheduling.timeout to have the service end such a job"
    )


def _print_lines(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201
