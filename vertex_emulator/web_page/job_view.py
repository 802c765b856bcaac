"""One job as the page shows it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vertex_api.jobspec import output_folders
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE
from vertex_api.pipelines import backing_kind
from vertex_emulator.database import Database
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ExecutorUnavailable
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.replicas.executor_protocol import Executor
from vertex_emulator.resources import job_json, pipeline_json, time_fields
from vertex_emulator.web_page.study_view import build_study_view
from vertex_emulator.web_page.thinned_trial_cache import ThinnedTrials


@dataclass(frozen=True)
class JobViewBuilder:
    """The views of single jobs: their records in the database, and the states of their containers."""

    database: Database
    executor: Executor
    buckets: Path
    trials: ThinnedTrials = field(default_factory=ThinnedTrials)

    def build_job_view_or_none(self, collection: str, job_id: str) -> dict[str, Any] | None:
        """Return all that the page shows of a job, None if there is no job of this kind and id.

        The fields are `job` as the API returns it (without a study's trials, with exact times), `kind`, `place`
        (`project`, `region`), `outputs` (`label`, `uri`, `path`), `replicas`, and `log` (the `job`, `trial` or null,
        and `tasks` of its entries). A tuning job also has `study` (see `build_study_view`), a trial's job has `parent`
        (`collection`, `id`, `trial`), and a running pipeline has `task` (`collection` and `id` of its job, its `model`
        or null).
        """
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
            trials = self.trials.list_thinned_trials(transaction, job_id) if _is_study(job) else []
            progress = transaction.pipelines.get(job_id)
        if job is None or job.kind != KINDS.get(collection):
            return None
        kind, visible_id = job.owner
        tasks = [replica.task_name for replica in job.requested_replicas]
        body = job_json(job) if job.kind != TRAINING_PIPELINE else pipeline_json(job, progress)
        view: dict[str, Any] = {
            "job": body | time_fields(startTime=job.started, endTime=job.ended),
            "kind": job.kind.type,
            "place": {"project": job.location.project, "region": job.location.region},
            "outputs": [*self._iterate_serialized_output_folders(job)],
            "replicas": [*self._iterate_serialized_replicas(job)],
            "log": {"job": visible_id, "trial": job.trial, "tasks": ["service", *tasks]},
        }
        if job.study is not None:
            view["parent"] = {"collection": kind.collection, "id": job.study, "trial": job.trial}
        if progress is not None:
            task_collection = backing_kind(job.spec).collection
            view["task"] = {"collection": task_collection, "id": progress.job, "model": progress.model}
        if _is_study(job):
            view["study"] = build_study_view(job, trials)
        return view

    def _iterate_serialized_output_folders(self, job: Job) -> Iterator[dict[str, str]]:
        """Yield the base output directory and, for a custom job, the folders in it that its environment names."""
        spec = job.spec.get("jobSpec") or job.spec.get("trialJobSpec") or {}
        base = spec.get("baseOutputDirectory", {}).get("outputUriPrefix")
        if not base:
            return
        folders = {"Base output directory": base}
        if job.kind == CUSTOM_JOB:
            folders |= output_folders(spec)
        for label, uri in folders.items():
            yield {"label": label, "uri": uri, "path": str(BucketTree(self.buckets).path(uri))}

    def _iterate_serialized_replicas(self, job: Job) -> Iterator[dict[str, Any]]:
        pools = job.spec.get("jobSpec", {}).get("workerPoolSpecs", [])
        statuses = self._get_recorded_or_live_statuses_by_task(job)
        for replica in job.requested_replicas:
            status = statuses.get(replica.task_name, {})
            pool = pools[replica.pool]
            yield {
                "task": replica.task_name,
                "image": _get_image_uri_or_empty(pool),
                "machine": pool.get("machineSpec", {}).get("machineType", ""),
                "state": _get_replica_state(status, job),
                "exitCode": status["exit_code"] if status.get("phase") == "exited" else None,
                "attempt": status.get("attempt", 0) + 1,
            }

    def _get_recorded_or_live_statuses_by_task(self, job: Job) -> dict[str, Mapping[str, Any]]:
        """Return the status of each task's latest attempt, as far as it is known."""
        if job.is_terminal:
            latest = sorted(job.replica_outcomes, key=lambda outcome: int(outcome.get("attempt", 0)))
            return {f"workerpool{each['pool']}-{each['index']}": {"phase": "exited", **each} for each in latest}
        try:
            statuses = self.executor.get_replica_statuses(job.id)
        except ExecutorUnavailable:
            return {}
        return {
            replica.task_name: {"attempt": replica.attempt, "phase": status.phase, "exit_code": status.exit_code}
            for replica, status in sorted(statuses.items())
        }


def _is_study(job: Job | None) -> bool:
    return job is not None and job.kind == HYPERPARAMETER_TUNING_JOB


def _get_image_uri_or_empty(pool: Mapping[str, Any]) -> str:
    return str(
        pool.get("containerSpec", {}).get("imageUri") or pool.get("pythonPackageSpec", {}).get("executorImageUri", "")
    )


def _get_replica_state(status: Mapping[str, Any], job: Job) -> str:
    match status.get("phase"):
        case "running":
            return "RUNNING"
        case "exited":
            return "SUCCEEDED" if status["exit_code"] == 0 else "FAILED"
        case "created":
            return "PENDING"
    return "NOT_STARTED" if job.is_terminal else "PENDING"
