"""Jobs whose containers are hostile, and what becomes of them."""

import random
import socket
import threading
import time
from pathlib import Path
from typing import Any

import requests

from tests.faults.hostile.checks import AnswerChecks
from tests.faults.hostile.clients import SILENCE_SECONDS
from tests.faults.hostile.report import Report
from tests.faults.hostile.request_source import MAX_SECONDS
from tests.vertex_emulator.running import PARENT, RunningEmulator, custom_job, pool
from tests.vertex_emulator.test_studies import study

_IN_FLIGHT = 3
_STEP_SECONDS = 0.2
_COLLECTIONS = ("customJobs", "hyperparameterTuningJobs", "trainingPipelines")
_TRAINER = (Path(__file__).parent / "container.py").read_text()
_ENDED = {f"{kind}_STATE_{state}" for kind in ("JOB", "PIPELINE") for state in ("SUCCEEDED", "FAILED", "CANCELLED")}


class HostileJobs:
    """Some hostile jobs at a time on one emulator, by dice with a seed, until `is_over` is set.

    `secret` is a file, and `port` a port of this machine, which no container must reach.
    """

    def __init__(
        self, emulator: RunningEmulator, seed: int, report: Report, checks: AnswerChecks, is_over: threading.Event
    ) -> None:
        self._emulator, self._report, self._checks, self._is_over = emulator, report, checks, is_over
        self._dice = random.Random(f"{seed} jobs")
        self._http = requests.Session()
        self._http.trust_env = False
        self._cancel_times: dict[str, float] = {}

    def run(self, secret: Path, port: int) -> None:
        """Keep jobs running; cancel those that stay, and delete most that have ended."""
        addresses = ["169.254.169.254:8080", f"172.17.0.1:{port}"]
        addresses.append(f"{socket.gethostbyname(socket.gethostname())}:{port}")
        while not self._is_over.wait(_STEP_SECONDS):
            self._step_jobs()
            if len(self._cancel_times) < _IN_FLIGHT:
                collection, body, seconds = self._build_job([str(secret), *addresses])
                job = self._call("POST", f"{PARENT}/{collection}", body)
                if job is not None:
                    self._cancel_times[job["name"]] = time.monotonic() + seconds
            self._end_other_jobs()

    def end_and_delete_jobs(self) -> bool:
        """Cancel all jobs, those of random requests too, and delete those that have ended; whether none is left."""
        self._cancel_times = dict.fromkeys(self._cancel_times, 0.0)
        self._step_jobs()
        return self._end_other_jobs() and not self._cancel_times

    def _step_jobs(self) -> None:
        self._cancel_times = {name: at for name, at in self._cancel_times.items() if not self._step(name, at)}

    def _end_other_jobs(self) -> bool:
        """Cancel or delete the jobs that random requests have created, and old ones; whether there were none."""
        is_any_left = False
        for collection in _COLLECTIONS:
            for job in (self._call("GET", f"{PARENT}/{collection}") or {}).get(collection, []):
                if job["name"] not in self._cancel_times:
                    is_any_left = True
                    is_over = job["state"] in _ENDED
                    self._call(*(("DELETE", job["name"]) if is_over else ("POST", f"{job['name']}:cancel", {})))
        return not is_any_left

    def _step(self, name: str, cancel_time: float) -> bool:
        """Do what is next for a job; whether that was all."""
        job = self._call("GET", name)
        if job is None:
            self._report.jobs["deleted by a random request"] += 1
            return True
        if job["state"] not in _ENDED:
            if time.monotonic() > cancel_time:
                self._call("POST", f"{name}:cancel", {})
            return False
        self._report.jobs[job["state"].rpartition("_")[2].lower()] += 1
        if any("REACHED" in line for line in self._emulator.lines(name)):
            self._report.wrong.append(f"{name} reached a service of the machine")
        return True

    def _build_job(self, arguments: list[str]) -> tuple[str, Any, float]:
        """A random job: its collection and body, and after how many seconds to cancel it."""
        dice = self._dice
        seconds = dice.uniform(1, 6)
        prefix = f"gs://bucket-{dice.randrange(4)}/{dice.choice(['model', 'target', 'folder/x'])}"
        cancelled_after = seconds + dice.choice([2.0, 10.0, -seconds])
        trainer = pool(_TRAINER, args=[str(dice.random()), str(seconds), *arguments])
        spec: dict[str, Any] = {"baseOutputDirectory": {"outputUriPrefix": prefix}}
        if dice.random() < 0.25:
            body = study(trials=2, parallel=2, trialJobSpec={"workerPoolSpecs": [trainer], **spec})
            return "hyperparameterTuningJobs", body, cancelled_after + seconds
        if dice.random() < 0.5:
            spec = {}
        if dice.random() < 0.2:
            spec["scheduling"] = {"timeout": "3s"}
        return "customJobs", custom_job(*[trainer] * (2 if dice.random() < 0.2 else 1), **spec), cancelled_after

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a successful answer; `None` after another one, which random requests may have caused."""
        started, url = time.monotonic(), f"{self._emulator.url}/v1/{path}"
        reply = self._http.request(method, url, json=body, timeout=SILENCE_SECONDS)
        line = f"{method} {path}"
        self._checks.check_time(started, line, MAX_SECONDS)
        media_type = reply.headers.get("content-type", "")
        answer = self._checks.check_answer(line, b"", reply.status_code, media_type, reply.content)
        return answer if reply.status_code == 200 else None
