"""An emulator whose Docker is gone, at its start and later, or accepts connections and never answers."""

import contextlib
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import requests

from tests.ports import reserve_port
from tests.vertex_emulator.preloaded import ForkedProcess
from tests.vertex_emulator.running import PATIENCE_SECONDS, RunningEmulator, command, custom_job, pool, until
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database


def test_jobs_wait_with_reason_without_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that is gone after the start; there is none for a moment whenever Docker restarts."""
    docker = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{docker}")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(docker))
        listener.listen()
        listener.settimeout(PATIENCE_SECONDS)
        process = ForkedProcess(["serve", "--data", str(tmp_path / "data")], tmp_path / "log", tmp_path / "log")
        listener.accept()[0].close()
        docker.unlink()
    try:
        until((tmp_path / "data" / "endpoint.json").exists, "the start")
        emulator = RunningEmulator.__new__(RunningEmulator)
        emulator.__dict__.update(json.loads((tmp_path / "data" / "endpoint.json").read_text()))
        emulator.http = requests.Session()
        name = emulator.create(custom_job(pool("pass")))
        until(lambda: emulator.entries(name, 'textPayload:"Waiting for Docker*"'), "the reason")
        assert emulator.get(name)["state"] in ("JOB_STATE_QUEUED", "JOB_STATE_PENDING")
        assert emulator.call("GET", "readyz", expect=503)["status"] == "unavailable"
        assert emulator.call("GET", "healthz")["status"] == "ok"
        emulator.http.close()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """The connections to a daemon that accepts them and never answers, and that DOCKER_HOST names."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    held: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "docker.sock"))
        listener.listen(64)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    held.append(listener.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        yield held
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in held:
        connection.close()


def ask_for_replicas(url: str, job: str) -> None:
    """Send a request whose answer needs Docker; the emulator may end instead."""
    with contextlib.suppress(requests.RequestException):
        requests.get(f"{url}/vertex_emulator/jobs/{job.rpartition('/')[2]}/replicas")


def test_a_silent_docker_delays_no_stop(tmp_path: Path, silent: list[socket.socket]) -> None:
    emulator = RunningEmulator(tmp_path / "data")
    job = emulator.create(custom_job(pool("pass")))
    asking = threading.Thread(target=ask_for_replicas, args=(emulator.url, job))
    asking.start()
    until(lambda: len(silent) > 1, "a call of Docker, after the look at the start")
    assert "timed out" in emulator.call("GET", "readyz", expect=503)["reason"]
    assert command("stop", data=emulator.data).stdout == "stopped\n"
    assert emulator.process.wait(PATIENCE_SECONDS / 2) == 0
    asking.join()
    emulator.http.close()


def give_docker_up_soon() -> None:
    """Let calls of Docker end after a second: who asks at the door waits for two, and each takes a minute."""
    from vertex_emulator.replicas import executor

    executor._CALL_SECONDS = 1


def linger(marker: Path) -> None:
    """Let the process stay, once it has stopped to serve, until a file is gone."""
    give_docker_up_soon()

    def stay() -> None:
        while marker.exists():
            time.sleep(0.05)

    from vertex_emulator.cli import main

    main._leave_threads = stay


def test_next_start_serves_where_containers_look(tmp_path: Path, silent: list[socket.socket]) -> None:
    data, marker = DataFolder.open(tmp_path / "data"), tmp_path / "lingers"
    with reserve_port() as port, reserve_port() as tls_port:
        database = Database(data.database)
        with database.write() as written:
            written.settings.set("door", f"127.0.0.1:{port}:{tls_port}")
        database.close()
    secret = f"http://127.0.0.1:{port}/v1/projects/p/secrets/s/versions/1:access"
    key = {"X-Goog-Api-Key": "none"}
    marker.touch()
    first = RunningEmulator(data.root, prepare=partial(linger, marker))
    assert requests.get(secret, headers=key, timeout=PATIENCE_SECONDS).status_code == 403
    assert command("stop", data=data.root).stdout == "stopped\n"
    second = RunningEmulator(data.root, prepare=give_docker_up_soon)
    try:
        assert first.process.poll() is None
    finally:
        marker.unlink()
        assert first.process.wait(PATIENCE_SECONDS) == 0
    assert requests.get(secret, headers=key, timeout=PATIENCE_SECONDS).status_code == 403
    assert second.end() == 0


@pytest.mark.parametrize("verb", ["serve", "start"])
def test_without_docker_a_start_ends_with_5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    done = command(verb, data=tmp_path / "data")
    evaluated = "false\n" if verb == "start" else ""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, evaluated, 1)
    assert f"Docker does not answer on unix://{tmp_path}/none.sock" in done.stderr
