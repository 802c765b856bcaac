"""Which server is taken for the emulator of a data folder: the one that holds its lock and bears the marker."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import IO, Any

import pytest
from vertex_training.errors import EmulatorFailed
from vertex_training.runtime import emulator_process
from vertex_training.runtime.emulator_discovery import REMOTE_VARIABLE, find_running_endpoint_or_none

from vertex_api.client import Endpoint

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
def data(tmp_path: Path, server: Server) -> Path:
    """A data folder whose endpoint.json names the server."""
    write_endpoint(tmp_path, server.url)
    (tmp_path / "lock").touch()
    return tmp_path


@pytest.fixture
def lock(data: Path) -> Iterator[IO[str]]:
    with locked(data) as file:
        yield file


@contextmanager
def locked(data: Path) -> Iterator[IO[str]]:
    with (data / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def write_endpoint(data: Path, url: str, **fields: Any) -> None:
    (data / "endpoint.json").write_text(json.dumps({"url": url, "version": VERSION, **fields}))


def test_server_on_stale_port_gets_no_request(
    data: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(data))
    monkeypatch.setattr(emulator_process, "_FOLDER", tmp_path / "no-emulator-here")
    package = tmp_path / "no-emulator-here" / "vertex_emulator"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()  # comes before any that PYTHONPATH has
    with pytest.raises(EmulatorFailed, match="does not start"):
        emulator_process.start_emulator_unless_running()
    (data / "lock").unlink()
    assert find_running_endpoint_or_none(data) is None
    assert server.authorizations == []


def test_emulator_with_lock_and_marker_is_found(data: Path, server: Server, lock: IO[str]) -> None:
    assert find_running_endpoint_or_none(data) == Endpoint.for_server(server.url)
    assert server.authorizations == [None]


@pytest.mark.parametrize("headers", [{}, {"x-vertex-emulator": "0.0.1"}, {"server": VERSION}])
@pytest.mark.parametrize("status", [200, 404])
def test_server_without_the_marker_is_not_used(
    data: Path, server: Server, lock: IO[str], headers: dict[str, str], status: int
) -> None:
    server.headers, server.status = headers, status
    if status == 200 or "x-vertex-emulator" not in headers:
        assert find_running_endpoint_or_none(data) is None


def test_two_probes_do_not_meet(data: Path, server: Server) -> None:
    with (data / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert find_running_endpoint_or_none(data) is None
    assert server.authorizations == []


def test_endpoint_replaced_during_the_check_is_dropped(data: Path, server: Server, lock: IO[str]) -> None:
    class Replacing(dict[str, str]):
        def items(self) -> Any:
            write_endpoint(data, "http://127.0.0.1:1")
            return super().items()

    server.headers = Replacing(server.headers)
    assert find_running_endpoint_or_none(data) is None
    assert server.authorizations == [None]


@pytest.mark.parametrize("url", ["http://192.0.2.1:80", "http://emulator.example", "http://0.0.0.0:1"])
def test_other_machines_need_permission(data: Path, lock: IO[str], url: str) -> None:
    write_endpoint(data, url)
    with pytest.raises(EmulatorFailed) as failure:
        find_running_endpoint_or_none(data)
    assert str(failure.value) == (
        f"the emulator listens on {url}, which other machines reach: serve it on 127.0.0.1, or set "
        "VERTEX_EMULATOR_ALLOW_REMOTE=1 to use it anyway"
    )


def test_permitted_address_of_network_is_used(
    data: Path, server: Server, lock: IO[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REMOTE_VARIABLE, "1")
    url = server.url.replace("127.0.0.1", "0.0.0.0")
    write_endpoint(data, url)
    assert find_running_endpoint_or_none(data) == Endpoint.for_server(url)


def test_rejection_by_the_emulator_is_quoted(data: Path, server: Server, lock: IO[str]) -> None:
    server.status = 403
    with pytest.raises(EmulatorFailed) as failure:
        find_running_endpoint_or_none(data)
    assert str(failure.value) == f"the emulator at {server.url} refuses: not yours"


def test_token_is_sent_where_one_is_needed(data: Path, server: Server, lock: IO[str]) -> None:
    (data / "token").write_text("s3cret\n")
    write_endpoint(data, server.url, token_file=str(data / "token"))
    endpoint = find_running_endpoint_or_none(data)
    assert endpoint == Endpoint.for_server(server.url, "s3cret")
    assert server.authorizations == ["Bearer s3cret"]
    assert "s3cret" not in repr(endpoint)
