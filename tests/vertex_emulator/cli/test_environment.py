"""`vertex-emulator exec`: a command with everything set, its exit code and signals, and an end of what was started."""

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.clients.environment import variables
from tests.vertex_emulator.running import PARENT, RunningEmulator, absent, command, custom_job, pool, until
from vertex_emulator.cli.environment import SignalForwarding
from vertex_emulator.data_folder import is_locked
from vertex_emulator.names import project_number

PROGRAM = [sys.executable, "-m", "vertex_emulator", "exec", "--data"]


def execute(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command("exec", data=data, after=arguments)


def test_a_command_gets_what_env_prints(shared: RunningEmulator) -> None:
    done = execute(shared.data, "--project=p", "--", "env", "-0")
    found = dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
    expected = variables(shared.data, {}, "--project=p")
    names = {name for name in expected if name.startswith(("CLOUDSDK_", "GOOGLE_", "STORAGE_"))}
    assert {name: found[name] for name in names} == {name: expected[name] for name in names}
    assert found["VERTEX_EMULATOR_DATA"] == str(shared.data)
    assert is_locked(shared.data / "lock")  # it was running before


def test_the_sdk_needs_no_project_of_the_program(shared: RunningEmulator) -> None:
    """It would ask Google for that of the variable; a question that fails is a warning on stderr."""
    script = """
from google.cloud import aiplatform, resourcemanager
resourcemanager.ProjectsClient.get_project = None
container = {"image_uri": "localhost/absent:1"}
pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
for init in (lambda: None, aiplatform.init):
    init()
    try:
        aiplatform.CustomJob("train", [pool])
    except RuntimeError as error:
        print("refused:", error)
    job = aiplatform.CustomJob("train", [pool], staging_bucket="gs://any")
    job.submit()
    print("name:", job.resource_name)
"""
    done = execute(shared.data, "--project=of-exec", "--region=us-east1", "--", sys.executable, "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    refused = [line for line in done.stdout.splitlines() if line.startswith("refused: ")]
    assert ["staging_bucket should be passed" in line for line in refused] == [True, True]
    names = [line for line in done.stdout.splitlines() if line.startswith("name: ")]
    parent = f"name: projects/{project_number('of-exec')}/locations/us-east1/customJobs/"
    assert [name.startswith(parent) for name in names] == [True, True]


def test_an_emulator_starts_for_it_and_stops(tmp_path: Path) -> None:
    script = "from google.cloud import storage; print(storage.Client().create_bucket('made').exists())"
    done = execute(tmp_path, "--", sys.executable, "-c", f"{script}; raise SystemExit(42)")
    assert (done.returncode, done.stdout, done.stderr) == (42, "True\n", "")
    assert not is_locked(tmp_path / "lock")
    assert (tmp_path / "gcs" / "made").is_dir()


def post(job: object) -> str:
    """A program that submits a job; `send` sends further requests."""
    return f"""
import json, os, time, urllib.request
def send(path, body=None):
    url = os.environ["STORAGE_EMULATOR_HOST"] + "/v1/" + path
    request = urllib.request.Request(url, body, {{"Content-Type": "application/json"}})
    return json.load(urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(request))
job = send("{PARENT}/customJobs", {json.dumps(job)!r}.encode())
"""


def test_the_log_of_a_failed_job_is_named(shared: RunningEmulator) -> None:
    wait = "\nwhile 'endTime' not in send(job['name']): time.sleep(0.1)\n"
    failing = post(absent("fails")) + wait
    done = execute(shared.data, "--", sys.executable, "-c", failing + "print(job['name']); raise SystemExit(3)")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    remedy = shlex.split(done.stderr.partition("a job failed; its log: ")[2])
    assert remedy == ["vertex-emulator", "logs", done.stdout.strip().rpartition("/")[2], "--data", str(shared.data)]
    assert "Job failed" in command(*remedy[1:3], data=shared.data).stdout
    # Neither for a command that went well, nor for a job that failed before.
    for script in (failing, "raise SystemExit(3)"):
        assert execute(shared.data, "--", sys.executable, "-c", script).stderr == ""


def test_jobs_that_have_not_ended_are_mentioned(tmp_path: Path) -> None:
    done = execute(tmp_path, "--", sys.executable, "-c", post(custom_job(pool("import time; time.sleep(600)"))))
    assert "Waiting for job to be provisioned" in command("logs", "a job", data=tmp_path).stdout
    assert command("reset", "--yes", data=tmp_path).returncode == 0
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "1 job has not ended" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["--", "sh", "-c", "kill -KILL $$"], 137, ""),
        (["--", "no-such-program"], 127, "no-such-program is not found"),
        (["--", "/etc/passwd"], 126, "/etc/passwd is not executable"),
        (["sh", "-c", "exit 3", "--project"], 3, ""),
        (
            ["gcloud", "ai", "custom-jobs", "create", "--worker-pool-spec=local-package-path=."],
            2,
            "container-image-uri=NAME",
        ),
        (["--project=p", "--"], 2, "which command?"),
        (["--projekt=p", "--", "true"], 2, "unrecognized"),
    ],
)
def test_exit_codes_are_those_of_shells(
    shared: RunningEmulator, arguments: list[str], exit_code: int, message: str
) -> None:
    done = execute(shared.data, *arguments)
    assert (done.returncode, message in done.stderr) == (exit_code, True)


