"""Waiting for jobs: one list call per collection and look, progress as it happens, and why a job failed."""

import time
from collections.abc import Mapping
from typing import Any

from components import engine, ownership, target
from components.errors import TrainingFailed
from components.pipeline_results import STUDY, is_pipeline, training_of, uploaded, with_studies
from vertex import trials
from vertex.errors import QuotaExceeded, Unavailable, VertexError
from vertex.names import ResourceName
from vertex.pipelines import backing_name
from vertex.states import SUCCEEDED, TERMINAL, plain

Job = Mapping[str, Any]
QUOTED_LINES = 10
"""How many of a failed job's last log lines its error quotes."""
HEARTBEAT_SECONDS = 60.0
UNREACHABLE_SECONDS = 120.0
"""How long the API may be out of reach before waiting is given up; the jobs themselves go on."""


def wait(parent: str, owner: str, names: Mapping[str, str]) -> dict[str, Any]:
    """The results of jobs by name, once all have succeeded. `names` maps them to resource names.

    Raises TrainingFailed as soon as one of them has ended otherwise.
    """
    progress = _Progress(len(names))
    started = reached = time.monotonic()
    while True:
        engine.ensure_alive("waiting")
        try:
            jobs = look(parent, owner, names)
        except (Unavailable, QuotaExceeded) as error:
            if time.monotonic() - reached > UNREACHABLE_SECONDS:
                raise TrainingFailed(f"the jobs' state is unknown for {UNREACHABLE_SECONDS:.0f} s: {error}") from error
        else:
            reached = time.monotonic()
            progress.report(jobs)
            if missing := names.keys() - jobs.keys():
                raise TrainingFailed(f"{', '.join(sorted(missing))}: deleted while waited for; run `pulumi refresh`")
            if failed := [name for name, job in jobs.items() if _ended_badly(job)]:
                raise TrainingFailed("\n".join(_account(parent, name, jobs[name]) for name in failed))
            if all(job["state"] in TERMINAL for job in jobs.values()):
                return {name: result(job) for name, job in jobs.items()}
        # Quick for the short jobs of a laptop, seldom for those of hours.
        time.sleep(min(max(0.3, (time.monotonic() - started) / 20), 15))


def look(parent: str, owner: str, names: Mapping[str, str]) -> dict[str, Job]:
    """The jobs as they are now, by name; those that are gone are left out. One list call per collection.

    Pipelines that tune have their tuning job with them (see `pipeline_results.with_studies`).
    """
    at = target.connect(parent)
    wanted = {resource: name for name, resource in names.items()}
    found: dict[str, Job] = {}
    for kind in {ResourceName.parse(resource).kind for resource in wanted}:
        listed = at.client.list(kind, at.parent, ownership.filter_of(owner))
        found |= {wanted[job["name"]]: job for job in listed if job["name"] in wanted}
    return with_studies(at, owner, found)


def result(job: Job) -> dict[str, Any]:
    """What a job came to: `state`, `modelDir`, and for a tuning job `bestTrial` and `trials` (see `vertex.trials`).

    `error` is there for a job that failed. `modelDir` of a tuning job is that of its best trial. A pipeline has what
    the job that it runs has, and `backingJob` and `model` (see `pipeline_results.uploaded`). States are the API's own:
    `JOB_STATE_SUCCEEDED`, and of a pipeline `PIPELINE_STATE_SUCCEEDED`.
    """
    found: dict[str, Any] = {"state": job["state"]}
    if "error" in job:
        found["error"] = job["error"].get("message", "")
    if is_pipeline(job):
        found, job = found | uploaded(job), training_of(job)
    if "studySpec" not in job:
        return found | model_dir(job["jobSpec"], "")
    best = trials.best(job)
    found |= model_dir(job["trialJobSpec"], f"{best['id']}/") if best else {}
    return found | {"bestTrial": best, "trials": trials.summaries(job)}


def model_dir(spec: Mapping[str, Any], trial: str) -> dict[str, str]:
    """`modelDir` of a run with this CustomJobSpec; `trial` is the folder of a trial, `3/`, or empty."""
    base = spec.get("baseOutputDirectory", {}).get("outputUriPrefix")
    return {"modelDir": f"{base.rstrip('/')}/{trial}model/"} if base else {}


def _ended_badly(job: Job) -> bool:
    return job["state"] in TERMINAL and job["state"] not in SUCCEEDED


def _account(parent: str, name: str, job: Job) -> str:
    """One failed job: what the service says, and the last lines that its containers wrote."""
    reason = job.get("error", {}).get("message") or job["state"]
    writer = ResourceName.parse(backing_name(job) or job["name"])
    try:
        lines = target.connect(parent).client.log_lines(writer, QUOTED_LINES)
    except VertexError as error:
        lines = [f"(its log cannot be read: {error})"]
    quoted = "\n".join(f"    {line}" for line in lines) or "    (it wrote nothing)"
    return f"{name} failed: {reason}\n  its last log lines:\n{quoted}\n  mend it, or run it again with lifecycle.rerun"


class _Progress:
    """Prints what changes, and a sign of life where nothing does."""

    def __init__(self, count: int) -> None:
        self._seen: dict[str, str] = {}
        self._spoken = time.monotonic()
        self._count = count

    def report(self, jobs: Mapping[str, Job]) -> None:
        for name, job in jobs.items():
            line = f"{name}: {_status(job)}"
            if self._seen.get(name) != line:
                self._seen[name] = line
                self._say(line)
        if time.monotonic() - self._spoken > HEARTBEAT_SECONDS:
            done = sum(job["state"] in TERMINAL for job in jobs.values())
            self._say(f"waiting: {done} of {self._count} jobs done")

    def _say(self, line: str) -> None:
        print(line, flush=True)  # noqa: T201
        self._spoken = time.monotonic()


def _status(job: Job) -> str:
    state, job = plain(job["state"]), job.get(STUDY, job)
    if "studySpec" not in job:
        return state
    metric = job["studySpec"]["metrics"][0]["metricId"]
    done = sum(trial["state"] in ("SUCCEEDED", "INFEASIBLE") for trial in job.get("trials", []))
    best = trials.best(job)
    found = f", best {metric} {best['metrics'][metric]:.4g} in trial {best['id']}" if best else ""
    return f"{state}, {done} of {job['maxTrialCount']} trials done{found}"
