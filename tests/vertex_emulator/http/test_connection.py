"""A server within limits: who is shut out when there are too many connections, and who never is."""

import asyncio
import errno
import gc
import http.client
import logging
import os
import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from tests.vertex_emulator.running import PATIENCE_SECONDS, until
from vertex_emulator.http import connection
from vertex_emulator.http.connection import ADMIT, HttpServer, Limits, Listener, raise_file_limit

OWN, STRANGER, FOREIGN = "127.0.0.1", "127.0.0.2", "127.0.0.3"  # from where this user, another one and nobody connects
USERS = {OWN: os.geteuid(), STRANGER: 65_534}
WITH_TOKEN = {"Authorization": "Bearer t"}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Knows whoever has the token; waits, if it is asked to, until the client has left."""
    if any(name == b"authorization" for name, _ in scope["headers"]):
        scope["state"][ADMIT]()
    if scope["path"] == "/work":
        await asyncio.sleep(PATIENCE_SECONDS)
    if scope["path"] == "/wait":
        while (await receive())["type"] != "http.disconnect":
            pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Served:
    """A server, and clients of it."""

    def __init__(self, limits: Limits, stack: ExitStack) -> None:
        self.listener = Listener.open("127.0.0.1", 0)
        self.address = self.listener.getsockname()
        self.server = HttpServer(app, limits)
        self._stack = stack

    def connect(self, source: str) -> socket.socket:
        client = socket.create_connection(self.address, PATIENCE_SECONDS, (source, 0))
        return self._stack.enter_context(client)

    def ask(self, source: str = OWN, headers: dict[str, str] | None = None) -> http.client.HTTPConnection:
        """A connection that is kept after one answer."""
        client = http.client.HTTPConnection(
            self.address[0], self.address[1], timeout=PATIENCE_SECONDS, source_address=(source, 0)
        )
        self._stack.callback(client.close)
        again(client, headers)
        return client

    def open(self) -> int:
        return len(self.server._crowd.all)


def again(client: http.client.HTTPConnection, headers: dict[str, str] | None = None) -> None:
    client.request("GET", "/", headers=headers or {})
    assert client.getresponse().read() == b"ok"


def is_cut(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


Serve = Callable[..., Served]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setattr(connection, "peer_user", lambda accepted: USERS.get(accepted.getpeername()[0]))
    with ExitStack() as stack:

        def start(**limits: Any) -> Served:
            served = Served(Limits(**limits), stack)
            thread = threading.Thread(target=served.server.run, args=([served.listener],))
            thread.start()

            def stop() -> None:
                served.server.should_exit = served.server.force_exit = True
                thread.join()
                served.listener.close()

            stack.callback(stop)
            return served

        yield start


def test_strangers_flood_is_cut_and_owner_answered(serve: Serve) -> None:
    served = serve(unknown=8)
    owned = [served.ask(), served.ask(FOREIGN, WITH_TOKEN)]
    strangers = [served.connect(STRANGER) for _ in range(300)]
    until(lambda: sum(map(is_cut, strangers)) == 292, "the cut of all but eight")
    for client in owned:
        again(client)
    served.ask()
    assert served.open() <= 8 + 3


def test_a_flood_shuts_no_other_peer_out(serve: Serve) -> None:
    served = serve(unknown=8)
    early = served.connect(FOREIGN)
    strangers = [served.connect(STRANGER) for _ in range(50)]
    until(lambda: sum(map(is_cut, strangers)) == 43, "the cut of the flood alone")
    assert not is_cut(early)
    again(served.ask(FOREIGN, WITH_TOKEN))


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx",
    ],
)
def test_an_unknown_connection_has_an_end(serve: Serve, sent: bytes) -> None:
    """Whatever its peer has sent, or sends a byte at a time; that of a known one has none."""
    served = serve(first_seconds=0.3, idle_seconds=0.3)
    own = served.connect(OWN)
    client = served.connect(STRANGER)
    client.sendall(sent)

    def drips() -> bool:
        with suppress(OSError):
            client.sendall(b"a")
        return served.open() == 1

    until(drips, "the end of the stranger's connection")
    assert not is_cut(own)


def test_a_known_connection_stays_idle(serve: Serve) -> None:
    served = serve(first_seconds=0.2, idle_seconds=0.2)
    known = [served.ask(), served.ask(FOREIGN, WITH_TOKEN)]
    other = served.ask(STRANGER)
    until(lambda: served.open() == 2, "the end of the unknown one")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        again(other)
    for client in known:
        again(client)


def test_idle_connections_give_way(serve: Serve) -> None:
    served = serve(connections=4)
    for _ in range(20):
        served.ask()
    until(lambda: served.open() <= 4, "the end of those that idle")


def test_requests_of_clients_that_left_are_limited(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    served = serve(connections=4, unknown=2)
    tasks = served.server.server_state.tasks
    for number in range(1, 9):
        served.connect(STRANGER).sendall(b"GET /work HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda number=number: len(tasks) == number, "the request")  # type: ignore[misc]
    late = served.connect(STRANGER)
    late.sendall(b"GET /work HTTP/1.1\r\nHost: x\r\n\r\n")
    assert late.recv(100).startswith(b"HTTP/1.1 503")
    assert caplog.messages == ["Exceeded concurrency limit."]


def test_requests_at_once_are_answered_in_turn(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """More than twice as many as there may be connections."""
    served = serve(connections=128)
    clients = [served.connect(OWN) for _ in range(300)]
    for client in clients:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    most = served.open()
    assert [client.makefile("rb").read(15) for client in clients] == [b"HTTP/1.1 200 OK"] * 300
    assert most < 2 * 128  # 64 are accepted in a turn, and known in the next
    assert len(caplog.messages) <= 1


def test_connections_wait_where_all_are_used(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """The log says so in one line, not in one for each attempt."""
    served = serve(connections=3)
    busy = [served.connect(OWN) for _ in range(3)]
    for client in busy:
        client.sendall(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    until(lambda: served.open() == 3, "three requests")
    late = threading.Thread(target=served.ask)
    with caplog.at_level(logging.WARNING):
        late.start()
        until(lambda: bool(caplog.messages), "a line")
        for client in busy:
            client.close()
        late.join(PATIENCE_SECONDS)
    assert not late.is_alive()
    assert caplog.messages == ["new connections wait: 3 are open, and all of them are in use"]


def test_a_process_without_descriptors_logs_one_line(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve()
    failures = []

    def fail(_listener: Listener) -> Any:
        failures.append(1)
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(Listener, "_accept_open", fail)
        waiting = [served.connect(OWN) for _ in range(30)]
        until(lambda: len(failures) > 1, "a second attempt")
    assert caplog.messages == ["new connections wait: Too many open files"]
    for client in waiting:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200")


def test_ended_connections_take_no_memory(serve: Serve) -> None:
    """Nor do they wait for a garbage collection; those of clients that reset them do not wait for a timer either."""
    served = serve()
    gc.collect()
    gc.disable()
    try:
        for number in range(30):
            client = served.ask(OWN if number % 2 else STRANGER)
            if number % 3:
                assert client.sock
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            left = served.connect(OWN if number % 2 else STRANGER)
            left.sendall(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
            left.close()

        def alive() -> int:
            return sum(isinstance(each, connection.IdentifiedConnection) for each in gc.get_objects())

        until(lambda: alive() <= 1, "the end of all but the last, which uvicorn's last task may still know")
    finally:
        gc.enable()


@contextmanager
def file_limit(soft: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_of_files_is_raised() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with file_limit(1024):
        raised = raise_file_limit()
        assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 65_536)


@pytest.mark.parametrize("files", [256, 1024, 4096, 65_536])
def test_connections_leave_most_files_to_others(files: int) -> None:
    limits = [Limits().within(files), connection.Limits(512, 256).within(files)]
    assert sum(each.connections for each in limits) <= files // 2
    assert all(each.unknown <= each.connections // 2 for each in limits)


def test_other_errors_of_a_loop_are_told(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    HttpServer(app, Limits())._report(loop, {"message": "something else", "exception": ValueError("x")})
    loop.close()
    assert caplog.messages == ["something else"]
