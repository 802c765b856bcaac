"""Trials beside `docker run`: as many containers that do nothing but report, four at a time, either way.

Docker and the base image are needed.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.emulator import ENDED, IMAGE, Emulator, running

CONTAINERS = 100
AT_ONCE = 4
ROUNDS = 3
POLL_SECONDS = 0.02
FOLDER = "/tmp/hypertune"
REPORT = f"""mkdir -p {FOLDER} && echo '{{"timestamp":1.0,"global_step":"1","acc":"0.5"}}' > {FOLDER}/output.metrics"""


def rows(containers: int = CONTAINERS, rounds: int = ROUNDS) -> list[str]:
    """A line for each side, alternating, and the ratio of their medians."""
    data = Path(tempfile.mkdtemp(prefix="vertex-throughput-benchmark-"))
    try:
        with running(data) as emulator:
            pairs = [(plain(containers), trials(emulator, containers)) for _ in range(rounds)]
    finally:
        command = [sys.executable, "-m", "emulator", "reset", "--yes", "--data", str(data)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(data)
    docker, study = (statistics.median(column) for column in zip(*pairs, strict=True))
    return [
        f"docker run, {AT_ONCE} at a time   {docker:6.2f} containers/s   ({containers}, median of {rounds})",
        f"trials, {AT_ONCE} at a time       {study:6.2f} trials/s",
        f"ratio                      {study / docker:6.2f}   at least 0.9",
    ]


def plain(containers: int) -> float:
    """Containers per second with `docker run`."""
    command = ["docker", "run", "--rm", IMAGE, "sh", "-c", REPORT]
    begin = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda _: subprocess.run(command, check=True), range(containers)))
    return containers / (time.perf_counter() - begin)


def trials(emulator: Emulator, count: int) -> float:
    """Trials per second of a study by random search."""
    container = {"imageUri": IMAGE, "command": ["sh", "-c", REPORT]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
    body = {
        "displayName": "throughput",
        "studySpec": {
            "algorithm": "RANDOM_SEARCH",
            "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}],
            "parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 0.0, "maxValue": 1.0}}],
        },
        "maxTrialCount": count,
        "parallelTrialCount": AT_ONCE,
        "trialJobSpec": {"workerPoolSpecs": [pool]},
    }
    begin = time.perf_counter()
    name = emulator.call("POST", "v1/projects/benchmark/locations/us-central1/hyperparameterTuningJobs", body)["name"]
    job = f"emulator/jobs/{name.rpartition('/')[2]}"
    while (state := emulator.call("GET", job)["state"]) not in ENDED:
        time.sleep(POLL_SECONDS)
    if state != "JOB_STATE_SUCCEEDED":
        raise RuntimeError(f"the study ended in {state}")
    return count / (time.perf_counter() - begin)
