import json
import os
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.running import (
    PARENT,
    PATIENCE_SECONDS,
    RunningEmulator,
    absent,
    command,
    custom_job,
    labelled,
    line_of,
    pool,
)
from vertex_api import __version__


def test_the_endpoint_file_says_where_the_emulator_is(shared: RunningEmulator) -> None:
    found = json.loads((shared.data / "endpoint.json").read_text())
    assert found == {
        "pid": shared.process.pid,
        "host": "127.0.0.1",
        "port": int(shared.url.rpartition(":")[2]),
        "url": shared.url,
        "version": __version__,
        "token_file": None,
    }
    assert shared.call("GET", "readyz") == {"status": "ok"}


def test_second_emulator_on_folder_exits_with_3(shared: RunningEmulator) -> None:
    done = command("serve", data=shared.data)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "already running" in done.stderr


def test_port_in_use_is_named_with_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = command("serve", "--port", str(port), data=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"port {port} is in use" in done.stderr
    assert "--port" in done.stderr


def test_an_address_that_others_reach_needs_a_flag(tmp_path: Path) -> None:
    done = command("serve", "--host", "0.0.0.0", data=tmp_path)
    assert done.returncode == 1
    assert "--allow-remote" in done.stderr


def test_a_store_of_a_newer_emulator_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "emulator.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    done = command("serve", data=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "schema 99" in done.stderr


def test_a_store_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "emulator.db").write_text("this is no database, whatever its name says")
    done = command("serve", data=tmp_path)
    assert done.returncode == 1
    assert "emulator.db cannot be used" in done.stderr


def test_data_folder_that_cannot_be_made_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = command("serve", data=tmp_path / "file" / "data")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "cannot be used" in done.stderr


@pytest.mark.parametrize("name", ["status", "logs"])
def test_commands_without_emulator_tell_how_to_start_one(tmp_path: Path, name: str) -> None:
    done = command(name, *(["1"] if name == "logs" else []), data=tmp_path)
    assert (done.returncode, [*tmp_path.iterdir()]) == (1, [])
    assert f"with: vertex-emulator start --data {tmp_path}" in done.stderr


@pytest.mark.parametrize("name", ["env", "start"])
def test_what_follows_an_eval_that_failed_does_not_run(tmp_path: Path, name: str) -> None:
    """It would run on Google Cloud."""
    program = f"{shlex.quote(sys.executable)} -m vertex_emulator {name} --data {shlex.quote(str(tmp_path / 'data'))}"
    line = f'eval "$({program})" && echo it goes on'
    environment = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none"}
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr.count("vertex-emulator: ")) == (1, "", 1)


