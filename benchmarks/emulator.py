"""An emulator in a process of its own, on a temporary data folder."""

import json
import os
import shutil
import signal
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
PARENT = "projects/benchmark/locations/us-central1"
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
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def memory(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def processor_seconds(self) -> float:
        """Return for how long the emulator has used a processor, which other load on the machine hardly changes."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait(self, name: str, poll_seconds: float = POLL_SECONDS) -> None:
        """Wait until a job ends; `RuntimeError` if it does not succeed."""
        while (job := self.call("GET", f"v1/{name}"))["state"] not in ENDED:
            time.sleep(poll_seconds)
        if job["state"] != "JOB_STATE_SUCCEEDED":
            raise RuntimeError(f"{name} did not succeed: {job.get('error')}")

    def submit(self, collection: str, body: dict[str, Any], poll_seconds: float = POLL_SECONDS) -> None:
        """Create a job from its request's body, and wait until it ends; `RuntimeError` if it does not succeed."""
        self.wait(self.call("POST", f"v1/{PARENT}/{collection}", body)["name"], poll_seconds)


@contextmanager
def data_folder() -> Iterator[Path]:
    """Create a data folder, and remove it with its containers at the end."""
    data = Path(tempfile.mkdtemp(prefix="vertex-emulator-benchmark-"))
    try:
        yield data
    finally:
        reset(data)
        shutil.rmtree(data)


def reset(data: Path) -> None:
    """Remove everything in a data folder, and the containers that belong to it."""
    command = [sys.executable, "-m", "vertex_emulator", "reset", "--yes", "--data", str(data)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def running(data: Path) -> Iterator[Emulator]:
    """Run an emulator on a data folder, and stop it at the end."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "vertex_emulator", "serve", "--data", str(data)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while (emulator := _find(process, data, begin)) is None:
            if time.perf_counter() - begin > 30:
                raise RuntimeError("the emulator does not start")
            time.sleep(0.005)
        yield emulator
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


@contextmanager
def full(data: Path) -> Iterator[Emulator]:
    """Run an emulator without room for another job, so that all jobs wait, on a new data folder.

    The job that takes the room is in PARENT. At the end, the folder is emptied and its containers are removed.
    """
    data.mkdir()
    try:
        with running(data) as emulator:
            capacity = emulator.call("GET", "vertex_emulator/status")["replicas"]["capacity"]
            container = {"imageUri": IMAGE, "command": ["sleep", "3600"]}
            pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
            pools = [{**pool, "replicaCount": 1}, {**pool, "replicaCount": capacity - 1}]
            job = {"displayName": "takes all the room", "jobSpec": {"workerPoolSpecs": pools}}
            emulator.call("POST", f"v1/{PARENT}/customJobs", job)
            yield emulator
    finally:
        reset(data)


def _find(process: subprocess.Popen[bytes], data: Path, begin: float) -> Emulator | None:
    try:
        url = json.loads((data / "endpoint.json").read_text())["url"]
        with urllib.request.urlopen(f"{url}/healthz", timeout=5):
            return Emulator(process, url, time.perf_counter() - begin)
    except (OSError, ValueError):
        return None
