"""The metrics of jobs that have ended, as the stack's results and a run's lines have them."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any

from vertex_api import metrics
from vertex_api.job import MODEL_DIR, job_results, training_of
from vertex_api.jobspec import output_folder
from vertex_api.metrics import MAX_LISTED, Reader
from vertex_api.names import JobJson
from vertex_api.studies import find_best

from ..errors import UploadFailed
from ..runtime import storage
from .failures import MAX_NAMES
from .runs import TOOK

NO_MODEL = "modelDirIsEmpty"
"""The key of a result that says that a job has succeeded and has written no model."""
MAX_SHOWN = 6
"""How many metrics of a job a line names."""
_THREADS = 8


def read(parent: str, jobs: Mapping[str, JobJson]) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Return the metrics of jobs that have succeeded, by name, and the lines to print of those that are in files.

    `parent` is the jobs' location. A search has those of its best trial. A job without metrics is left out. Once a
    store refuses, no more is read, and a line says so: a run does not fail or wait for metrics.
    """
    found: dict[str, dict[str, float]] = {}
    in_files: dict[str, tuple[Mapping[str, Any], float]] = {}
    for name, job in jobs.items():
        training = training_of(job)
        if "studySpec" in training:
            if (best := find_best(training)) and best["metrics"]:
                found[name] = dict(best["metrics"])
        elif output_folder(training["jobSpec"]):
            # What an earlier run has left in the same folder is older than this job.
            in_files[name] = (training["jobSpec"], datetime.fromisoformat(job["createTime"]).timestamp())
    if not in_files:
        return found, []
    read, problems = dict[str, dict[str, float]](), list[str]()
    try:
        with storage.store(parent).reader() as reader:
            pool = ThreadPoolExecutor(min(_THREADS, len(in_files)))
            try:
                results = pool.map(partial(_of_run, reader), *zip(*in_files.values(), strict=True))
                for name, (values, problem) in zip(in_files, results, strict=True):
                    if values:
                        read[name] = values
                    if problem:
                        problems.append(f"{name}: its metrics are not read: {problem}")
            finally:
                pool.shutdown(cancel_futures=True)
    except UploadFailed as error:
        problems.append(f"metrics are not read: {error}")
    # Many jobs that end at once would flood the screen.
    lines = [_line(name, values) for name, values in read.items()] if len(read) <= MAX_NAMES else []
    return found | read, [*lines, *problems[:MAX_NAMES]]


def without_model(parent: str, jobs: Mapping[str, JobJson]) -> list[str]:
    """Return those of the jobs that have succeeded, by name, and have written nothing to the folder of their model.

    What an earlier run has left there does not count. A store that refuses says nothing of any job.
    """
    folders: dict[str, tuple[str, float]] = {}
    for name, job in jobs.items():
        # A pipeline that uploads a model fails without one.
        if "modelToUpload" not in job and (folder := job_results(job).get(MODEL_DIR)):
            folders[name] = (folder, datetime.fromisoformat(job["createTime"]).timestamp())
    if not folders:
        return []

    def is_empty(folder: str, since: float) -> bool:
        return not any(each.updated >= since for each in reader.objects(folder, MAX_LISTED))

    try:
        with storage.store(parent).reader() as reader, ThreadPoolExecutor(min(_THREADS, len(folders))) as pool:
            found = [*pool.map(is_empty, *zip(*folders.values(), strict=True))]
    except UploadFailed:
        return []
    return [name for name, empty in zip(folders, found, strict=True) if empty]


def _of_run(reader: Reader, job_spec: Mapping[str, Any], since: float) -> tuple[dict[str, float], str]:
    """Return the metrics of a run, or what is wrong with its file. Raises UploadFailed."""
    try:
        return metrics.of_run(reader, job_spec, since), ""
    except ValueError as error:
        return {}, str(error)


def _line(name: str, values: Mapping[str, float]) -> str:
    """Return what a run prints of a job's metrics in a file."""
    shown = ", ".join(f"{key} {value:.4g}" for key, value in [*values.items()][:MAX_SHOWN])
    more = len(values) - MAX_SHOWN
    return f"{name}: {shown}{f' and {more} more' if more > 0 else ''}"


def keep(results: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Return results with what is read only once, from earlier ones of the same jobs: metrics, and what they took."""
    kept = {
        name: {key: each[key] for key in ("metrics", TOOK, NO_MODEL) if key in each} for name, each in earlier.items()
    }
    return {name: {**result, **kept.get(name, {})} for name, result in results.items()}
