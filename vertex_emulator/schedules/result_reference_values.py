"""The values to which later jobs of a run refer: results of earlier ones, `${jobs.tune.bestTrial.parameters.lr}`."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job import TUNING_JOB, job_results
from vertex_api.names import ResourceName
from vertex_api.pipelines import backing_job_name
from vertex_emulator.database.records import ScheduleRun
from vertex_emulator.names import Location
from vertex_emulator.schedules.job_methods_protocol import JobMethods

_RESULTS = ("name", "backingJob", "model", "modelDir", "bestTrial")
"""The results that other jobs can refer to: `Job.result_names` lists them."""


def collect_values_by_result(jobs: JobMethods, run: ScheduleRun) -> dict[str, Any]:
    """Return the results of a run's jobs so far by `NAME.RESULT`. Raises ApiError if one of the jobs is gone."""
    return {
        f"{name}.{path}": value
        for name, job in run.submitted.items()
        for path, value in _iterate_values_with_paths(_fetch_results(jobs, job.resource_name))
    }


def find_model_dir_or_none(jobs: JobMethods, resource_name: str) -> str | None:
    """Return the folder of the model of a job that has ended; None without one. Raises ApiError if the job is gone."""
    return _fetch_results(jobs, resource_name).get("modelDir")


def _fetch_results(jobs: JobMethods, resource_name: str) -> dict[str, Any]:
    job = _fetch_job(jobs, resource_name)
    backing_name = backing_job_name(job)
    backing_job = _fetch_job(jobs, backing_name) if backing_name else {}
    complete_job = {**job, TUNING_JOB: backing_job} if "studySpec" in backing_job else job
    return {"name": resource_name, **job_results(complete_job)}


def _fetch_job(jobs: JobMethods, resource_name: str) -> Mapping[str, Any]:
    name = ResourceName.parse(resource_name)
    return jobs.get(name.kind, Location(name.project, name.region), name.id)


def _iterate_values_with_paths(results: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in _RESULTS:
        value = results.get(name)
        if name != "bestTrial":
            yield from [(name, value)] if value is not None else []
        elif value is not None:
            yield "bestTrial.id", value["id"]
            for table in ("parameters", "metrics"):
                yield from ((f"bestTrial.{table}.{key}", each) for key, each in value[table].items())