def test_without_docker_the_exit_code_is_125(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    done = execute(tmp_path / "data", "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (125, 1)
    assert "Docker does not answer" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_command(shared: RunningEmulator, tmp_path: Path, number: signal.Signals) -> None:
    script = f"""
        import pathlib, signal, sys
        signal.signal({number}, lambda *_: sys.exit(9))
        pathlib.Path({str(tmp_path / "ready")!r}).touch()
        signal.pause()
    """
    arguments = [*PROGRAM, str(shared.data), "--", sys.executable, "-c", textwrap.dedent(script)]
    process = subprocess.Popen(arguments, start_new_session=True)
    until((tmp_path / "ready").exists, "the command")
    process.send_signal(number)
    assert process.wait() == 9


def test_signals_are_forwarded_to_its_end_alone() -> None:
    numbers = (signal.SIGTERM, signal.SIGINT)
    earlier = [signal.getsignal(number) for number in numbers]
    with SignalForwarding():
        assert not any(signal.getsignal(number) in earlier for number in numbers)
    assert [signal.getsignal(number) for number in numbers] == earlier


def test_the_first_of_two_stops_last(tmp_path: Path) -> None:
    data = tmp_path / "data"
    wait = "until test -e '{}'; do sleep 0.05; done"
    first = subprocess.Popen(
        [*PROGRAM, str(data), "--", "sh", "-c", f"touch '{tmp_path}/1'; {wait.format(tmp_path / '2')}"]
    )
    until((tmp_path / "1").exists, "the first")
    second = subprocess.Popen(
        [*PROGRAM, str(data), "--", "sh", "-c", f"touch '{tmp_path}/2'; {wait.format(tmp_path / '3')}"],
    )
    until((tmp_path / "2").exists, "the second")
    assert command("status", data=data).returncode == 0
    assert first.poll() is None
    (tmp_path / "3").touch()
    assert (second.wait(), first.wait()) == (0, 0)
    assert not is_locked(data / "lock")


def test_another_sitecustomize_still_runs(shared: RunningEmulator, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('of the project')")
    done = subprocess.run(
        [*PROGRAM, str(shared.data), "--", sys.executable, "-c", "import sitecustomize; print(sitecustomize.__file__)"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path.cwd())]), "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    # The first line is of `vertex-emulator` itself.
    assert done.stdout.splitlines() == ["of the project"] * 2 + [f"{tmp_path}/sitecustomize.py"]


def test_python_starts_with_no_further_modules(shared: RunningEmulator) -> None:
    script = "import sys; print(*sorted(sys.modules))"
    without = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    within = execute(shared.data, "--", sys.executable, "-c", script).stdout
    assert set(within.split()) - set(without.split()) <= {"__future__", "sitecustomize"}
