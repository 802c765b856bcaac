"""What the emulator costs: its start and memory, jobs and trials next to `docker run` of the same program, logs.

Docker and the base image are needed. Takes about two minutes.
"""

import statistics
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.emulator_process import IMAGE, Emulator, run_emulator, temporary_data_folder
from benchmarks.measurements import measure_call_seconds, measure_medians_alternately, render_row

PROGRAM = ["python3", "-c", "pass"]
# A trial without a measurement would have failed; a plain run writes the same line somewhere else.
METRIC = '{"timestamp": 1, "trial": "1", "global_step": "1", "score": "1"}'
MEASURED = ["sh", "-c", f"echo '{METRIC}' > ${{CLOUD_ML_HP_METRIC_FILE:-/tmp/metric}}"]
RUNS = 10
TRIALS, PARALLEL = 100, 4
LINES = 100_000
STUDY_POLL_SECONDS = 0.2  # a study with its trials is a large answer, and Google's own client asks every five seconds


def yield_benchmark_rows() -> Iterator[str]:
    """Measure everything, and render a line per measurement."""
    with temporary_data_folder() as data:
        starts = []
        for _ in range(2):
            with run_emulator(data) as emulator:
                starts.append(emulator.ready_seconds)
        with run_emulator(data) as emulator:
            starts.append(emulator.ready_seconds)
            time.sleep(1)  # idle means: the first look at Docker is over
            idle = emulator.get_resident_megabytes()
            note = f"median of {len(starts)}"
            yield render_row("start to /healthz", statistics.median(starts), "s", 1, note=note)
            yield render_row("resident memory, idle", idle, "MB", 80)
            yield from _yield_overhead_rows(emulator)
            yield from _yield_rows_of_docker_runs_and_trials(emulator)
            yield render_row("resident memory afterwards", emulator.get_resident_megabytes(), "MB")
    with temporary_data_folder() as data:
        job_id = _add_job_with_log_and_get_id(data)
        with run_emulator(data) as emulator:
            yield from _yield_log_page_rows(emulator, job_id)


def _yield_overhead_rows(emulator: Emulator) -> Iterator[str]:
    run_container, run_job = partial(_run_container, PROGRAM), partial(_submit_job_and_await_success, emulator)
    docker, job = measure_medians_alternately(run_container, run_job, RUNS, warm_ups=1)
    yield render_row("docker run", docker, "s", note=f"median of {RUNS}, alternating")
    yield render_row("submit to terminal state", job, "s")
    yield render_row("difference", job - docker, "s", 0.3)


def _yield_rows_of_docker_runs_and_trials(emulator: Emulator) -> Iterator[str]:
    """Measure half of the plain runs before the trials and half after them, because a machine's speed changes."""

    def run_half_of_containers() -> None:
        with ThreadPoolExecutor(PARALLEL) as threads:
            list(threads.map(_run_container, [MEASURED] * (TRIALS // 2)))

    run_study = partial(_submit_study_and_await_success, emulator)
    before, trials, after = map(measure_call_seconds, (run_half_of_containers, run_study, run_half_of_containers))
    plain = before + after
    yield render_row(f"{TRIALS} docker run, {PARALLEL} at a time", plain, "s")
    yield render_row(f"{TRIALS} trials, {PARALLEL} at a time", trials, "s")
    yield render_row("ratio of throughputs", plain / trials, "", at_least=0.9)


def _submit_job_and_await_success(emulator: Emulator) -> None:
    """Submit a job and wait until it ends."""
    emulator.submit_and_await_success("customJobs", _build_job(PROGRAM))


def _submit_study_and_await_success(emulator: Emulator) -> None:
    """Submit a tuning job with TRIALS trials and wait until it ends."""
    study = {
        "algorithm": "RANDOM_SEARCH",
        "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
        "parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}],
    }
    body = {
        "displayName": "benchmark",
        "studySpec": study,
        "trialJobSpec": _build_job(MEASURED)["jobSpec"],
        "maxTrialCount": TRIALS,
        "parallelTrialCount": PARALLEL,
    }
    emulator.submit_and_await_success("hyperparameterTuningJobs", body, STUDY_POLL_SECONDS)


def _yield_log_page_rows(emulator: Emulator, job_id: str) -> Iterator[str]:
    body = {"filter": f'resource.labels.job_id="{job_id}"', "pageSize": 1000, "pageToken": ""}
    pages = []
    while True:
        begin = time.perf_counter()
        reply = emulator.call("POST", "v2/entries:list", body)
        pages.append((time.perf_counter() - begin) * 1000)
        body["pageToken"] = reply.get("nextPageToken", "")
        if not body["pageToken"]:
            break
    tenth = len(pages) // 10
    first, last = statistics.median(pages[:tenth]), statistics.median(pages[-tenth:])
    note = f"first tenth {first:.0f}, last tenth {last:.0f}: every page costs the same"
    yield render_row(f"1,000 of {LINES:,} log lines", statistics.median(pages), "ms", note=note)


def _add_job_with_log_and_get_id(data: Path) -> str:
    """Add an ended job with a saved log, and return its id."""
    from vertex_api.job_kinds import CUSTOM_JOB
    from vertex_emulator.data_folder import DataFolder
    from vertex_emulator.database import Database
    from vertex_emulator.database.records import SUCCEEDED, Ending, Replica
    from vertex_emulator.locations_and_ids import Location, generate_id
    from vertex_emulator.replicas import saved_logs as logs
    from vertex_emulator.replicas.executor_protocol import LogLine
    from vertex_emulator.timestamps import now_ns

    folder = DataFolder.create_or_open_private(data)
    database = Database(folder.database)
    begin = now_ns()
    with database.write_transaction() as transaction:
        location = Location("benchmark", "us-central1")
        job = transaction.add_job_and_consume_fault(generate_id(), CUSTOM_JOB, location, _build_job(PROGRAM))
        transaction.end_job_and_log_outcome(job, Ending(SUCCEEDED, 0, "", now_ns()), started=job.created)
    lines = (LogLine(begin + i, "o", f"epoch {i}: loss 0.1234, accuracy 0.9876") for i in range(LINES))
    logs.save_log(folder.logs, job.id, Replica(0, 0), lines)
    database.close()
    return job.id


def _build_job(program: list[str]) -> dict[str, Any]:
    container = {"imageUri": IMAGE, "command": program}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
    return {"displayName": "benchmark", "jobSpec": {"workerPoolSpecs": [pool]}}


def _run_container(program: list[str]) -> None:
    """Run a program with `docker run`."""
    subprocess.run(["docker", "run", "--rm", IMAGE, *program], check=True)