def test_a_question_without_an_answer_removes_nothing(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "vertex_emulator", "reset", "--data", str(tmp_path / "data")]
    done = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    told = "vertex-emulator: nothing was removed, because stdin has no answer; add --yes\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_an_unknown_option_leads_to_help(tmp_path: Path) -> None:
    done = command("status", "--prot=1", data=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("error: unrecognized arguments: --prot=1; see: vertex-emulator status --help\n")


def test_a_short_command_loads_little() -> None:
    """Half of its time would be of pydantic, Docker and the database."""
    script = (
        "from vertex_emulator.cli import emulator, main; import sys; main.parser_options.build(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"pydantic", "docker", "requests", "asyncio", "vertex_emulator.database"} & {*done.stdout.split()}


def test_stopping_where_nothing_runs_is_no_error(tmp_path: Path) -> None:
    assert command("stop", data=tmp_path).returncode == 0


def test_status_and_logs_of_a_running_emulator(shared: RunningEmulator) -> None:
    name = shared.create(custom_job(pool("print('to be seen')")))
    shared.ended(name)
    status = command("status", data=shared.data)
    assert status.returncode == 0
    assert shared.url in status.stdout
    logs = command("logs", name, data=shared.data)
    assert logs.returncode == 0
    assert "workerpool0-0  to be seen" in logs.stdout
    lines = command("logs", name, "--task=workerpool0-0", "--json", data=shared.data).stdout.splitlines()
    assert [line_of(json.loads(line)) for line in lines] == ["to be seen"]
    unknown = command("logs", "123", data=shared.data)
    assert (unknown.returncode, "123" in unknown.stderr) == (1, True)


@pytest.mark.parametrize("options", [[], ["--follow"]])
def test_logs_name_tasks_and_trials(shared: RunningEmulator, options: list[str]) -> None:
    name = shared.create(custom_job(pool(""), pool("", replicas=2)))
    task = command("logs", name, "--task=workerpool2-0", *options, data=shared.data)
    tasks = "service, workerpool0-0, workerpool1-0, workerpool1-1"
    assert (task.returncode, task.stdout) == (1, "")
    assert task.stderr == f"vertex-emulator: {name} has no task workerpool2-0; tasks: {tasks}\n"
    trial = command("logs", name, "--trial=1", *options, data=shared.data)
    assert trial.stderr == f"vertex-emulator: {name} has no trial 1; it is no tuning job\n"


def test_followed_logs_end_with_job_without_repeated_lines(shared: RunningEmulator) -> None:
    script = "import time\nfor i in range(4): print('line', i, flush=True); time.sleep(0.4)"
    name = shared.create(custom_job(pool(script)))
    done = command("logs", "--follow", name, data=shared.data)
    assert done.returncode == 0
    lines = [line.rpartition("  ")[2] for line in done.stdout.splitlines() if "workerpool0-0" in line]
    assert lines == ["line 0", "line 1", "line 2", "line 3"]


def test_stop_if_idle_keeps_emulator_with_active_jobs(own: RunningEmulator) -> None:
    name = own.create(custom_job(pool("import time; time.sleep(600)")))
    own.in_state(name, "JOB_STATE_RUNNING")
    busy = command("stop", "--if-idle", data=own.data)
    assert (busy.returncode, own.process.poll()) == (0, None)
    assert "1 job" in busy.stdout
    own.call("POST", f"v1/{name}:cancel")
    own.ended(name)
    assert command("stop", "--if-idle", data=own.data).stdout == "stopped\n"
    assert own.process.wait(PATIENCE_SECONDS) == 0


def test_reset_removes_jobs_and_keeps_buckets(own: RunningEmulator) -> None:
    name = own.create(custom_job(pool("import time; time.sleep(600)")))
    own.in_state(name, "JOB_STATE_RUNNING")
    (own.data / "gcs" / "kept").mkdir()
    rejected = command("reset", "--yes", data=own.data)
    assert (rejected.returncode, "stop" in rejected.stderr) == (3, True)
    own.end()
    assert command("reset", "--yes", data=own.data).returncode == 0
    assert labelled(name) == []
    own.start()
    assert own.call("GET", f"v1/{PARENT}/customJobs") == {}
    assert (own.data / "gcs" / "kept").is_dir()


def test_serve_prints_what_env_prints(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "vertex_emulator", "serve", "--data", str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        env = command("env", data=tmp_path).stdout
        process.send_signal(signal.SIGTERM)
        assert first + process.stdout.read() == env
    assert first.startswith("export CLOUDSDK_")


def test_commands_show_examples_and_exit_codes(shared: RunningEmulator) -> None:
    def help_of(*arguments: str) -> str:
        done = command(*arguments, "--help", data=shared.data)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "exit codes:" in help_of()
    names = re.findall(r"^    ([a-z]+) ", help_of(), re.MULTILINE)
    assert len(names) == 14
    for name in names:
        assert f"  vertex-emulator {name}" in help_of(name).replace('eval "$(', "").partition("example")[2], name


def test_json_output_parses(shared: RunningEmulator) -> None:
    def parse(*arguments: str) -> Any:
        done = command(*arguments, "--json", data=shared.data)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    status = parse("status")
    assert (status["url"], status["docker"], status["data"]) == (shared.url, {"status": "ok"}, str(shared.data))
    shared.ended(shared.create(absent("counted")))
    assert parse("status")["jobs"]["JOB_STATE_FAILED"] >= 1
    assert parse("env")["STORAGE_EMULATOR_HOST"] == shared.url
    assert command("inject", "oom", "--name=nobody", data=shared.data).returncode == 0
    assert parse("inject", "--list") == [{"remaining": 1, "fault": {"kind": "oom", "name": "nobody"}}]
    assert command("inject", "--clear", "--json", data=shared.data).stderr.endswith("--json needs --list\n")
    assert command("inject", "--clear", data=shared.data).returncode == 0


def test_a_missing_extra_is_one_line(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['uvicorn'] = None; from vertex_emulator.cli.main import main; sys.exit(main())"
    arguments = [sys.executable, "-c", blocked, "serve", "--data", str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    expected = "vertex-emulator: uvicorn is not installed; pip install 'vertex-training[emulator]'\n"
    assert (done.returncode, done.stderr) == (1, expected)
