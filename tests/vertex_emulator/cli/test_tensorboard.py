"""`vertex-emulator tensorboard`, with a program of that name that records how it is called."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ports import reserve_port
from tests.terminal import ProgramAtTerminal
from tests.vertex_emulator.running import RunningEmulator, custom_job, pool, until
from tests.vertex_emulator.test_studies import study
from vertex_api.names import CUSTOM_JOB
from vertex_emulator.cli import tensorboard
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.names import Location

# Listens where it is told to, writes its arguments and the runs of its log folder to $CALLS, and waits for a signal.
# With $LOADS, it does not get so far, as TensorBoard in its first seconds.
DOUBLE = f"""#!/bin/sh
'''exec' "{sys.executable}" "$0" "$@"
' '''
import json, os, pathlib, signal, socket, sys
if "LOADS" in os.environ:
    print("loads", flush=True)
    signal.pause()
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
with socket.create_server((options["--host"], int(options["--port"]))):
    folder = pathlib.Path(options["--logdir"])
    runs = {{path.name: str(path.resolve()) for path in folder.iterdir()}} if folder.is_dir() else {{}}
    pathlib.Path(os.environ["CALLS"]).write_text(json.dumps([options, runs]))
    signal.pause()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables with the double on PATH."""
    program = tmp_path / "bin" / "tensorboard"
    program.parent.mkdir()
    program.write_text(DOUBLE)
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls.json")}


def run_until_called(
    emulator: RunningEmulator, job: str, environment: Mapping[str, str], *options: str
) -> tuple[Any, Any, int, str, str]:
    """Its options, the runs that it finds, the exit code after SIGTERM, and the output."""
    command = [sys.executable, "-m", "vertex_emulator", "tensorboard", "--data", str(emulator.data), job, *options]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        line = process.stdout.readline()
        calls = Path(environment["CALLS"])
        found, runs = json.loads(until(lambda: calls.exists() and calls.read_text(), "the call"))
        process.send_signal(signal.SIGTERM)
        return found, runs, process.wait(), line, process.stderr.read()


def refused(emulator: RunningEmulator, *arguments: str, path: str = "/nowhere") -> str:
    """The one line of a command that fails."""
    command = [sys.executable, "-m", "vertex_emulator", "tensorboard", "--data", str(emulator.data), *arguments]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    return done.stderr


def test_it_runs_on_the_log_folder_of_a_job(shared: RunningEmulator, environment: dict[str, str]) -> None:
    spec = {"baseOutputDirectory": {"outputUriPrefix": "gs://boards/one"}}
    job = shared.create(custom_job(pool("pass"), **spec))
    shared.ended(job)
    with reserve_port() as port:
        options, _, exit_code, line, notes = run_until_called(shared, job, environment, "--port", str(port))
    folder = str(shared.data / "gcs" / "boards" / "one" / "logs")
    assert options == {"--logdir": folder, "--host": "127.0.0.1", "--port": str(port)}
    assert (exit_code, line) == (7, f"TensorBoard of {job}: http://127.0.0.1:{port}/\n")
    assert "no event files in gs://boards/one/logs/ yet" in notes


def test_trials_of_a_study_are_runs_with_names(shared: RunningEmulator, environment: dict[str, str]) -> None:
    job = shared.create(study("pass", trials=2), "hyperparameterTuningJobs")
    shared.ended(job)
    for number in ("1", "2"):
        (shared.data / "gcs" / "tuning" / "out" / number / "logs").mkdir(parents=True, exist_ok=True)
    (shared.data / "gcs" / "tuning" / "out" / "2" / "logs" / "events.out.tfevents.1").touch()
    _, runs, exit_code, _, notes = run_until_called(shared, job, environment)
    base = shared.data / "gcs" / "tuning" / "out"
    assert runs == {"trial-1": str(base / "1" / "logs"), "trial-2": str(base / "2" / "logs")}
    assert (exit_code, notes) == (7, "")


@pytest.mark.parametrize(
    ("variables", "shown", "exit_code"), [({}, "TensorBoard of ", 7), ({"LOADS": "1"}, "loads", 130)]
)
def test_ctrl_c_ends_it_at_any_moment(
    shared: RunningEmulator,
    environment: dict[str, str],
    tmp_path: Path,
    variables: dict[str, str],
    shown: str,
    exit_code: int,
) -> None:
    job = shared.create(study("pass", trials=2), "hyperparameterTuningJobs")
    shared.ended(job)
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "vertex_emulator", "tensorboard", "--data", str(shared.data), job]
    variables = {**environment, **variables, "TMPDIR": str(tmp_path / "temporary")}
    with reserve_port() as port, ProgramAtTerminal([*command, "--port", str(port)], variables) as program:
        program.read_until(shown)
        program.press("\x03")
        assert program.wait() == exit_code
    assert "Traceback" not in program.printed
    assert not list((tmp_path / "temporary").iterdir())


def test_what_is_missing_is_said_in_a_line(shared: RunningEmulator, environment: dict[str, str]) -> None:
    job = shared.create(custom_job(pool("pass")))
    shared.ended(job)
    assert "tensorboard is not installed; pip install tensorboard" in refused(shared, job)
    assert "There is no job 123 here." in refused(shared, "123", path=environment["PATH"])
    assert f"{job} has no folder of event files" in refused(shared, job, path=environment["PATH"])


def test_no_emulator_need_run(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    data = DataFolder.open(tmp_path / "data")
    logs = data.buckets / "boards" / "one" / "logs"
    logs.mkdir(parents=True)
    (logs / "events.out.tfevents.1").touch()
    with closing(Database(data.database)) as database, database.write() as transaction:
        spec = {"workerPoolSpecs": [pool("pass")], "baseOutputDirectory": {"outputUriPrefix": "gs://boards/one"}}
        job = transaction.jobs.add("7", CUSTOM_JOB, Location("p", "us-central1"), {"displayName": "j", "jobSpec": spec})
    stopped: Any = SimpleNamespace(data=data.root)
    options, _, exit_code, line, notes = run_until_called(stopped, job.name, environment)
    assert (options["--logdir"], exit_code, notes) == (str(logs), 7, "")
    assert line.startswith(f"TensorBoard of {job.name}: http://127.0.0.1:")
    path = environment["PATH"]
    assert run_until_called(stopped, "j", environment)[3].startswith(f"TensorBoard of {job.name}: ")
    assert f"There is no job 8 in {data.root}; choose another folder" in refused(stopped, "8", path=path)
    elsewhere: Any = SimpleNamespace(data=tmp_path / "elsewhere")
    assert f"there is no data folder at {elsewhere.data}" in refused(elsewhere, "7", path=path)
    assert not elsewhere.data.exists()


def test_trials_are_added_without_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = {"folders": [{"name": "trial-1", "path": "/somewhere"}]}
    monkeypatch.setattr(tensorboard, "_fetch_folders", lambda *_: reply)
    monkeypatch.setattr(tensorboard, "_LOOKUP_SECONDS", 0.01)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as output, socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(sys, "stdout", output)
        with tensorboard._Watch(tmp_path, "a-job", tmp_path, server.getsockname()[1]):
            until((tmp_path / "trial-1").is_symlink, "the link")
        output.write("as Python's flush at exit")
