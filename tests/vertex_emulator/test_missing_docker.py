"""An emulator whose Docker is gone: at its start, and later."""

import json
import signal
import socket
from pathlib import Path

import pytest
import requests

from tests.vertex_emulator.preloaded import ForkedProcess
from tests.vertex_emulator.running import PATIENCE_SECONDS, RunningEmulator, command, custom_job, pool, until


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


@pytest.mark.parametrize("verb", ["serve", "start"])
def test_without_docker_a_start_ends_with_5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    done = command(verb, data=tmp_path / "data")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert f"Docker does not answer on unix://{tmp_path}/none.sock" in done.stderr
