"""What many jobs and a long study cost: lists page by page, searches, and what the emulator's page loads."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.emulator import Emulator, data_folder, running
from benchmarks.measure import row, seconds
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE, Kind
from vertex_api.pipelines import CUSTOM_TASK
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import RUNNING, SUCCEEDED, Job, Trial
from vertex_emulator.names import Location, new_id
from vertex_emulator.scheduling.study import Reconciler

JOBS = {CUSTOM_JOB: 10_000, HYPERPARAMETER_TUNING_JOB: 1_000, TRAINING_PIPELINE: 1_000}
TRIALS = 10
STUDY_TRIALS, STUDY_MEASUREMENTS, PARALLEL = 2_000, 20, 10
MAX_MS, MAX_STUDY_MS = 50, 1000
REPEATS = 5
_LOCATION = Location("benchmark", "us-central1")
_PARENT = "v1/projects/benchmark/locations/us-central1"
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


def rows() -> Iterator[str]:
    """Render a line per kind of job, with the times of its pages, and lines for single requests and steps."""
    with data_folder() as data:
        study_id = _add_jobs(data)
        with running(data) as emulator:
            emulator.call("GET", "readyz")  # waits until the emulator has listed Docker's containers
            time.sleep(1)
            for kind in KINDS.values():
                before = emulator.processor_seconds()
                times = _page_times(emulator, kind)
                processor = (emulator.processor_seconds() - before) * 1000 / len(times)
                jobs = f"{JOBS[kind]:,} {kind.collection}"
                jobs += f" of {TRIALS} trials" * (kind == HYPERPARAMETER_TUNING_JOB)
                note = (
                    f"median of {len(times)} pages; slowest {max(times):.1f} ms; of a processor {processor:.1f} ms each"
                )
                yield row(jobs, statistics.median(times), "ms", MAX_MS, note=note)
            yield from _request_rows(emulator, study_id)
    with data_folder() as data:
        yield from _step_rows(DataFolder.open(data))


def _request_rows(emulator: Emulator, study_id: str) -> Iterator[str]:
    custom_jobs, label = f"{_PARENT}/customJobs", quote('labels.number="0"')
    study = f"a study of {STUDY_TRIALS:,} trials"
    for text, path, limit in (
        ("a search for the oldest job by its label", f"{custom_jobs}?filter={label}", MAX_MS),
        ("the first 100 jobs, as the page loads them", "vertex_emulator/page/jobs", MAX_MS),
        ("vertex-emulator status", "vertex_emulator/status", MAX_MS),
        (
            f"{study}, as the page loads it",
            f"vertex_emulator/page/jobs/hyperparameterTuningJobs/{study_id}",
            MAX_STUDY_MS,
        ),
        (
            f"{study}, as clients get it",
            f"v1/projects/other/locations/us-central1/hyperparameterTuningJobs/{study_id}",
            MAX_STUDY_MS,
        ),
    ):
        times = [seconds(lambda: emulator.call("GET", path)) * 1000 for _ in range(REPEATS)]  # noqa: B023
        yield row(text, statistics.median(times), "ms", limit)


def _step_rows(data: DataFolder) -> Iterator[str]:
    """Measure the processor time of steps of a long study with early stopping."""
    database = Database(data.database)
    with database.write() as transaction:
        study = _add_study(transaction, STUDY_TRIALS + PARALLEL, {"medianAutomatedStoppingSpec": {}})
        _add_trials(transaction, study, STUDY_TRIALS, STUDY_MEASUREMENTS)
        for number in range(STUDY_TRIALS + 1, STUDY_TRIALS + PARALLEL + 1):
            job = transaction.jobs.add(new_id(), CUSTOM_JOB, study.location, _SPECS[CUSTOM_JOB], study.id, number)
            transaction.jobs.update(job, state=RUNNING, started=job.created)
            transaction.trials.add(Trial(study.id, number, "ACTIVE", {"x": 0.5}, job.id))
    reconciler = Reconciler(database, data, wake=lambda _: None)
    times = []
    for _ in range(1 + REPEATS):
        begin = time.process_time()
        reconciler.advance(study)
        times.append((time.process_time() - begin) * 1000)
    database.close()
    text = "the first step of a study with early stopping"
    yield row(text, times[0], "ms", MAX_STUDY_MS, note="of a processor, once")
    text = f"each further step, {STUDY_TRIALS:,} trials"
    yield row(text, statistics.median(times[1:]), "ms", MAX_MS, note="of a processor, every second")


def _page_times(emulator: Emulator, kind: Kind) -> list[float]:
    """List all jobs of a kind, and return the milliseconds of each page."""
    times, token, seen = [], "", 0
    while True:
        begin = time.perf_counter()
        path = f"{_PARENT}/{kind.collection}?pageSize=100&pageToken={token}"
        reply = emulator.call("GET", path)
        times.append((time.perf_counter() - begin) * 1000)
        seen += len(reply[kind.collection])
        token = reply.get("nextPageToken", "")
        if not token:
            assert seen == JOBS[kind], seen
            return times


def _add_jobs(data: Path) -> str:
    """Add all jobs, and return the id of the long study, which is in another project."""
    database = Database(DataFolder.open(data).database)
    with database.write() as transaction:
        for kind, spec in _SPECS.items():
            for number in range(JOBS[kind]):
                labelled = {**spec, "labels": {"number": str(number)}}
                job = transaction.jobs.add(new_id(), kind, _LOCATION, labelled)
                transaction.jobs.update(job, state=SUCCEEDED)
                if kind == HYPERPARAMETER_TUNING_JOB:
                    _add_trials(transaction, job, TRIALS, 1)
        study = _add_study(transaction, STUDY_TRIALS, {})
        transaction.jobs.update(study, state=SUCCEEDED)
        _add_trials(transaction, study, STUDY_TRIALS, STUDY_MEASUREMENTS)
    database.close()
    return study.id


def _add_study(transaction: Transaction, max_trial_count: int, stopping_rule: dict[str, Any]) -> Job:
    spec = {
        **_SPECS[HYPERPARAMETER_TUNING_JOB],
        "studySpec": {**_STUDY, **stopping_rule},
        "maxTrialCount": max_trial_count,
        "parallelTrialCount": PARALLEL,
    }
    location = Location("other", "us-central1")
    return transaction.jobs.add(new_id(), HYPERPARAMETER_TUNING_JOB, location, spec)


def _add_trials(transaction: Transaction, study: Job, count: int, measurements: int) -> None:
    spec = _SPECS[CUSTOM_JOB]
    for number in range(1, count + 1):
        job = transaction.jobs.add(new_id(), CUSTOM_JOB, study.location, spec, study.id, number)
        transaction.jobs.update(job, state=SUCCEEDED)
        values = ({"x": number / count}, job.id, 10**9, 2 * 10**9, (_MEASUREMENT,) * measurements, _MEASUREMENT)
        trial = Trial(study.id, number, "SUCCEEDED", *values)
        transaction.trials.add(trial)
        transaction.trials.update(trial)
