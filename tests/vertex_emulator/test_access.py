"""Who may send requests to the port: the emulator's own user, not the others of this machine."""

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.ports import reserve_port
from tests.vertex_emulator.other_user import NOBODY, as_user, needs_root
from tests.vertex_emulator.running import (
    IMAGE,
    PARENT,
    PATIENCE_SECONDS,
    RunningEmulator,
    absent,
    command,
    custom_job,
    pool,
    until,
)
from vertex_emulator.data_folder import is_locked

JOBS = f"/v1/{PARENT}/customJobs"
JSON = {"Content-Type": "application/json"}


def port(emulator: RunningEmulator) -> int:
    return int(emulator.url.rpartition(":")[2])


def post(emulator: RunningEmulator, body: Any, host: str = "127.0.0.1") -> Callable[[], Any]:
    """Gives status and answer to a POST of a job, on a connection to another form of the address."""

    def work() -> Any:
        connection = http.client.HTTPConnection(host, port(emulator))
        with closing(connection):
            connection.request("POST", JOBS, json.dumps(body), {**JSON, "Host": "localhost"})
            reply = connection.getresponse()
            return [reply.status, json.load(reply)]

    return work


def raw_post(body: Any) -> bytes:
    """The bytes of a POST of a job, for clients that do not wait for an answer."""
    text = json.dumps(body).encode()
    head = f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
    return head + b"Content-Length: %d\r\n\r\n" % len(text) + text


@needs_root
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.1"])
def test_another_user_cannot_create_a_job(own: RunningEmulator, host: str) -> None:
    own.end()
    own.options = ("--host", "0.0.0.0", "--allow-remote")
    own.start()
    status, answer = as_user(NOBODY, post(own, custom_job(pool("print('taken')")), host))
    assert (status, answer["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert answer["error"]["message"] == (
        "This emulator belongs to root (uid 0), and nobody (uid 65534) may not use it: start one of your own with "
        "`vertex-emulator serve --data DIR`."
    )
    assert own.call("GET", JOBS[1:]) == {}
    assert post(own, absent("mine"), host)()[0] == 200


@needs_root
@pytest.mark.parametrize("path", ["/", "/healthz", "/vertex_emulator/page/jobs", "/storage/v1/b", "/nowhere"])
def test_another_user_can_read_nothing(shared: RunningEmulator, path: str) -> None:
    def get() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port(shared))
        with closing(connection):
            connection.request("GET", path)
            return connection.getresponse().status

    assert as_user(NOBODY, get) == 403


@needs_root
def test_a_closed_connection_counts_as_nobody_s(own: RunningEmulator) -> None:
    """Linux reports root as the user of a socket that its user has closed."""
    request = raw_post(absent("left behind"))

    def send_and_leave() -> None:
        for attempt in range(300):
            connection = socket.create_connection(("127.0.0.1", port(own)))
            connection.sendall(request)
            if attempt % 3 == 1:
                connection.shutdown(socket.SHUT_RDWR)
            elif attempt % 3 == 2:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    as_user(NOBODY, send_and_leave)
    assert own.call("GET", "healthz")["status"] == "ok"
    assert own.call("GET", JOBS[1:]) == {}


def connect_from(source_port: int, emulator: RunningEmulator) -> socket.socket:
    """Connect from a port that somebody else may use a moment later; closing resets the connection."""
    connection = socket.socket()
    connection.settimeout(PATIENCE_SECONDS)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.bind(("127.0.0.1", source_port))
    connection.connect(("127.0.0.1", port(emulator)))
    return connection


@needs_root
def test_reset_requests_belong_to_nobody(own: RunningEmulator) -> None:
    """Linux delivers what was sent before a reset, and the owner's client may hold the source port by then."""
    request = raw_post(absent("inherited"))

    def send_and_reset() -> None:
        for source_port in ports:
            with connect_from(source_port, own) as connection:
                connection.sendall(request)

    with ExitStack() as stack:
        ports = [stack.enter_context(reserve_port()) for _ in range(100)]
        own.process.send_signal(signal.SIGSTOP)  # as if all of these connections waited for their turn
        try:
            as_user(NOBODY, send_and_reset)
            connections = [stack.enter_context(connect_from(source_port, own)) for source_port in ports]
        finally:
            own.process.send_signal(signal.SIGCONT)
        for connection in connections:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        statuses = [connection.recv(12) for connection in connections]
    assert statuses == [b"HTTP/1.1 200"] * 100
    assert own.call("GET", JOBS[1:]) == {}


