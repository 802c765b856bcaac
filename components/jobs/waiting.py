"""Waiting for jobs: one list call per collection and look, progress as it happens, and why a job failed."""

import time
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from types import MappingProxyType
from typing import Any

from vertex_api.catalog.job_defaults import get_model_directory
from vertex_api.errors import NotFound, QuotaExceeded, Unavailable
from vertex_api.names import ResourceName
from vertex_api.states import SUCCEEDED_STATES, TERMINAL_STATES
from vertex_api.studies import trials
from vertex_api.studies.metrics import list_objectives

from ..errors import TrainingFailed
from ..runtime import engine, target
from . import failures
from .pipeline_results import STUDY, is_pipeline, training_of, uploaded, with_studies
from .progress import Progress
from .recovery import ownership

Job = Mapping[str, Any]
UNREACHABLE_SECONDS = 120.0
"""How long the API may be out of reach before waiting is given up; the jobs themselves go on."""
_NO_DEADLINES: Mapping[str, float] = MappingProxyType({})


def wait(
    parent: str, owner: str, names: Mapping[str, str], deadlines: Mapping[str, float] = _NO_DEADLINES
) -> dict[str, Any]:
    """The results of jobs by name, once all have succeeded. `names` maps them to resource names.

    Raises TrainingFailed as soon as one of them has ended otherwise, or goes on beyond its deadline, which is in
    seconds from the beginning of this wait. Jobs that go on then are left to go on.
    """
    progress = Progress()
    jobs: dict[str, Job] = {}
    started = reached = time.monotonic()
    while True:
        engine.ensure_alive("waiting")
        open_ = {name: resource for name, resource in names.items() if name not in jobs or not _has_ended(jobs[name])}
        try:
            found = look(parent, owner, open_)
        except (Unavailable, QuotaExceeded) as error:
            if time.monotonic() - reached > UNREACHABLE_SECONDS:
                raise TrainingFailed(f"the jobs' state is unknown for {UNREACHABLE_SECONDS:.0f} s: {error}") from error
        else:
            reached = time.monotonic()
            jobs |= found
            _say(*progress.lines(jobs, time.time()))
            if missing := open_.keys() - found.keys():
                raise TrainingFailed(f"{', '.join(sorted(missing))}: deleted while waited for; run `pulumi refresh`")
            if failed := [name for name, job in found.items() if _ended_badly(job)]:
                at = target.connect(parent)
                raise TrainingFailed("\n".join(failures.account(at, name, jobs[name]) for name in failed))
            if all(map(_has_ended, jobs.values())):
                _say(
                    *(
                        f"{name}: {line}"
                        for name, job in jobs.items()
                        for line in failures.unreported(job.get(STUDY, job))
                    )
                )
                return {name: result(job) for name, job in jobs.items()}
        waited = time.monotonic() - started
        left = {
            name: deadlines.get(name, inf) - waited for name in open_ if not (name in jobs and _has_ended(jobs[name]))
        }
        if late := [name for name, seconds in left.items() if seconds <= 0]:
            raise TrainingFailed(
                "\n".join(_overdue(parent, name, names[name], jobs.get(name), waited) for name in late)
            )
        # Quick for the short jobs of a laptop, seldom for those of hours.
        time.sleep(min(max(0.3, waited / 20), 15, *left.values()))


def look(parent: str, owner: str, names: Mapping[str, str]) -> dict[str, Job]:
    """The jobs as they are now, by name; those that are gone are left out.

    One list call per collection, and a call for each job that lists of the stack do not have, as it was adopted.
    Pipelines that tune have their tuning job with them (see `pipeline_results.with_studies`).
    """
    at = target.connect(parent)
    wanted = {resource: name for name, resource in names.items()}
    found: dict[str, Job] = {}
    for kind in {ResourceName.parse(resource).kind for resource in wanted}:
        listed = at.client.list(kind, at.parent, ownership.filter_of(owner))
        found |= {wanted[job["name"]]: job for job in listed if job["name"] in wanted}
    for name in names.keys() - found.keys():
        with suppress(NotFound):
            found[name] = at.client.get(ResourceName.parse(names[name]))
    return with_studies(at, owner, found)


def result(job: Job) -> dict[str, Any]:
    """What a job came to: `state`, `modelDir`, and for a tuning job `bestTrial` and `trials` (see `studies.trials`).

    `error` is there for a job that failed. `modelDir` of a tuning job is that of its best trial. With several
    objectives, `paretoTrials` are those that none beats in all of them. `unreported` has the ids of trials that ended
    without a metric, by metric. A pipeline has what the job that it runs has, and `backingJob` and `model` (see
    `pipeline_results.uploaded`). States are the API's own: `JOB_STATE_SUCCEEDED`, and of a pipeline
    `PIPELINE_STATE_SUCCEEDED`.
    """
    found: dict[str, Any] = {"state": job["state"]}
    if "error" in job:
        found["error"] = job["error"].get("message", "")
    if is_pipeline(job):
        found, job = found | uploaded(job), training_of(job)
    if "studySpec" not in job:
        return found | _model_dir(job["jobSpec"])
    best = trials.find_best_trial(job)
    found |= _model_dir(job["trialJobSpec"], best["id"]) if best else {}
    if len(list_objectives(job["studySpec"])) > 1:
        found["paretoTrials"] = trials.find_pareto_front(job)
    if unreported := trials.find_unreported_metrics(job):
        found["unreported"] = unreported
    return found | {"bestTrial": best, "trials": trials.summarize_trials(job)}


def _model_dir(job_spec: Mapping[str, Any], trial_id: str = "") -> dict[str, str]:
    folder = get_model_directory(job_spec, trial_id)
    return {"modelDir": folder} if folder else {}


def _ended_badly(job: Job) -> bool:
    return job["state"] in TERMINAL_STATES and job["state"] not in SUCCEEDED_STATES


def _has_ended(job: Job) -> bool:
    return job["state"] in TERMINAL_STATES


def _overdue(parent: str, name: str, resource: str, job: Job | None, waited: float) -> str:
    state = job["state"] if job else "of unknown state"
    page = target.connect(parent).links.page(ResourceName.parse(resource))
    return (
        f"{name}: still {state} after {waited:.0f} s, its lifecycle.deadline. The job goes on: {page}\n"
        "  run this again to wait on, raise the deadline, or set scheduling.timeout to have the service end such a job"
    )


def _say(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201
