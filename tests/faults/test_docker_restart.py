"""The Docker daemon goes away and comes back while jobs run: nothing hangs, and what was lost says why."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.docker_daemon import DockerDaemon, why_impossible
from tests.vertex_emulator.running import IMAGE, RunningEmulator, custom_job, pool, until
from tests.vertex_emulator.test_studies import REPORT, study

pytestmark = pytest.mark.skipif(bool(why_impossible()), reason=why_impossible())

BEGUN = "print('begun', flush=True); time.sleep(600)"
STUBBORN = f"import time; {BEGUN}"  # a first process that does not ask for SIGTERM does not get it
POLITE = f"import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)); {BEGUN}"


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


def test_a_daemon_restart_stops_only_running_jobs(daemon: DockerDaemon, emulator: RunningEmulator) -> None:
    polite, stubborn = (emulator.create(custom_job(pool(script))) for script in (POLITE, STUBBORN))
    # One trial at a time leaves room for the job that waits for Docker, whatever the trials do meanwhile.
    trials = study(REPORT + "\ntime.sleep(1)", parallel=1, maxFailedTrialCount=4)
    tuning = emulator.create(trials, "hyperparameterTuningJobs")
    for name in (polite, stubborn):
        until(lambda name=name: emulator.lines(name) == ["begun"], "the first line")  # type: ignore[misc]
    until(lambda: emulator.get(tuning).get("trials"), "a trial")
    daemon.end()
    waiting = emulator.create(custom_job(pool("print('after the restart')")))
    until(lambda: emulator.answer("readyz").status_code == 503, "the emulator's notice")
    assert emulator.call("GET", "healthz")["status"] == "ok"
    until(lambda: emulator.entries(waiting, 'textPayload:"Waiting for Docker*"'), "the reason in the log")
    daemon.start()
    assert emulator.ended(waiting)["state"] == "JOB_STATE_SUCCEEDED"
    # The daemon stops its containers as it goes. One that ended by itself has failed; one that was killed was lost.
    assert "exited with a non-zero status of 143" in emulator.ended(polite)["error"]["message"]
    until(lambda: emulator.lines(stubborn) == ["begun"] * 2, "another start")
    assert emulator.entries(stubborn, 'severity="WARNING" AND textPayload:"*restart*"')
    job = emulator.ended(tuning)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert {trial["state"] for trial in job["trials"]} <= {"SUCCEEDED", "INFEASIBLE"}
    assert all("non-zero status" in trial["infeasibleReason"] for trial in job["trials"] if "infeasibleReason" in trial)
    emulator.call("POST", f"v1/{stubborn}:cancel")
    emulator.ended(stubborn)
    until(lambda: daemon.docker("ps", "-aq").stdout == b"", "removal of the containers")
