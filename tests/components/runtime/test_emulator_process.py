"""The emulator's process: started, found again, stopped, and its reason given where it does not start.

How `vertex-emulator start` does its part: tests/vertex_emulator/cli/test_detached_emulator.py.
"""

import json
import os
import signal
import socket
import sys
import textwrap
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from vertex_training.errors import EmulatorFailed
from vertex_training.runtime import emulator_process
from vertex_training.runtime.emulator_discovery import find_running_endpoint_or_none

from tests.ports import reserve_port

# What is asked of the emulator: `start` leaves a process that holds the lock, answers on /healthz with its marker and
# says where in endpoint.json; `stop` ends it.
EMULATOR = """
    import fcntl, json, os, pathlib, signal, sys
    from http.server import BaseHTTPRequestHandler, HTTPServer

    verb, *flags = sys.argv[1:]
    data = pathlib.Path(next(flag for flag in flags if flag.startswith("--data=")).partition("=")[2])
    port = next((int(flag.partition("=")[2]) for flag in flags if flag.startswith("--port=")), 0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/healthz" else 404)
            self.send_header("x-vertex-emulator", "1.2.3")
            self.end_headers()

        def log_message(self, *_):
            pass

    if verb == "start":
        data.mkdir(exist_ok=True)
        if child := os.fork():
            endpoint = data / "endpoint.json"
            while not endpoint.exists() or json.loads(endpoint.read_text())["pid"] != child:
                pass
            sys.exit()
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        lock = (data / "lock").open("a")
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = HTTPServer(("127.0.0.1", port), Handler)
        endpoint = {"url": f"http://127.0.0.1:{server.server_port}", "pid": os.getpid()}
        endpoint["version"] = "1.2.3"
        endpoint["pulumi"] = [name for name in os.environ if name.startswith("PULUMI_")]
        with (data / "starts").open("a") as starts:
            starts.write(f"{os.getpid()}\\n")
        (data / "new.json").write_text(json.dumps(endpoint))
        (data / "new.json").rename(data / "endpoint.json")
        server.serve_forever()
    elif "--if-idle" in flags and (data / "busy").exists():
        print("goes on: 2 jobs are active")
    else:
        os.kill(json.loads((data / "endpoint.json").read_text())["pid"], signal.SIGTERM)
        (data / "endpoint.json").unlink()
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The emulator's folder, in a project whose emulator is the one above; all that was started is ended."""
    monkeypatch.setattr(emulator_process, "_FOLDER", tmp_path / "project")
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path / "data"))
    for name in ("http_proxy", "HTTP_PROXY", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    write_emulator(tmp_path, EMULATOR)
    yield tmp_path / "data"
    for pid in started(tmp_path / "data"):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def write_emulator(folder: Path, text: str) -> None:
    package = folder / "project" / "vertex_emulator"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__main__.py").write_text(textwrap.dedent(text))


def start() -> str:
    return emulator_process.start_emulator_unless_running().jobs


def started(data: Path) -> list[int]:
    file = data / "starts"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def endpoint(data: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((data / "endpoint.json").read_text())
    return found


def test_a_started_emulator_is_found_again(data: Path) -> None:
    url = start()
    assert url == endpoint(data)["url"]
    assert start() == url
    assert len(started(data)) == 1


def test_it_listens_on_the_requested_port(data: Path) -> None:
    with reserve_port() as port:
        assert emulator_process.start_emulator_unless_running([f"--port={port}"]).jobs == f"http://127.0.0.1:{port}"


def test_it_gets_no_environment_variables_of_pulumi(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", '{"vertex-training:secrets": "hunter2"}')
    emulator_process.start_emulator_unless_running()
    assert endpoint(data)["pulumi"] == []


def test_one_that_was_killed_is_started_again(data: Path) -> None:
    emulator_process.start_emulator_unless_running()
    (pid,) = started(data)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while find_running_endpoint_or_none(data) and time.monotonic() < deadline:
        time.sleep(0.01)
    url = start()
    assert len(started(data)) == 2
    assert url == endpoint(data)["url"]


def test_it_is_reached_without_the_configured_proxy(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = start()
    with socket.create_server(("127.0.0.1", 0)) as nothing:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{nothing.getsockname()[1]}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(urllib.request, "_opener", None)  # which remembers the proxies of the first call
    assert start() == url
    assert len(started(data)) == 1


def test_a_failed_start_quotes_the_last_line(data: Path) -> None:
    write_emulator(data.parent, "import sys; sys.exit('vertex-emulator: the port is taken\\n')")
    with pytest.raises(EmulatorFailed) as failure:
        emulator_process.start_emulator_unless_running()
    assert str(failure.value) == "the emulator does not start: the port is taken"


def test_a_failed_start_may_have_any_encoding(data: Path) -> None:
    write_emulator(data.parent, r"import sys; sys.stderr.buffer.write(b'caf\xe9 closed\n'); sys.exit(1)")
    with pytest.raises(EmulatorFailed, match="closed"):
        emulator_process.start_emulator_unless_running()


def test_stopping_ends_it(data: Path) -> None:
    emulator_process.start_emulator_unless_running()
    emulator_process.stop_emulator_and_print_outcome()
    assert find_running_endpoint_or_none(data) is None


def test_a_busy_emulator_is_not_stopped(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = start()
    (data / "busy").touch()
    emulator_process.stop_emulator_and_print_outcome(only_if_idle=True)
    assert capsys.readouterr().out == "goes on: 2 jobs are active\n"
    assert start() == url
    (data / "busy").unlink()
    emulator_process.stop_emulator_and_print_outcome(only_if_idle=True)
    assert find_running_endpoint_or_none(data) is None


def test_a_failed_stop_quotes_the_last_line(data: Path) -> None:
    write_emulator(data.parent, "import sys; sys.exit('Docker does not answer')")
    with pytest.raises(EmulatorFailed, match=r"^the emulator does not stop: Docker does not answer$"):
        emulator_process.stop_emulator_and_print_outcome()


def test_the_environment_can_move_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VERTEX_EMULATOR_DATA", raising=False)
    assert emulator_process.get_data_folder() == tmp_path / ".emulator"
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", "elsewhere")
    assert emulator_process.get_data_folder() == tmp_path / "elsewhere"
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", "")
    assert emulator_process.get_data_folder() == tmp_path / ".emulator"


def test_the_project_s_emulator_runs_with_this_python(data: Path) -> None:
    assert emulator_process._build_emulator_command("serve") == [
        sys.executable,
        "-m",
        "vertex_emulator",
        "serve",
        f"--data={data}",
    ]
