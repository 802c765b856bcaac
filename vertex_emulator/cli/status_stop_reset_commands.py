"""The commands `status`, `stop` and `reset`."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from vertex_emulator.cli.emulator_requests import send_request
from vertex_emulator.data_folder import DataFolder, Endpoint, acquire_lock, is_locked, require_endpoint
from vertex_emulator.errors import EmulatorError, EmulatorNotRunning, ExecutorUnavailable
from vertex_emulator.faults import describe_fault
from vertex_emulator.removal import remove_tree
from vertex_emulator.replicas.docker.docker_executor import DockerExecutor

_STOP_SECONDS = 30.0


def fetch_and_iterate_status_lines(data_path: Path, as_json: bool = False) -> Iterator[str]:
    """Render lines about the emulator that runs on a data folder, or a JSON object. Raises EmulatorNotRunning."""
    endpoint = require_endpoint(data_path)
    status = send_request(endpoint, "/vertex_emulator/status")
    readiness = send_request(endpoint, "/readyz")
    if as_json:
        process = {"url": endpoint.url, "pid": endpoint.pid, "version": endpoint.version}
        yield json.dumps({**process, "docker": readiness, **status}, indent=2)
        return
    counts = ", ".join(f"{count} {state.removeprefix('JOB_STATE_').lower()}" for state, count in status["jobs"].items())
    yield f"running    {endpoint.url} (pid {endpoint.pid}, version {endpoint.version})"
    yield f"data       {status['data']}"
    yield f"docker     {'answers' if readiness['status'] == 'ok' else readiness['reason']}"
    yield f"replicas   {status['replicas']['running']} running, room for {status['replicas']['capacity']}"
    yield f"network    {status['network']}"
    yield f"jobs       {counts or 'none'}"
    schedules = status["schedules"]
    if schedules["active"] or schedules["paused"]:
        yield f"schedules  {schedules['active']} active, {schedules['paused']} paused"
    if schedules["clock"]:
        yield f"clock      of schedules: stands at {schedules['clock']}"
    for pending in status["faults"]:
        yield f"injected   {describe_fault(pending['fault'], pending['remaining'])}"


def count_unfinished_jobs(endpoint: Endpoint) -> int:
    """Return how many jobs have not ended, those of trials included. Raises EmulatorError."""
    return int(send_request(endpoint, "/vertex_emulator/status")["unfinished"])


def stop_emulator_and_describe(data_path: Path, only_if_idle: bool) -> str:
    """Stop the emulator that runs on a data folder and return a line about it; containers keep running.

    With `only_if_idle` it is left running while jobs are active. Raises EmulatorError if it does not stop.
    """
    try:
        endpoint = require_endpoint(data_path)
    except EmulatorNotRunning:
        return f"no emulator is running on {data_path}"
    if only_if_idle and (active := count_unfinished_jobs(endpoint)):
        return f"left running: {active} jobs have not ended"
    # No signal: in a container, or seen from one, another process may have its number.
    with suppress(EmulatorNotRunning):  # it is ending already
        send_request(endpoint, "/vertex_emulator/stop", {})
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        if not is_locked(data_path / "lock"):
            return "stopped"
        time.sleep(0.02)
    raise EmulatorError(f"the emulator (pid {endpoint.pid}) does not stop; end it with kill -9, which loses no jobs")


def reset_data_folder_and_describe(data_path: Path) -> str:
    """Remove what a data folder has except its buckets, with all containers, and return a line about it.

    Raises what `remove_containers_and_data_except_buckets` raises.
    """
    if not data_path.is_dir():
        return f"there is nothing at {data_path}"
    remove_containers_and_data_except_buckets(data_path)
    return f"reset {data_path}: removed jobs, containers, logs and schedules, kept buckets"


def remove_containers_and_data_except_buckets(data_path: Path) -> None:
    """Remove all jobs with their containers and logs, models and schedules, and keep buckets.

    Raises StartError while an emulator runs, and EmulatorError if Docker does not answer.
    """
    data = DataFolder.open(data_path)
    with acquire_lock(data.lock):
        emulator_id = _read_emulator_id_or_none(data.database)
        if emulator_id is not None:
            executor = DockerExecutor(emulator_id, on_pulled=lambda _: None)
            try:
                for job in executor.list_ids_of_jobs_with_containers_or_network():
                    executor.remove_containers_and_network(job)
                executor.remove_firewall_rules_unless_containers_remain()
            except ExecutorUnavailable as error:
                raise EmulatorError(f"nothing was reset, because containers cannot be removed: {error}") from error
        for suffix in ("", "-wal", "-shm"):
            data.database.with_name(data.database.name + suffix).unlink(missing_ok=True)
        for folder in (data.logs, data.trials):
            with suppress(OSError):
                remove_tree(folder)


def _read_emulator_id_or_none(database_path: Path) -> str | None:
    """Read the id that labels this folder's containers, from a database of any version or a damaged one."""
    with closing(sqlite3.connect(database_path)) as connection:
        try:
            row = connection.execute("SELECT value FROM settings WHERE key = 'emulator'").fetchone()
        except sqlite3.Error:
            return None
    return row[0] if row else None
