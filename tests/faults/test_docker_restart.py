"""The Docker daemon goes away and comes back while jobs run: nothing hangs, and what was lost says why."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulator.running import ENDED, IMAGE, RunningEmulator, custom_job, pool, until
from tests.emulator.test_studies import REPORT, study
from tests.faults.docker_daemon import DockerDaemon, why_impossible

pytestmark = pytest.mark.skipif(bool(why_impossible()), reason=why_impossible())


def bridge() -> list[bytes]:
    """Number and name of the bridge of the machine's own daemon."""
    return subprocess.run(["ip", "-o", "link", "show", "docker0"], capture_output=True).stdout.split()[:2]


@pytest.fixture
def daemon() -> Iterator[DockerDaemon]:
    before = bridge()
    # A short path: a socket's is limited to 107 characters.
    daemon = DockerDaemon(Path(tempfile.mkdtemp(prefix="vertex-dockerd-")))
    try:
        daemon.load(IMAGE)
        yield daemon
    finally:
        daemon.close()
    assert bridge() == before


@pytest.fixture
def emulator(daemon: DockerDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningEmulator]:
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    emulator = RunningEmulator(tmp_path / "data")
    yield emulator
    emulator.close()


def test_when_the_daemon_restarts_waiting_jobs_go_on_and_others_end_with_the_reason(
    daemon: DockerDaemon, emulator: RunningEmulator
) -> None:
    running = emulator.create(custom_job(pool("import time; print('begun', flush=True); time.sleep(600)")))
    tuning = emulator.create(
        study(REPORT + "\ntime.sleep(1)", trials=6, maxFailedTrialCount=6), "hyperparameterTuningJobs"
    )
    until(lambda: emulator.lines(running) == ["begun"], "the first line")
    until(lambda: emulator.get(tuning).get("trials"), "a trial")
    daemon.end()
    waiting = emulator.create(custom_job(pool("print('after the restart')")))
    until(lambda: emulator.answer("readyz").status_code == 503, "the emulator's notice")
    assert emulator.call("GET", "healthz")["status"] == "ok"
    until(lambda: emulator.entries(waiting, 'textPayload:"Waiting for Docker*"'), "the reason in the log")
    daemon.start()
    assert emulator.ended(waiting)["state"] == "JOB_STATE_SUCCEEDED"
    # The daemon stops its containers when it goes or comes back. A replica that ended so has failed its job, unless the
    # rules on lost replicas start it again.
    found = until(lambda: _failed_or_again(emulator, running), "news of the job that ran")
    assert found in ("failed with its exit code", "runs again"), found
    job = emulator.ended(tuning)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert {trial["state"] for trial in job["trials"]} <= {"SUCCEEDED", "INFEASIBLE"}
    assert all("non-zero status" in trial["infeasibleReason"] for trial in job["trials"] if "infeasibleReason" in trial)
    if emulator.get(running)["state"] not in ENDED:
        emulator.call("POST", f"v1/{running}:cancel")
        emulator.ended(running)
    until(lambda: daemon.docker("ps", "-aq").stdout == b"", "removal of the containers")


def _failed_or_again(emulator: RunningEmulator, name: str) -> str:
    job = emulator.get(name)
    if job["state"] == "JOB_STATE_FAILED":
        return "failed with its exit code" if "non-zero status" in job["error"]["message"] else job["error"]["message"]
    return "runs again" if emulator.lines(name).count("begun") > 1 else ""