@needs_root
def test_the_owner_is_answered_during_floods(own: RunningEmulator) -> None:
    request = raw_post(absent("flood"))
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        while True:
            with contextlib.suppress(OSError), socket.socket() as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.connect(("127.0.0.1", port(own)))
                connection.sendall(request)
    try:
        for _ in range(100):
            reply = requests.get(f"{own.url}/healthz", timeout=PATIENCE_SECONDS)
            assert reply.status_code == 200
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert own.call("GET", JOBS[1:]) == {}


@needs_root
def test_a_ports_next_user_is_identified(shared: RunningEmulator) -> None:
    def get_from(source_port: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port(shared))
        with closing(connection), connect_from(source_port, shared) as connection.sock:
            connection.request("GET", "/healthz")
            reply = connection.getresponse()
            reply.read()
            return reply.status

    with reserve_port() as source_port:
        assert get_from(source_port) == 200
        assert as_user(NOBODY, lambda: get_from(source_port)) == 403
        assert get_from(source_port) == 200


@needs_root
def test_token_of_owner_lets_another_user_in(shared: RunningEmulator) -> None:
    token = (shared.data / "token").read_text().strip()

    def get(authorization: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port(shared))
        with closing(connection):
            connection.request("GET", "/healthz", headers={"Authorization": authorization})
            return connection.getresponse().status

    tried = [f"Bearer {token}", f"bearer  {token} ", token, f"Bearer {token[:-1]}", "Bearer ", "Bearer é", ""]
    assert [as_user(NOBODY, lambda each=each: get(each)) for each in tried] == [200, 200, *[403] * 5]  # type: ignore[misc]


def test_a_stale_endpoint_is_removed_first(own: RunningEmulator) -> None:
    own.process.kill()
    own.process.wait()
    assert (own.data / "endpoint.json").exists()
    with closing(sqlite3.connect(own.data / "emulator.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")  # the start waits for it
        starting = subprocess.Popen([sys.executable, "-m", "vertex_emulator", "serve", "--data", str(own.data)])
        until(lambda: is_locked(own.data / "lock"), "the lock")
        until(lambda: not (own.data / "endpoint.json").exists(), "the removal")
        assert starting.poll() is None
    starting.terminate()
    starting.wait(PATIENCE_SECONDS)


def test_token_is_made_once(own: RunningEmulator) -> None:
    token = own.data / "token"
    first = token.read_text()
    assert len(first.strip()) >= 43
    token.chmod(0o644)
    own.end()
    own.start()
    assert (token.read_text(), token.stat().st_mode & 0o777) == (first, 0o600)


def test_a_linked_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "token").symlink_to(tmp_path / "elsewhere")
    done = command("serve", data=tmp_path / "data")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"the data folder {tmp_path / 'data'} has links, which may lead anywhere (token); remove them" in done.stderr
    assert not (tmp_path / "elsewhere").exists()


def test_another_machine_needs_the_token(own: RunningEmulator) -> None:
    """A container on Docker's bridge is one: the kernel does not know the user at its end."""
    own.end()
    own.options = ("--host", "0.0.0.0", "--allow-remote")
    own.start()
    token = (own.data / "token").read_text().strip()
    script = f"""
import socket, urllib.error, urllib.request
gateway = socket.inet_ntoa(bytes.fromhex(open("/proc/net/route").read().split()[13])[::-1])
for headers in ({{}}, {{"Authorization": "Bearer {token}"}}, {{"Authorization": "Bearer x"}}):
    request = urllib.request.Request(f"http://{{gateway}}:{port(own)}/healthz", headers=headers)
    try:
        print(urllib.request.urlopen(request).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""
    arguments = ["docker", "run", "--rm", IMAGE, "python3", "-c", script]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["401", "200", "401"], "")
    assert "other machines need the token" in (own.data.parent / "data.log").read_text()
