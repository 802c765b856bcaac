"""A real emulator process on a data folder of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import requests

from tests.vertex_emulator.preloaded import ForkedProcess

PARENT = "projects/my-project/locations/us-central1"
IMAGE = "python:3.11-slim-bookworm"
ENDED = frozenset({"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"})
PATIENCE_SECONDS = 180.0
Value = TypeVar("Value")
_WAIT_FOR_REPLICAS = """
import os, sys, time
sys.stdout.flush()
replicas = f"/gcs/replicas/{os.environ['CLOUD_ML_JOB_ID']}"
os.makedirs(replicas, exist_ok=True)
open(f"{replicas}/{os.environ['RANK']}", "w").close()
while os.environ["RANK"] == "0" and len(os.listdir(replicas)) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.05)
"""


def until(look: Callable[[], Value], what: str = "it") -> Value:
    """The first true value that `look` gives; fails after three minutes, as a busy machine may need."""
    deadline, pause = time.monotonic() + PATIENCE_SECONDS, 0.02
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)  # most look at an emulator, which takes the processor from what is waited for
    raise AssertionError(f"{what} does not happen")


def command(*arguments: str, data: Path, after: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run `vertex-emulator …` to its end; `after` are arguments that follow its options."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        process = ForkedProcess([*arguments, "--data", str(data), *after], output, errors)
        code = process.wait(PATIENCE_SECONDS)
        return subprocess.CompletedProcess(process.args, code, output.read_text(), errors.read_text())


def pool(script: str, replicas: int = 1, **container: Any) -> dict[str, Any]:
    """A worker pool that runs a Python script."""
    spec = {"imageUri": IMAGE, "command": ["python3", "-c", script], **container}
    return {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": replicas, "containerSpec": spec}


def let_first_replica_end_last(script: str) -> str:
    """Return a script whose first replica, with which a job ends, waits until all others have run it."""
    return script + _WAIT_FOR_REPLICAS


def custom_job(*pools: dict[str, Any], name: str = "a job", labels: dict[str, str] | None = None, **spec: Any) -> Any:
    """The body of a custom job."""
    return {"displayName": name, "labels": labels or {}, "jobSpec": {"workerPoolSpecs": list(pools), **spec}}


def absent(name: str, labels: dict[str, str] | None = None) -> Any:
    """The body of a custom job of an image that is never pulled, so that it fails at once."""
    return custom_job({**pool("pass"), "containerSpec": {"imageUri": "localhost/absent:1"}}, name=name, labels=labels)


class RunningEmulator:
    """The process, its HTTP side, and its folder."""

    process: subprocess.Popen[bytes] | ForkedProcess

    def __init__(
        self, data: Path, *options: str, program: Sequence[str] = (), prepare: Callable[[], object] | None = None
    ) -> None:
        """Start it; `program` are arguments of Python for one that is not as it is installed, `prepare` changes it."""
        self.data = data
        self.program = program
        self.prepare = prepare
        self.options = options
        self.http = requests.Session()
        self.http.trust_env = False
        self.start()

    def start(self) -> None:
        log_path = self.data.parent / f"{self.data.name}.log"
        arguments = ["serve", "--data", str(self.data), *self.options]
        if self.program:
            with log_path.open("a") as log:
                self.process = subprocess.Popen(
                    [sys.executable, *self.program, *arguments], stdout=log, stderr=log, start_new_session=True
                )
        else:
            self.process = ForkedProcess(arguments, log_path, log_path, self.prepare)
        endpoint = self.data / "endpoint.json"

        def announced() -> Any:
            assert self.process.poll() is None, log_path.read_text()
            try:
                found = json.loads(endpoint.read_text())
            except (FileNotFoundError, ValueError):
                return None
            return found if found["pid"] == self.process.pid else None

        self.url = until(announced, "the start")["url"]

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal the process and wait for its end; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def close(self) -> None:
        """Stop it, and remove what it left on the machine."""
        if self.process.poll() is None:
            self.end()
        self.http.close()
        done = command("reset", "--yes", data=self.data)
        assert done.returncode == 0, done.stderr

    def answer(self, path: str) -> requests.Response:
        """The answer to a GET, whatever its status."""
        return self.http.get(f"{self.url}/{path}", timeout=PATIENCE_SECONDS)

    def call(self, method: str, path: str, body: Any = None, expect: int = 200, **options: Any) -> Any:
        """An API call; the reply's JSON."""
        reply = self.http.request(method, f"{self.url}/{path}", json=body, timeout=PATIENCE_SECONDS, **options)
        assert reply.status_code == expect, reply.text
        return reply.json()

    def create(self, body: Any, collection: str = "customJobs") -> str:
        """Submit a job; its name. The bucket for the replicas that wait for each other is made first."""
        if "/gcs/replicas/" in json.dumps(body):
            (self.data / "gcs" / "replicas").mkdir(parents=True, exist_ok=True)
        return str(self.call("POST", f"v1/{PARENT}/{collection}", body)["name"])

    def get(self, name: str) -> Any:
        return self.call("GET", f"v1/{name}")

    def in_state(self, name: str, state: str) -> Any:
        """The job once it is in a state."""
        return until(lambda: (job := self.get(name))["state"] == state and job, f"{name} in {state}")

    def ended(self, name: str) -> Any:
        """The job once it has ended."""
        return until(lambda: (job := self.get(name))["state"] in ENDED and job, f"the end of {name}")

    def lines(self, name: str, condition: str = 'resource.labels.task_name!="service"') -> list[str]:
        """What the containers of a job wrote."""
        return [line_of(entry) for entry in self.entries(name, condition)]

    def trial_jobs(self, study: str) -> dict[str, str]:
        """The names of the jobs of a tuning job's trials, by the trials' ids, as its page has them."""
        view = self.call("GET", f"vertex_emulator/page/jobs/hyperparameterTuningJobs/{study.rpartition('/')[2]}")
        parent = study.rpartition("/hyperparameterTuningJobs/")[0]
        return {trial["id"]: f"{parent}/customJobs/{trial['job']}" for trial in view["study"]["trials"]}

    def objects(self, name: str) -> list[Any]:
        """The JSON objects that the containers of a job wrote."""
        payloads = [entry.get("jsonPayload", {}) for entry in self.entries(name)]
        return [payload for payload in payloads if payload and "attrs" not in payload]

    def entries(self, name: str, condition: str = "") -> list[Any]:
        """Log entries of a job, from all pages: one ends early, even empty, where reading takes long."""
        text = f'resource.type="ml_job" AND resource.labels.job_id="{name.rpartition("/")[2]}"'
        body = {"filter": f"{text} AND {condition}" if condition else text, "pageSize": 1000}
        entries: list[Any] = []
        while True:
            reply = self.call("POST", "v2/entries:list", body)
            entries += reply.get("entries", [])
            if "nextPageToken" not in reply:
                return entries
            body["pageToken"] = reply["nextPageToken"]


def line_of(entry: Any) -> str:
    """The text of a log entry, "" for a JSON object that a container wrote."""
    return str(entry.get("textPayload") or entry.get("jsonPayload", {}).get("message", ""))


def labelled(name: str) -> list[str]:
    """Ids of the containers of a job."""
    label = f"label=vertex-training.emulator.job={name.rpartition('/')[2]}"
    done = subprocess.run(["docker", "ps", "-aq", "--filter", label], capture_output=True, text=True, check=True)
    return done.stdout.split()


def processor_seconds(pid: int) -> float:
    """Processor time that a process has taken: the same however busy the machine is."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_bytes(pid: int) -> int:
    """The most resident memory that a process has had."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10
