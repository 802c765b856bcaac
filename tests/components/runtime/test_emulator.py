"""The emulator from outside: found, started, stopped, and its files of secrets and of declarations."""

import fcntl
import json
import os
import signal
import socket
import sys
import textwrap
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import IO, Any

import pytest
from vertex_training.errors import EmulatorFailed
from vertex_training.own import emulator_data
from vertex_training.runtime import emulator
from vertex_training.runtime.emulator import (
    REMOTE_VARIABLE,
    find,
    replace_declarations,
    replace_secrets,
)

from tests.ports import reserve_port
from vertex_api.client import Endpoint
from vertex_api.emulator import SECRETS
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.secrets import SecretValues

VERSION = "1.2.3"


@dataclass
class Server:
    """A server, with what it answers and the requests that it got."""

    url: str
    headers: dict[str, str] = field(default_factory=lambda: {"x-vertex-emulator": VERSION})
    status: int = 200
    authorizations: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.authorizations.append(self.headers.get("Authorization"))
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps({"error": {"message": "not yours"}}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        found = Server(f"http://127.0.0.1:{http.server_port}")
        thread = Thread(target=http.serve_forever)
        thread.start()
        yield found
        http.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path, server: Server) -> Path:
    """A folder folder whose endpoint.json names the server."""
    write_endpoint(tmp_path, server.url)
    (tmp_path / "lock").touch()
    return tmp_path


@pytest.fixture
def lock(folder: Path) -> Iterator[IO[str]]:
    with locked(folder) as file:
        yield file


