"""A server within limits: who is shut out when there are too many connections, and who never is."""

import asyncio
import errno
import gc
import http.client
import logging
import os
import resource
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from tests.vertex_emulator.running import PATIENCE_SECONDS, until
from vertex_emulator.http import connection
from vertex_emulator.http.connection import ADMIT, HTTP2, PEER_USER, HttpServer, Limits, Listener, raise_file_limit
from vertex_emulator.inside.authority import Authority

OWN, STRANGER, FOREIGN = "127.0.0.1", "127.0.0.2", "127.0.0.3"  # from where this user, another one and nobody connects
USERS = {OWN: os.geteuid(), STRANGER: 65_534}
WITH_TOKEN = {"Authorization": "Bearer t"}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Knows whoever has the token; waits, if it is asked to, until the client has left; tells whose a request is."""
    if any(name == b"authorization" for name, _ in scope["headers"]):
        scope["state"][ADMIT]()
    if scope["path"] == "/work":
        await asyncio.sleep(PATIENCE_SECONDS)
    if scope["path"] == "/wait":
        while (await receive())["type"] != "http.disconnect":
            pass
    user = str(scope["state"][PEER_USER]).encode()
    headers = [(b"content-length", b"2"), (b"x-user", user), (b"x-scheme", scope["scheme"].encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


class Served:
    """A server, and clients of it."""

    def __init__(self, limits: Limits, stack: ExitStack, **options: Any) -> None:
        self.listener = Listener.open("127.0.0.1", 0)
        self.address = self.listener.getsockname()
        self.server = HttpServer(app, limits, **options)
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

        def start(options: Mapping[str, Any] = MappingProxyType({}), **limits: Any) -> Served:
            served = Served(Limits(**limits), stack, **options)
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


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("authority")
    return Authority(folder / "server.pem", folder / "trusted.pem")


class Echo:
    """A relay that sends back what it gets, behind the user whose connection it is."""

    is_checked = False

    def __init__(self, client: asyncio.Transport, user: object) -> None:
        self._client, self._user = client, user

    def send(self, data: bytes) -> None:
        self._client.write(f"{self._user}:".encode() + data)

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...


async def echo(client: asyncio.Transport, first: bytes, state: Mapping[str, Any]) -> Echo:
    relay = Echo(client, state[PEER_USER])
    relay.send(first)
    return relay


def encrypted(served: Served, source: str, authority: Authority, *protocols: str) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(authority.bundle()))
    context.set_alpn_protocols(protocols)
    client = socket.create_connection(served.address, PATIENCE_SECONDS, (source, 0))
    return served._stack.enter_context(context.wrap_socket(client, server_hostname="localhost"))


def answered(client: socket.socket) -> str:
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    got = b""
    while not got.endswith(b"ok"):
        got += client.recv(4096) or b"ended: ok"
    return got.decode()


def test_a_port_has_both_plain_and_encrypted_requests(serve: Serve, authority: Authority) -> None:
    """The kernel's user is that of the peer below TLS, too, and a header that claims another one changes nothing."""
    served = serve({"tls": authority.context})
    served.ask()
    for source, user in ((OWN, USERS[OWN]), (STRANGER, USERS[STRANGER]), (FOREIGN, None)):
        with encrypted(served, source, authority, "h2", "http/1.1") as client:
            assert client.selected_alpn_protocol() == "http/1.1"
            answer = answered(client)
            assert f"x-user: {user}\r\n" in answer and "x-scheme: https\r\n" in answer
            assert answered(client)  # the connection is kept
            client.sendall(b"\x16\x03\x01 no TLS in TLS\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 400")
    until(lambda: served.open() == 1, "the end of all but the first")


def test_an_encrypted_relay_knows_the_user_too(serve: Serve, authority: Authority) -> None:
    served = serve({"tls": authority.context, "relay": echo}, relay_seconds=0.5)
    own = encrypted(served, OWN, authority, "h2")
    stranger = encrypted(served, STRANGER, authority, "h2")
    assert {each.selected_alpn_protocol() for each in (own, stranger)} == {"h2"}
    for client, user in ((own, USERS[OWN]), (stranger, USERS[STRANGER])):
        client.sendall(HTTP2)
        assert client.recv(100) == f"{user}:".encode() + HTTP2
    until(lambda: served.open() == 1, "the end of the one whose calls nobody has admitted")
    own.sendall(b"more")
    assert own.recv(100) == f"{USERS[OWN]}:more".encode()


def test_handshakes_that_fail_leave_nothing(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    served = serve({"tls": authority.context}, first_seconds=0.5)
    with pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(served.connect(OWN), server_hostname="localhost")
    waiting, *others = (served.connect(source) for source in (OWN, STRANGER, OWN, STRANGER))
    for client in (waiting, others[0]):
        client.sendall(b"\x16")
    for client in others[1:]:
        client.sendall(b"\x16\x03\x01\0\5hello")
    for client in others:
        until(lambda client=client: is_cut(client), "the end of one that has not gone on, or not with TLS")
    until(lambda: served.open() == 1, "the end of all but the owner's, which has time")
    assert not is_cut(waiting)
    (tmp_path / "server.pem").write_text("no key")
    (tmp_path / "trusted.pem").write_text("")
    broken = serve({"tls": Authority(tmp_path / "server.pem", tmp_path / "trusted.pem").context})
    with pytest.raises((ssl.SSLError, ConnectionError)):
        encrypted(broken, OWN, authority)
    broken.ask()
    until(lambda: broken.open() == 1, "the end of the refused one")
