"""The commands that talk to a running emulator, or clean up after one."""

import http.client
import json
import os
import shutil
import signal
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vertex_emulator import injected_faults as faults
from vertex_emulator.cli.job_log import JobLog
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.endpoint import Endpoint, acquire_lock, find_running_emulator
from vertex_emulator.errors import EmulatorError, EmulatorNotRunning, ExecutorUnavailable, StartError
from vertex_emulator.replicas.docker.executor import DockerExecutor

_STOP_SECONDS = 10.0


def status(data: Path) -> Iterator[str]:
    """Lines about the running emulator. Raises NotRunning."""
    endpoint = find_running_emulator(data)
    found = ask(endpoint, "/vertex_emulator/status")
    ready = ask(endpoint, "/readyz")
    yield f"running    {endpoint.url} (pid {endpoint.pid}, version {endpoint.version})"
    yield f"data       {found['data']}"
    yield f"docker     {'answers' if ready['status'] == 'ok' else ready['reason']}"
    yield f"replicas   {found['replicas']['running']} running, room for {found['replicas']['capacity']}"
    counts = ", ".join(f"{count} {state.removeprefix('JOB_STATE_').lower()}" for state, count in found["jobs"].items())
    yield f"jobs       {counts or 'none'}"
    for each in found["faults"]:
        yield f"injected   {faults.describe_fault(each['fault'], each['remaining'])}"


def stop(data: Path, if_idle: bool) -> str:
    """Stop the running emulator, if any; with `if_idle` not while jobs are active. Containers go on."""
    try:
        endpoint = find_running_emulator(data)
    except EmulatorNotRunning:
        return f"no emulator is running on {data}"
    if if_idle:
        active = ask(endpoint, "/vertex_emulator/status")["unfinished"]
        if active:
            return f"left running: {active} jobs have not ended"
    os.kill(endpoint.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        try:
            acquire_lock(data / "lock").close()
        except StartError:
            time.sleep(0.02)
        else:
            return "stopped"
    raise EmulatorError(f"the emulator (pid {endpoint.pid}) does not stop; kill -9 does no harm, its jobs are kept")


def logs(
    data: Path, job: str, follow: bool, task: str | None = None, trial: int | None = None, raw: bool = False
) -> Iterator[str]:
    """The log of a job, by id or full name; see JobLog. Raises NotRunning, EmulatorError, JobFailed."""
    find_running_emulator(data)
    log = JobLog(lambda path, body: ask(find_running_emulator(data), path, body), job, task, trial, raw)
    return log.follow() if follow else log.lines()


def reset(root: Path) -> str:
    """Remove all jobs with their containers and logs; buckets stay. Raises StartError while an emulator runs."""
    if not root.is_dir():
        return f"there is nothing at {root}"
    data = DataFolder.open(root)
    with acquire_lock(data.lock):
        emulator_id = _known_id(data)
        if emulator_id is not None:
            executor = DockerExecutor(emulator_id, pulled=lambda _: None)
            try:
                for job in executor.list_jobs():
                    executor.remove_job(job)
            except ExecutorUnavailable as error:
                raise EmulatorError(f"containers cannot be removed, nothing was reset: {error}") from error
        for suffix in ("", "-wal", "-shm"):
            data.database.with_name(data.database.name + suffix).unlink(missing_ok=True)
        for folder in (data.logs, data.trials):
            shutil.rmtree(folder, ignore_errors=True)
    return f"reset {root}: jobs, containers and logs are gone, buckets are left"


def _known_id(data: DataFolder) -> str | None:
    if not data.database.exists():
        return None
    try:
        database = Database(data.database)
    except StartError:
        connection = sqlite3.connect(data.database)
        try:
            row = connection.execute("SELECT value FROM settings WHERE key = 'emulator'").fetchone()
        except sqlite3.Error:
            return None
        finally:
            connection.close()
        return row[0] if row else None
    with database.read_transaction() as transaction:
        found = transaction.get_setting("emulator")
    database.close()
    return found


def ask(endpoint: Endpoint, path: str, body: Mapping[str, Any] | None = None, method: str | None = None) -> Any:
    """What a running emulator answers to GET, or to POST with a body. Raises EmulatorError, NotRunning."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(endpoint.url + path, data, method=method)
    # No proxy: the emulator is on this machine, whatever http_proxy says.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        answer = json.load(error)
        if "error" in answer:
            raise EmulatorError(answer["error"]["message"]) from error
        return answer
    except (OSError, http.client.HTTPException) as error:
        raise EmulatorNotRunning(f"the emulator at {endpoint.url} does not answer: {error}") from error
