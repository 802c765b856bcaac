"""One job as the page shows it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_api.catalog.job_defaults import get_output_directories
from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE
from vertex_api.validation.pipeline_tasks import backing_kind
from vertex_emulator.database import Database
from vertex_emulator.database.records import Job, PipelineProgress
from vertex_emulator.errors import ExecutorUnavailable
from vertex_emulator.gcs import buckets
from vertex_emulator.page.study_view import build_study_view
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.resource_json import serialize_job, serialize_pipeline


@dataclass(frozen=True)
class JobViews:
    """Jobs from the database, and what their containers are doing."""

    database: Database
    executor: Executor
    buckets: Path

    def build_view(self, collection: str, job_id: str) -> dict[str, Any] | None:
        """Return all that the page shows of a job, None if there is no job of this kind and id.

        `job` as the API answers it (a study's trials left out), `kind`, `place` (`project`, `region`), `outputs`
        (`label`, `uri`, `path`), `replicas`, `log` (whose entries: `job`, `trial` or null, `tasks`), `study` (see
        `build_study_view`) for a tuning job and `parent` (`collection`, `id`, `trial`) for a trial's job;
        `task` (`collection`, `id` of its job, and the `model` it uploaded or null) for a pipeline that has begun.
        """
        with self.database.read_transaction() as transaction:
            job = transaction.get_job(job_id)
            trials = transaction.list_trials(job_id)
            progress = transaction.pipelines.get_progress([job_id]).get(job_id)
        if job is None or job.kind != KINDS.get(collection):
            return None
        kind, shown_id = job.visible_resource
        shown: dict[str, Any] = {
            "job": serialize_job(job) if job.kind != TRAINING_PIPELINE else serialize_pipeline(job, progress),
            "kind": job.kind.type,
            "place": {"project": job.location.project, "region": job.location.region},
            "outputs": [*self._outputs(job)],
            "replicas": [*self._replicas(job)],
            "log": {
                "job": shown_id,
                "trial": job.trial,
                "tasks": ["service", *(place.task for place in job.requested_replicas)],
            },
        }
        if job.study is not None:
            shown["parent"] = {"collection": kind.collection, "id": job.study, "trial": job.trial}
        if progress is not None:
            shown["task"] = _task(job, progress)
        if job.kind == HYPERPARAMETER_TUNING_JOB:
            shown["study"] = build_study_view(job, trials)
        return shown

    def _outputs(self, job: Job) -> Iterator[dict[str, str]]:
        """The base output directory, and the folders in it that a custom job is told of."""
        spec = job.spec.get("jobSpec") or job.spec.get("trialJobSpec") or {}
        base = spec.get("baseOutputDirectory", {}).get("outputUriPrefix")
        if not base:
            return
        folders = {"Base output directory": base}
        if job.kind == CUSTOM_JOB:
            folders |= get_output_directories(spec)
        for label, uri in folders.items():
            yield {"label": label, "uri": uri, "path": str(buckets.resolve_folder(self.buckets, uri))}

    def _replicas(self, job: Job) -> Iterator[dict[str, Any]]:
        pools = job.spec.get("jobSpec", {}).get("workerPoolSpecs", [])
        found = self._statuses(job)
        for place in job.requested_replicas:
            status = found.get(place.task, {})
            yield {
                "task": place.task,
                "image": _image(pools[place.pool]),
                "machine": pools[place.pool].get("machineSpec", {}).get("machineType", ""),
                "state": _state(status, job),
                "exitCode": status["exit_code"] if status.get("phase") == "exited" else None,
                "attempt": status.get("attempt", 0) + 1,
            }

    def _statuses(self, job: Job) -> dict[str, Mapping[str, Any]]:
        """What is known of each task's latest attempt, by the task's name."""
        if job.is_terminal:
            latest = sorted(job.replica_outcomes, key=lambda found: int(found.get("attempt", 0)))
            return {f"workerpool{found['pool']}-{found['index']}": {"phase": "exited", **found} for found in latest}
        try:
            statuses = self.executor.get_statuses(job.id)
        except ExecutorUnavailable:
            return {}
        return {
            replica.task: {"attempt": replica.attempt, "phase": status.phase, "exit_code": status.exit_code}
            for replica, status in sorted(statuses.items())
        }


def _task(pipeline: Job, progress: PipelineProgress) -> dict[str, Any]:
    return {"collection": backing_kind(pipeline.spec).collection, "id": progress.job, "model": progress.model}


def _image(pool: Mapping[str, Any]) -> str:
    return str(
        pool.get("containerSpec", {}).get("imageUri") or pool.get("pythonPackageSpec", {}).get("executorImageUri", "")
    )


def _state(status: Mapping[str, Any], job: Job) -> str:
    match status.get("phase"):
        case "running":
            return "RUNNING"
        case "exited":
            return "SUCCEEDED" if status["exit_code"] == 0 else "FAILED"
        case "created":
            return "PENDING"
    return "NOT_STARTED" if job.is_terminal else "PENDING"
