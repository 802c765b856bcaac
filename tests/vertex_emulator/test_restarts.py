import signal
import subprocess

from tests.vertex_emulator.running import (
    PATIENCE_SECONDS,
    RunningEmulator,
    command,
    custom_job,
    labelled,
    line_of,
    pool,
    until,
)
from tests.vertex_emulator.test_studies import REPORT, study

WAIT = "import os, time\nwhile not os.path.exists('/gcs/runs/go'): time.sleep(0.05)\n"
SLOW = f"print('begun', flush=True)\n{WAIT}open('/gcs/runs/x', 'a').write('ran\\n')"

FAILS_HALFWAY = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("torn down", flush=True), sys.exit(0)))
path, job = "/half-written", os.environ["CLOUD_ML_JOB_ID"]
if not os.path.exists(path):
    open(path, "w").write(job)
    print("first start", flush=True)
    sys.exit(1)
print("second start, over its own files" if open(path).read() == job else "of another job", flush=True)
time.sleep(600)
"""


def test_restarted_emulator_finds_running_containers(own_on_reserved_port: RunningEmulator) -> None:
    own = own_on_reserved_port
    (own.data / "gcs" / "runs").mkdir()
    name = own.create(custom_job(pool(SLOW)))
    own.in_state(name, "JOB_STATE_RUNNING")
    (container,) = labelled(name)
    assert own.end(signal.SIGTERM) == 0
    assert not (own.data / "endpoint.json").exists()
    assert labelled(name) == [container]
    url = own.url
    own.options = ()  # it remembers its port
    own.start()
    assert own.url == url
    (own.data / "gcs" / "runs" / "go").touch()
    assert own.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert own.lines(name) == ["begun"]


def test_containers_that_ended_meanwhile_are_found_at_start(own: RunningEmulator) -> None:
    (own.data / "gcs" / "runs").mkdir()
    name = own.create(custom_job(pool(f"{WAIT}raise SystemExit(7)")))
    own.in_state(name, "JOB_STATE_RUNNING")
    (container,) = labelled(name)
    own.end(signal.SIGKILL)
    (own.data / "gcs" / "runs" / "go").touch()
    waited = ["docker", "wait", container]
    assert subprocess.run(waited, capture_output=True, timeout=PATIENCE_SECONDS, check=True).stdout == b"7\n"
    own.start()
    assert "non-zero status of 7" in own.ended(name)["error"]["message"]


def test_kill_loses_nothing_and_nothing_runs_twice(own: RunningEmulator) -> None:
    (own.data / "gcs" / "runs").mkdir()
    jobs = [own.create(custom_job(pool(SLOW))) for _ in range(2)]
    counted = REPORT + "\ntime.sleep(0.5)\nopen('/gcs/runs/trials', 'a').write(os.environ['CLOUD_ML_TRIAL_ID'] + '\\n')"
    tuning = own.create(study(counted, trials=4), "hyperparameterTuningJobs")
    for trials in (1, 2, 3):
        until(lambda trials=trials: len(own.get(tuning).get("trials", [])) >= trials, "a trial")  # type: ignore[misc]
        own.end(signal.SIGKILL)
        own.start()
    (own.data / "gcs" / "runs" / "go").touch()
    assert [own.ended(name)["state"] for name in jobs] == ["JOB_STATE_SUCCEEDED"] * 2
    job = own.ended(tuning)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert [trial["state"] for trial in job["trials"]] == ["SUCCEEDED"] * 4
    assert sorted((own.data / "gcs/runs/trials").read_text().split()) == ["1", "2", "3", "4"]
    assert (own.data / "gcs/runs/x").read_text() == "ran\n" * 2
    until(lambda: not [each for name in jobs for each in labelled(name)], "removal of the containers")


def test_a_failed_container_restarts_after_a_kill(own: RunningEmulator) -> None:
    plain = own.create(custom_job(pool(FAILS_HALFWAY)))
    error = own.ended(plain)["error"]
    assert own.lines(plain) == ["first start"]

    run_for = "10"  # in which a container starts Python, on any machine
    assert command("inject", "second-start", "--after", "2", "--run-for", run_for, data=own.data).returncode == 0
    name = own.create(custom_job(pool(FAILS_HALFWAY)))
    until(lambda: any("started again in place 2 s later" in line_of(entry) for entry in own.entries(name)), "the exit")
    own.end(signal.SIGKILL)
    own.start()
    job = own.ended(name)
    assert job["state"] == "JOB_STATE_FAILED"
    assert job["error"]["code"] == error["code"] == 3
    plain_id, job_id = (each.rpartition("/")[2] for each in (plain, name))
    assert job["error"]["message"] == error["message"].replace(plain_id, job_id)
    assert own.lines(name) == ["first start", "second start, over its own files", "torn down"]


def test_one_emulator_leaves_the_containers_of_another_alone(own: RunningEmulator, shared: RunningEmulator) -> None:
    name = shared.create(custom_job(pool("import time; time.sleep(600)")))
    shared.in_state(name, "JOB_STATE_RUNNING")
    own.end()
    assert command("reset", "--yes", data=own.data).returncode == 0
    own.start()
    assert labelled(name)
    shared.call("POST", f"v1/{name}:cancel")
    shared.ended(name)
