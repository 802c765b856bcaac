"""The serving process: its socket, its connections and its end."""

import http.client
import select
import signal
import socket
from contextlib import closing
from pathlib import Path

import uvicorn

from tests.vertex_emulator.preloaded import ForkedProcess
from tests.vertex_emulator.running import PATIENCE_SECONDS, RunningEmulator
from vertex_emulator.database import Database
from vertex_emulator.server import open_listener

GOOGLE_SDK_POLL_SECONDS = 5.0
"""`google.cloud.aiplatform` looks at a job that often; uvicorn closes idle connections after as long by default."""


def test_replies_are_sent_without_delay(tmp_path: Path) -> None:
    database = Database(tmp_path / "emulator.db")
    with (
        open_listener("127.0.0.1", None, database) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    database.close()


def test_an_idle_connection_stays_open(shared: RunningEmulator) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=PATIENCE_SECONDS)) as connection:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        readable, _, _ = select.select([connection.sock], [], [], GOOGLE_SDK_POLL_SECONDS + 1)
        assert readable == []  # as it is at its end


def test_a_stop_is_heeded_during_the_start(tmp_path: Path) -> None:
    process = ForkedProcess(
        ["serve", "--data", str(tmp_path / "data")], tmp_path / "log", tmp_path / "log", stop_before_uvicorn_runs
    )
    assert process.wait(PATIENCE_SECONDS) == 0
    assert not (tmp_path / "data" / "endpoint.json").exists()


def stop_before_uvicorn_runs() -> None:
    run = uvicorn.Server.run

    def stop_and_run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        signal.raise_signal(signal.SIGTERM)
        run(server, sockets)

    uvicorn.Server.run = stop_and_run  # type: ignore[assignment,method-assign]
