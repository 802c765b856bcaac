"""A server in place of the emulator: it keeps jobs and schedules, and runs nothing.

A job has the state that its display name ends with: `train-running` is JOB_STATE_RUNNING, and stays so. Others have
`other_state`.
"""

import fcntl
import itertools
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.standins.json_answers import send_json

STATES = ("running", "queued", "succeeded", "failed")
_VERSION = "0.0-standin"
_COLLECTIONS = ("customJobs", "hyperparameterTuningJobs", "trainingPipelines")
_JOB = re.compile(rf"/v1/(?P<parent>projects/[^/]+/locations/[^/]+)/(?P<kind>{'|'.join(_COLLECTIONS)})")


class Training(ThreadingHTTPServer):
    """Serves as the emulator of a data folder. `calls` are the changes: verbs (POST, cancel, DELETE) and names.

    As long as it is not `listing`, no job can be found by its labels.
    """

    daemon_threads = True

    def __init__(self, data: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.jobs: dict[str, dict[str, Any]] = {}
        self.schedules: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str]] = []
        self.listing = True
        self.other_state = "PENDING"
        self.numbers = itertools.count(1000)
        self.guard = threading.Lock()
        data.mkdir(mode=0o700, exist_ok=True)
        self._lock = (data / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        host, port = self.server_address[:2]
        endpoint = {"pid": 1, "host": host, "port": port, "url": self.url, "version": _VERSION, "token_file": None}
        (data / "endpoint.json").write_text(json.dumps(endpoint))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def release(self) -> None:
        """End to serve the data folder, as an emulator does that is stopped."""
        self._lock.close()

    def named(self) -> dict[str, list[str]]:
        """Return the resource names of the jobs by display name."""
        found: dict[str, list[str]] = {}
        for name, job in self.jobs.items():
            found.setdefault(job["displayName"], []).append(name)
        return found


class _Handler(BaseHTTPRequestHandler):
    server: Training

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/healthz":
            return self._answer(200, {})
        if path == "/vertex_emulator/status":
            return self._answer(200, {"unfinished": 0})
        if match := _JOB.fullmatch(path):
            if not self.server.listing:
                refusal = {"code": 403, "status": "PERMISSION_DENIED", "message": "no list for you"}
                return self._answer(403, {"error": refusal})
            labels = dict(re.findall(r"labels\.(\w+)%3D%22([^%]*)%22", query))
            prefix = f"{match['parent']}/{match['kind']}/"
            found = [job for name, job in self.server.jobs.items() if name.startswith(prefix)]
            found = [job for job in found if labels.items() <= job.get("labels", {}).items()]
            return self._answer(200, {match["kind"]: found})
        kept = self.server.schedules if path.startswith("/vertex_emulator/") else self.server.jobs
        return self._found(kept.get(path if kept is self.server.schedules else path.removeprefix("/v1/")))

    def do_PUT(self) -> None:
        self.server.calls.append(("PUT", self.path))
        self.server.schedules[self.path] = {**self._body(), "nextTimes": ["2030-01-01T00:00:00Z"], "runs": []}
        self._answer(200, self.server.schedules[self.path])

    def do_POST(self) -> None:
        body = self._body()
        if self.path == "/vertex_emulator/stop":
            self.server.calls.append(("stop", ""))
            self.server.release()
            return self._answer(200, {})
        path = self.path.partition("?")[0]
        if path.endswith(":cancel"):
            name = path.removeprefix("/v1/").removesuffix(":cancel")
            self.server.calls.append(("cancel", name))
            if job := self.server.jobs.get(name):
                job["state"] = job["state"].partition("_STATE_")[0] + "_STATE_CANCELLED"
            return self._found(job and {})
        match = _JOB.match(self.path)
        if match is None:
            return self._found(None)
        with self.server.guard:
            number = next(self.server.numbers)
            name = f"{match['parent']}/{match['kind']}/{number}"
            prefix = "PIPELINE" if match["kind"] == "trainingPipelines" else "JOB"
            state = body["displayName"].rpartition("-")[2].upper()
            known = state.lower() in STATES and not (prefix == "PIPELINE" and state == "QUEUED")
            time = f"2026-01-01T00:00:00.{number:06}Z"
            job = {**body, "name": name, "createTime": time, "updateTime": time}
            job["state"] = f"{prefix}_STATE_{state if known else self.server.other_state}"
            self.server.jobs[name] = job
            self.server.calls.append(("POST", name))
        return self._answer(200, job)

    def do_DELETE(self) -> None:
        name = self.path.removeprefix("/v1/").partition("?")[0]
        self.server.calls.append(("DELETE", name))
        if self.path.startswith("/vertex_emulator/"):
            return self._found(self.server.schedules.pop(name, None))
        if self.server.jobs.pop(name, None) is None:
            return self._found(None)
        done = {"@type": "type.googleapis.com/google.protobuf.Empty"}
        return self._answer(200, {"name": f"{name}/operations/1", "done": True, "response": done})

    def _body(self) -> dict[str, Any]:
        return dict(json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"))

    def _found(self, value: Any) -> None:
        missing = {"error": {"code": 404, "status": "NOT_FOUND", "message": f"{self.path} is not there"}}
        self._answer(404 if value is None else 200, missing if value is None else value)

    def _answer(self, status: int, answer: Any) -> None:
        send_json(self, status, answer)

    def end_headers(self) -> None:
        self.send_header("X-Vertex-Emulator", _VERSION)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serve(data: Path) -> Iterator[Training]:
    """Yield a server in place of the emulator of a data folder."""
    with Training(data) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
            server.release()
