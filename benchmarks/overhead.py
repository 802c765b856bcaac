"""What the emulator costs: its start and its memory, and jobs and trials beside `docker run` of the same program.

Docker and the base image are needed. Takes about two minutes.
"""

import statistics
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from benchmarks.emulator import IMAGE, Emulator, data_folder, running
from benchmarks.measure import medians, row, seconds

PROGRAM = ["python3", "-c", "pass"]
# A trial without a measurement would have failed; a plain run writes the same line somewhere else.
METRIC = '{"timestamp": 1, "trial": "1", "global_step": "1", "score": "1"}'
MEASURED = ["sh", "-c", f"echo '{METRIC}' > ${{CLOUD_ML_HP_METRIC_FILE:-/tmp/metric}}"]
RUNS = 10
TRIALS, PARALLEL = 100, 4
STUDY_POLL_SECONDS = 0.2  # a study with its trials is a large answer, and Google's own client asks every five seconds


def rows() -> Iterator[str]:
    """Measure everything, and render a line per measurement."""
    with data_folder() as data:
        starts = []
        for _ in range(2):
            with running(data) as emulator:
                starts.append(emulator.ready_seconds)
        with running(data) as emulator:
            starts.append(emulator.ready_seconds)
            time.sleep(1)  # idle means: the first look at Docker is over
            idle = emulator.memory()
            note = f"median of {len(starts)}"
            yield row("start to /healthz", statistics.median(starts), "s", 1, note=note)
            yield row("resident memory, idle", idle, "MB", 80)
            yield from _job_rows(emulator)
            yield from _trial_rows(emulator)
            yield row("resident memory afterwards", emulator.memory(), "MB")


def _job_rows(emulator: Emulator) -> Iterator[str]:
    run_container, run_job = partial(_run_container, PROGRAM), partial(_run_job, emulator)
    docker, job = medians(run_container, run_job, RUNS, warm_ups=1)
    yield row("docker run", docker, "s", note=f"median of {RUNS}, alternating")
    yield row("submit to terminal state", job, "s")
    yield row("difference", job - docker, "s", 0.3)


def _trial_rows(emulator: Emulator) -> Iterator[str]:
    """Measure half of the plain runs before the trials and half after them, because a machine's speed changes."""

    def run_half() -> None:
        with ThreadPoolExecutor(PARALLEL) as threads:
            list(threads.map(_run_container, [MEASURED] * (TRIALS // 2)))

    run_study = partial(_run_study, emulator)
    before, trials, after = map(seconds, (run_half, run_study, run_half))
    plain = before + after
    yield row(f"{TRIALS} docker run, {PARALLEL} at a time", plain, "s")
    yield row(f"{TRIALS} trials, {PARALLEL} at a time", trials, "s")
    yield row("ratio of throughputs", plain / trials, "", at_least=0.9)


def _run_job(emulator: Emulator) -> None:
    """Submit a job and wait until it ends."""
    emulator.submit("customJobs", _job(PROGRAM))


def _run_study(emulator: Emulator) -> None:
    """Submit a tuning job with TRIALS trials and wait until it ends."""
    study = {
        "algorithm": "RANDOM_SEARCH",
        "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
        "parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}],
    }
    body = {
        "displayName": "benchmark",
        "studySpec": study,
        "trialJobSpec": _job(MEASURED)["jobSpec"],
        "maxTrialCount": TRIALS,
        "parallelTrialCount": PARALLEL,
    }
    emulator.submit("hyperparameterTuningJobs", body, STUDY_POLL_SECONDS)


def _job(program: list[str]) -> dict[str, Any]:
    container = {"imageUri": IMAGE, "command": program}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
    return {"displayName": "benchmark", "jobSpec": {"workerPoolSpecs": [pool]}}


def _run_container(program: list[str]) -> None:
    """Run a program with `docker run`."""
    subprocess.run(["docker", "run", "--rm", IMAGE, *program], check=True)