@contextmanager
def locked(folder: Path) -> Iterator[IO[str]]:
    with (folder / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def write_endpoint(folder: Path, url: str, **fields: Any) -> None:
    (folder / "endpoint.json").write_text(
        json.dumps({"pid": 1, "host": "h", "port": 1, "url": url, "version": VERSION, **fields})
    )


def test_server_on_stale_port_gets_no_request(
    folder: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(folder))
    monkeypatch.setattr(emulator, "_FOLDER", tmp_path / "no-emulator-here")
    package = tmp_path / "no-emulator-here" / "vertex_emulator"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()  # comes before any that PYTHONPATH has
    with pytest.raises(EmulatorFailed, match="does not start"):
        emulator.start()
    (folder / "lock").unlink()
    assert find(folder) is None
    assert server.authorizations == []


def test_emulator_with_lock_and_marker_is_found(folder: Path, server: Server, lock: IO[str]) -> None:
    assert find(folder) == Endpoint.for_server(server.url)
    assert server.authorizations == [None]


@pytest.mark.parametrize("brought", ["a folder that others can open", "a link as the lock", "a link as the endpoint"])
def test_a_checkout_s_endpoint_gets_no_token(folder: Path, server: Server, lock: IO[str], brought: str) -> None:
    write_endpoint(folder, server.url, token_file=str(folder / "key"))
    (folder / "key").write_text("canary")
    if brought == "a folder that others can open":
        folder.chmod(0o755)
    else:
        file = folder / ("lock" if brought == "a link as the lock" else "endpoint.json")
        file.rename(folder / "other")
        file.symlink_to("other")
    assert find(folder) is None
    assert server.authorizations == []


@pytest.mark.parametrize("headers", [{}, {"x-vertex-emulator": "0.0.1"}, {"server": VERSION}])
@pytest.mark.parametrize("status", [200, 404])
def test_server_without_the_marker_is_not_used(
    folder: Path, server: Server, lock: IO[str], headers: dict[str, str], status: int
) -> None:
    server.headers, server.status = headers, status
    if status == 200 or "x-vertex-emulator" not in headers:
        assert find(folder) is None


def test_two_probes_do_not_meet(folder: Path, server: Server) -> None:
    with (folder / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert find(folder) is None
    assert server.authorizations == []


def test_endpoint_replaced_during_the_check_is_dropped(folder: Path, server: Server, lock: IO[str]) -> None:
    class Replacing(dict[str, str]):
        def items(self) -> Any:
            write_endpoint(folder, "http://127.0.0.1:1")
            return super().items()

    server.headers = Replacing(server.headers)
    assert find(folder) is None
    assert server.authorizations == [None]


@pytest.mark.parametrize("url", ["http://192.0.2.1:80", "http://emulator.example", "http://0.0.0.0:1"])
def test_other_machines_need_permission(folder: Path, lock: IO[str], url: str) -> None:
    write_endpoint(folder, url)
    with pytest.raises(EmulatorFailed) as failure:
        find(folder)
    assert str(failure.value) == (
        f"the emulator listens on {url}, which other machines reach: serve it on 127.0.0.1, or set "
        "VERTEX_EMULATOR_ALLOW_REMOTE=1 to use it anyway"
    )


def test_permitted_address_of_network_is_used(
    folder: Path, server: Server, lock: IO[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REMOTE_VARIABLE, "1")
    url = server.url.replace("127.0.0.1", "0.0.0.0")
    write_endpoint(folder, url)
    assert find(folder) == Endpoint.for_server(url)


def test_rejection_by_the_emulator_is_quoted(folder: Path, server: Server, lock: IO[str]) -> None:
    server.status = 403
    with pytest.raises(EmulatorFailed) as failure:
        find(folder)
    assert str(failure.value) == f"the emulator at {server.url} refuses: not yours"


def test_token_is_sent_where_one_is_needed(folder: Path, server: Server, lock: IO[str]) -> None:
    (folder / "token").write_text("s3cret\n")
    write_endpoint(folder, server.url, token_file=str(folder / "token"))
    endpoint = find(folder)
    assert endpoint == Endpoint.for_server(server.url, "s3cret")
    assert server.authorizations == ["Bearer s3cret"]
    assert "s3cret" not in repr(endpoint)


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
        data.mkdir(mode=0o700, exist_ok=True)
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
        endpoint = {"url": f"http://127.0.0.1:{server.server_port}", "pid": os.getpid(), "host": "", "port": 1}
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
        print("stopped")
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The emulator's folder, in a project whose emulator is the one above; all that was started is ended."""
    monkeypatch.setattr(emulator, "_FOLDER", tmp_path / "project")
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
    (package / "__init__.py").touch()  # or the installed package is found first
    (package / "__main__.py").write_text(textwrap.dedent(text))


def start() -> str:
    return emulator.start().jobs


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
        assert emulator.start([f"--port={port}"]).jobs == f"http://127.0.0.1:{port}"


def test_it_gets_no_environment_variables_of_pulumi(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", '{"vertex-training:secrets": "hunter2"}')
    emulator.start()
    assert endpoint(data)["pulumi"] == []


def test_one_that_was_killed_is_started_again(data: Path) -> None:
    emulator.start()
    (pid,) = started(data)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while find(data) and time.monotonic() < deadline:
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
        emulator.start()
    assert str(failure.value) == "the emulator does not start: the port is taken"


def test_a_failed_start_may_have_any_encoding(data: Path) -> None:
    write_emulator(data.parent, r"import sys; sys.stderr.buffer.write(b'caf\xe9 closed\n'); sys.exit(1)")
    with pytest.raises(EmulatorFailed, match="closed"):
        emulator.start()


def test_stopping_ends_it_without_a_word(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    emulator.start()
    emulator.stop()
    assert find(data) is None
    assert capsys.readouterr().out == ""


def test_a_busy_emulator_is_not_stopped(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = start()
    (data / "busy").touch()
    emulator.stop(only_if_idle=True)
    assert capsys.readouterr().out == "goes on: 2 jobs are active\n"
    assert start() == url
    (data / "busy").unlink()
    emulator.stop(only_if_idle=True)
    assert find(data) is None


def test_a_failed_stop_quotes_the_last_line(data: Path) -> None:
    write_emulator(data.parent, "import sys; sys.exit('Docker does not answer')")
    with pytest.raises(EmulatorFailed, match=r"^the emulator does not stop: Docker does not answer$"):
        emulator.stop()


def test_the_environment_can_move_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VERTEX_EMULATOR_DATA", raising=False)
    assert emulator_data() == tmp_path / ".emulator"
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", "elsewhere")
    assert emulator_data() == tmp_path / "elsewhere"
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", "")
    assert emulator_data() == tmp_path / ".emulator"


def test_the_emulator_runs_with_this_python(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(emulator.subprocess, "run", lambda command, **_: commands.append(command))
    emulator._run("serve")
    assert commands == [[sys.executable, "-m", "vertex_emulator", "serve", f"--data={data}"]]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in a data folder that does not exist yet."""
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / SECRETS


def test_the_file_is_for_its_owner_only(file: Path) -> None:
    for value in "ab":
        replace_secrets("p", {"token": value})
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700


def test_each_project_has_its_own_secrets(file: Path) -> None:
    replace_secrets("p", {})
    assert not file.parent.exists()
    replace_secrets("p", {"token": "a", "old": "b"})
    replace_secrets("q", {"token": "c"})
    replace_secrets("p", {"token": "d"})
    assert json.loads(file.read_text()) == {"p": {"token": "d"}, "q": {"token": "c"}}
    replace_secrets("p", {})
    replace_secrets("q", {})
    assert not file.exists()


def test_the_emulator_reads_what_is_stored(file: Path) -> None:
    replace_secrets("p", {"token": "a"})
    values = SecretValues(DataFolder(file.parent).secrets)
    assert values.access("p", "token", "latest")["payload"]["data"] == "YQ=="


def test_each_stack_has_its_own_declarations(file: Path) -> None:
    replace_declarations("p/a", Path("/p"), [{"name": "customJobs.a"}])
    assert not file.parent.exists()
    file.parent.mkdir()
    for stack, name in (("p/a", "customJobs.old"), ("p/b", "customJobs.b"), ("p/a", "customJobs.a")):
        replace_declarations(stack, Path("/p"), [{"name": name}])
    written = DataFolder(file.parent).declarations
    assert written.stat().st_mode & 0o777 == 0o600
    assert json.loads(written.read_text()) == {
        stack: {"folder": "/p", "jobs": [{"name": f"customJobs.{stack[-1]}"}]} for stack in ("p/b", "p/a")
    }
    for stack in ("p/a", "p/b"):
        replace_declarations(stack, Path("/p"), [])
    assert not written.exists()


@pytest.mark.parametrize("name", ["secrets.json", "secrets.lock"])
def test_secrets_are_written_through_no_link(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    (tmp_path / "mine").write_text("{}")
    (tmp_path / "data" / name).symlink_to(tmp_path / "mine")
    with pytest.raises(EmulatorFailed, match=rf"{name}: is a link, which may lead anywhere; remove it$"):
        replace_secrets("local", {"token": "canary"})
    assert (tmp_path / "mine").read_text() == "{}"
