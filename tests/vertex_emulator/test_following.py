"""`logs`: a part of a job's log, the exit code, and an emulator that is restarted meanwhile."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vertex_emulator.running import (
    PATIENCE_SECONDS,
    RunningEmulator,
    command,
    custom_job,
    let_first_replica_end_last,
    pool,
    until,
)
from tests.vertex_emulator.test_studies import REPORT, study
from vertex_emulator.cli import logs


def texts(done: subprocess.CompletedProcess[str], task: str) -> list[str]:
    return [line.partition(f" {task}  ")[2] for line in done.stdout.splitlines() if f" {task}  " in line]


def test_followed_logs_survive_kills(own: RunningEmulator, tmp_path: Path) -> None:
    script = "import time\nfor i in range(30): print('line', i, flush=True); time.sleep(0.2)"
    name = own.create(custom_job(pool(script)))
    until(lambda: "line 1" in own.lines(name), "the first lines")
    arguments = [sys.executable, "-m", "vertex_emulator", "logs", "--follow", name, "--data", str(own.data)]
    with (tmp_path / "shown").open("w") as shown, subprocess.Popen(arguments, stdout=shown, stderr=shown) as follower:
        until(lambda: "line 1" in (tmp_path / "shown").read_text(), "the first lines")
        for number in (signal.SIGKILL, signal.SIGTERM):
            own.end(number)
            own.start()
        assert follower.wait(PATIENCE_SECONDS) == 0
    lines = (tmp_path / "shown").read_text().splitlines()
    assert [line.rpartition("  ")[2] for line in lines if "workerpool0-0" in line] == [f"line {i}" for i in range(30)]
    assert lines[-1] == f"{name} JOB_STATE_SUCCEEDED"


def test_the_exit_code_tells_job_success(shared: RunningEmulator) -> None:
    failing = shared.create(custom_job(pool("raise SystemExit(7)"), name="team/exits with 7"))
    shared.ended(failing)
    done = command("logs", "--follow", "team/exits with 7", data=shared.data)
    assert done.returncode == 4
    assert done.stdout.splitlines()[-1] == f"{failing} JOB_STATE_FAILED"
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith("non-zero status of 7.\n")
    # The service's link leads to the console, which has no log of this job. The API's answers keep it.
    assert texts(done, "service")[-3].endswith("non-zero status of 7.")
    assert "console.cloud" in command("logs", failing, "--json", data=shared.data).stdout
    assert command("logs", failing, data=shared.data).returncode == 0


def test_a_followed_name_stays_with_its_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def send(_endpoint: object, path: str, _body: object = None) -> object:
        if path.endswith(":list"):
            return {}
        asked.append(path)
        state = "JOB_STATE_SUCCEEDED" if len(asked) > 1 else "JOB_STATE_RUNNING"
        return {"name": "first", "state": state, "log": {"job": "1", "trial": None, "tasks": None, "maxTrial": None}}

    monkeypatch.setattr(logs, "send", send)
    monkeypatch.setattr(logs, "require_endpoint", lambda _: None)
    monkeypatch.setattr(logs, "_POLL_SECONDS", 0.0)
    assert [*logs.JobLog(tmp_path, "digits").follow()] == ["first JOB_STATE_SUCCEEDED"]
    assert asked == ["/vertex_emulator/jobs/digits", "/vertex_emulator/jobs/first"]


def test_logs_need_no_emulator(own: RunningEmulator) -> None:
    chief = own.create(custom_job(pool("print('of the chief')\nraise SystemExit(3)"), name="fails"))
    own.ended(chief)
    running = own.create(custom_job(pool("import time\nprint('still runs', flush=True)\ntime.sleep(60)")))
    until(lambda: "still runs" in own.lines(running), "the first line")
    served = [command("logs", *words, data=own.data) for words in (["fails"], [chief, "--json"])]
    assert own.end() == 0
    unserved = [command("logs", *words, data=own.data) for words in (["fails"], [chief, "--json"])]
    assert [done.stdout for done in unserved] == [done.stdout for done in served]
    assert "of the chief" in served[0].stdout and "non-zero status of 3" in served[0].stdout
    assert "still runs" in command("logs", running, data=own.data).stdout  # its container runs on
    for words, said in (
        (["other"], f"There is no job other in {own.data}; choose another folder with --data"),
        ([chief, "--task", "workerpool1-0"], f"{chief} has no task workerpool1-0; tasks: service, workerpool0-0"),
        (["--follow", chief], f"no emulator is running on {own.data}; start one with"),
    ):
        done = command("logs", *words, data=own.data)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert said in done.stderr
    own.start()


def test_logs_do_not_make_a_folder(tmp_path: Path) -> None:
    done = command("logs", "x", data=tmp_path / "none")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"there is no data folder at {tmp_path / 'none'}" in done.stderr
    assert not (tmp_path / "none").exists()


def test_log_is_limited_to_replica_or_trial(shared: RunningEmulator) -> None:
    chief, worker = (pool(let_first_replica_end_last(f"print('{name}')")) for name in ("chief", "worker"))
    name = shared.create(custom_job(chief, worker))
    shared.ended(name)
    done = command("logs", name, "--task", "workerpool1-0", data=shared.data)
    assert [line.rpartition("  ")[2] for line in done.stdout.splitlines()] == ["worker"]
    tuning = shared.create(study(REPORT, trials=2), "hyperparameterTuningJobs")
    shared.ended(tuning)
    second = texts(command("logs", tuning, "--trial", "2", data=shared.data), "workerpool0-0 trial 2")
    assert second == ["gs://tuning/out/2/model/"]
    # The name of a trial's own job leads to the same lines.
    by_job = command("logs", shared.trial_jobs(tuning)["2"], data=shared.data)
    assert texts(by_job, "workerpool0-0 trial 2") == second
    assert "trial 1" not in by_job.stdout


@pytest.mark.parametrize("arguments", [["--task", "worker"], ["--trial", "0"], ["--trial", "x"]])
def test_invalid_argument_is_rejected_with_example(shared: RunningEmulator, arguments: list[str]) -> None:
    done = command("logs", "1", *arguments, data=shared.data)
    assert done.returncode == 2
    assert "is not a t" in done.stderr


def test_job_id_invalid_in_urls_is_unknown(shared: RunningEmulator) -> None:
    for job in ("a b", "?x", "%2e", 'x"y'):
        done = command("logs", job, data=shared.data)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "There is no job" in done.stderr


def test_emulator_starts_despite_partly_written_files(own: RunningEmulator) -> None:
    name = own.create(custom_job(pool("print('kept')")))
    own.ended(name)
    saved = own.data / "logs" / name.rpartition("/")[2] / "workerpool0-0.0.jsonl"
    until(saved.exists, "the saved log")
    own.end(signal.SIGKILL)
    (own.data / "endpoint.json").write_text('{"pid": 1')
    saved.with_suffix(".partial").write_text("[17000000")
    (own.data / "endpoint.partial").write_text("{")
    for words in (["status"], ["logs", "--follow", name]):
        done = command(*words, data=own.data)
        assert (done.returncode, "vertex-emulator start" in done.stderr) == (1, True)
    own.start()
    assert own.lines(name) == ["kept"]


def test_truncated_database_is_rejected_in_one_line(tmp_path: Path) -> None:
    emulator = RunningEmulator(tmp_path / "data")
    emulator.end()
    emulator.http.close()
    database = emulator.data / "emulator.db"
    whole = database.read_bytes()
    for keep in (100, 4096, 20_000):
        database.write_bytes(whole[:keep])
        done = command("serve", data=emulator.data)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
        assert "emulator.db cannot be used" in done.stderr
