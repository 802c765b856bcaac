"""`webAccessUris` of jobs and trials with `enableWebAccess`: for each task, a page that says how to get a shell.

They are there while the job runs (discovery document, CustomJob and Trial). Those of the service lack `http://`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from vertex_api.names import CUSTOM_JOB
from vertex_emulator.database.records import RUNNING, Job, Trial, requested_replicas

_FIELD = "webAccessUris"


def build_web_access_fields_or_empty(job: Job, page_url: str) -> dict[str, dict[str, str]]:
    """Return the field of a custom job, `{}` unless it runs with web access. `page_url` is the emulator's."""
    if job.state != RUNNING or not job.spec["jobSpec"].get("enableWebAccess"):
        return {}
    return {_FIELD: _build_uris_by_task(job.id, job.spec["jobSpec"], page_url)}


def add_web_access_to_running_trials(
    study_body: dict[str, Any], study: Job, trials: Iterable[Trial], page_url: str
) -> None:
    """Add the field to each running trial in the body of a tuning job, if the study has web access."""
    spec = study.spec["trialJobSpec"]
    if spec.get("enableWebAccess"):
        for trial, trial_body in zip(trials, study_body.get("trials", ()), strict=True):
            if trial.state in ("ACTIVE", "STOPPING"):
                trial_body[_FIELD] = _build_uris_by_task(trial.job, spec, page_url)


def _build_uris_by_task(job_id: str, job_spec: Mapping[str, Any], page_url: str) -> dict[str, str]:
    tasks = [replica.task_name for replica in requested_replicas(CUSTOM_JOB, {"jobSpec": job_spec})]
    return {task: f"{page_url}/jobs/{CUSTOM_JOB.collection}/{job_id}/shell/{task}" for task in tasks}
