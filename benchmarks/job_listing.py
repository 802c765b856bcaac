"""What a list costs: 1,000 jobs of each kind, page by page over HTTP."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.emulator_performance import Emulator, run_emulator, temporary_data_folder
from benchmarks.paired_timing import render_row
from vertex_api.job_kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE, Kind
from vertex_api.training_pipelines.backing_job import CUSTOM_TASK
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import SUCCEEDED, Trial
from vertex_emulator.locations_and_ids import Location, generate_id

JOBS = 1_000
TRIALS = 10
MAX_MS = 50
_LOCATION = Location("benchmark", "us-central1")
_POOL = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": 1,
    "containerSpec": {"imageUri": "trainer:1", "args": ["--epochs=5"], "env": [{"name": "A", "value": "b"}]},
}
_STUDY = {
    "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}],
    "parameters": [{"parameterId": "x", "doubleValueSpec": {"maxValue": 1.0}}],
}
_MEASUREMENT = {"stepCount": 1, "elapsedDuration": "1.0s", "metrics": [{"metricId": "acc", "value": 0.5}]}
_SPECS: dict[Kind, dict[str, Any]] = {
    CUSTOM_JOB: {"displayName": "a job", "jobSpec": {"workerPoolSpecs": [_POOL]}},
    HYPERPARAMETER_TUNING_JOB: {
        "displayName": "a study",
        "studySpec": _STUDY,
        "maxTrialCount": TRIALS,
        "parallelTrialCount": 1,
        "trialJobSpec": {"workerPoolSpecs": [_POOL]},
    },
    TRAINING_PIPELINE: {
        "displayName": "a pipeline",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {"workerPoolSpecs": [_POOL]},
    },
}


def yield_benchmark_rows() -> Iterator[str]:
    """Render a line per kind of job: the times of the slowest page and of the median one."""
    with temporary_data_folder() as data:
        _add_jobs(data)
        with run_emulator(data) as emulator:
            emulator.call("GET", "readyz")  # waits until the emulator has listed Docker's containers
            time.sleep(1)
            for kind in KINDS.values():
                times = _time_pages(emulator, kind)
                jobs = f"{JOBS:,} {kind.collection}" + (f" of {TRIALS} trials" * (kind == HYPERPARAMETER_TUNING_JOB))
                note = f"slowest of {len(times)} pages; median {statistics.median(times):.1f} ms"
                yield render_row(jobs, max(times), "ms", MAX_MS, note=note)


def _time_pages(emulator: Emulator, kind: Kind) -> list[float]:
    """List all jobs of a kind, and return the milliseconds of each page."""
    times, token, seen = [], "", 0
    while True:
        begin = time.perf_counter()
        path = f"v1/projects/benchmark/locations/us-central1/{kind.collection}?pageSize=100&pageToken={token}"
        reply = emulator.call("GET", path)
        times.append((time.perf_counter() - begin) * 1000)
        seen += len(reply[kind.collection])
        token = reply.get("nextPageToken", "")
        if not token:
            assert seen == JOBS, seen
            return times


def _add_jobs(data: Path) -> None:
    database = Database(DataFolder.open(data).database)
    with database.write_transaction() as transaction:
        for kind, spec in _SPECS.items():
            for _ in range(JOBS):
                job = transaction.add_job_and_consume_fault(generate_id(), kind, _LOCATION, spec)
                transaction.update_and_get_job(job, state=SUCCEEDED)
                if kind == HYPERPARAMETER_TUNING_JOB:
                    _add_trials(transaction, job.id)
    database.close()


def _add_trials(transaction: Transaction, study_id: str) -> None:
    for number in range(1, TRIALS + 1):
        spec = _SPECS[CUSTOM_JOB]
        job = transaction.add_job_and_consume_fault(generate_id(), CUSTOM_JOB, _LOCATION, spec, study_id, number)
        transaction.update_and_get_job(job, state=SUCCEEDED)
        trial = Trial(
            study_id, number, "SUCCEEDED", {"x": 0.5}, job.id, 10**9, 2 * 10**9, (_MEASUREMENT,), _MEASUREMENT
        )
        transaction.add_trial(trial)
        transaction.update_trial(trial)
