"""What the emulator costs: its start, its idle memory, and a job's time next to `docker run` of the same image.

Docker and the base image are needed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IMAGE = "python:3.11-slim-bookworm"
PROGRAM = ["python3", "-c", "pass"]
RUNS = 10
POLL_SECONDS = 0.01
ENDED = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED")


@dataclass(frozen=True)
class Emulator:
    """A running emulator; `ready_seconds` passed between its start and its first answer on /healthz."""

    process: subprocess.Popen[bytes]
    url: str
    ready_seconds: float

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def resident_megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def run_job(self) -> float:
        """Seconds from submitting a job to seeing that it has ended."""
        container = {"imageUri": IMAGE, "command": PROGRAM}
        pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
        body = {"displayName": "benchmark", "jobSpec": {"workerPoolSpecs": [pool]}}
        begin = time.perf_counter()
        name = self.call("POST", "v1/projects/benchmark/locations/us-central1/customJobs", body)["name"]
        while self.call("GET", f"v1/{name}")["state"] not in ENDED:
            time.sleep(POLL_SECONDS)
        return time.perf_counter() - begin


def rows(runs: int = RUNS) -> list[str]:
    """A line for each measurement: start, memory, and `docker run` beside a job that does the same."""
    data = Path(tempfile.mkdtemp(prefix="vertex-emulator-benchmark-"))
    try:
        with running(data) as emulator:
            time.sleep(1)  # idle means: the first look at Docker is over
            idle = emulator.resident_megabytes()
            run_container()
            emulator.run_job()
            pairs = [(run_container(), emulator.run_job()) for _ in range(runs)]
            used = emulator.resident_megabytes()
        starts = [emulator.ready_seconds]
        for _ in range(2):
            with running(data) as again:
                starts.append(again.ready_seconds)
    finally:
        command = [sys.executable, "-m", "emulator", "reset", "--yes", "--data", str(data)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(data)
    docker, job = (statistics.median(column) for column in zip(*pairs, strict=True))
    return [
        f"start to /healthz          {statistics.median(starts):6.2f} s   at most 1 (median of {len(starts)})",
        f"resident memory, idle      {idle:6.0f} MB  at most 80",
        f"resident memory, {runs:3} jobs  {used:6.0f} MB",
        f"docker run                 {docker:6.3f} s   (median of {runs}, alternating)",
        f"submit to terminal state   {job:6.3f} s",
        f"difference                 {job - docker:+6.3f} s   at most 0.5",
    ]


@contextmanager
def running(data: Path) -> Iterator[Emulator]:
    """An emulator on a data folder, stopped in the end."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "emulator", "serve", "--data", str(data)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        emulator = None
        while emulator is None:
            if time.perf_counter() - begin > 30:
                raise RuntimeError("the emulator does not start")
            emulator = _answering(process, data, begin)
            time.sleep(0.005)
        yield emulator
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def run_container() -> float:
    """Seconds of `docker run` of the same program."""
    begin = time.perf_counter()
    subprocess.run(["docker", "run", "--rm", IMAGE, *PROGRAM], check=True)
    return time.perf_counter() - begin


def _answering(process: subprocess.Popen[bytes], data: Path, begin: float) -> Emulator | None:
    try:
        url = json.loads((data / "endpoint.json").read_text())["url"]
        with urllib.request.urlopen(f"{url}/healthz", timeout=5):
            return Emulator(process, url, time.perf_counter() - begin)
    except (OSError, ValueError):
        return None
