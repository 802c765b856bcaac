"""`vertex-emulator inject debug`: a debugger attaches to replicas, each on a port of this machine."""

import contextlib
import errno
import json
import re
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from tests.blocks import taken
from tests.ports import reserve_port
from tests.vertex_emulator import packages
from tests.vertex_emulator.debugger_client import DebuggerClient
from tests.vertex_emulator.other_user import NOBODY, as_user, needs_root
from tests.vertex_emulator.running import (
    IMAGE,
    PATIENCE_SECONDS,
    RunningEmulator,
    command,
    custom_job,
    labelled,
    pool,
    until,
)
from tests.vertex_emulator.test_python_packages import BUCKET
from tests.vertex_emulator.test_python_packages import pool as package_pool
from vertex_emulator import debugging
from vertex_emulator.database import Database
from vertex_emulator.database.records import Replica
from vertex_emulator.debugging import DebugPorts
from vertex_emulator.faults import DEFAULT_DEBUG_PORT
from vertex_emulator.replicas.debugger import CONTAINER_PORT
from vertex_emulator.replicas.executor import Executor

TRAIN = """\
import os, subprocess, sys

total = 40 + 2 * int(os.environ["RANK"])
print("total", total, os.environ.get("PYTHONPATH"), flush=True)
if total == 42:
    subprocess.run([sys.executable, "/gcs/code/child.py"], check=True)
"""
CHILD = "part = 7 * 6\nprint('part', part)\n"
# A launcher starts its workers as `torchrun` does.
LAUNCHER = """\
import subprocess, sys

commands = [[sys.executable, "-u", "/gcs/launched/worker.py", str(rank)] for rank in range(2)]
workers = [subprocess.Popen(command) for command in commands]
sys.exit(max(worker.wait() for worker in workers))
"""
WORKER = """\
import os, sys, time

rank = int(sys.argv[1])
os.write(1, b"worker %d runs\\n" % rank)
while not os.path.exists("/gcs/launched/go"):
    time.sleep(0.05)
total = rank + 40
"""
INSTALLED = "/root/.local/lib/python3.11/site-packages/trainer/task.py"


def inject_debug(emulator: RunningEmulator, *options: str) -> None:
    done = command("inject", "debug", "--name=debugged", *options, data=emulator.data)
    assert (done.returncode, "\nattach to 127.0.0.1:" in done.stdout) == (0, True), done.stderr


def ports(emulator: RunningEmulator, name: str) -> list[tuple[str, int]]:
    """Tasks and ports that the job's log has named so far."""
    lines = emulator.lines(name, 'resource.labels.task_name="service"')
    found = re.findall(r"Attach a debugger to (\S+) at 127\.0\.0\.1:(\d+)(?:; it waits for one)?\.", "\n".join(lines))
    return [(task, int(port)) for task, port in found]


def at(port: int) -> dict[str, Any]:
    """The arguments of a client that attaches to a port."""
    return {"connect": {"host": "127.0.0.1", "port": port}}


def is_open(port: int) -> bool:
    """Return whether anybody listens on a port, without a connection: it may be another emulator's by now."""
    with socket.socket() as another:
        another.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            another.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False


def test_breakpoints_stop_one_replica(shared: RunningEmulator) -> None:
    code = shared.data / "gcs" / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    (code / "child.py").write_text(CHILD)
    inject_debug(shared, "--wait")
    replica = pool("", command=["python3", "/gcs/code/train.py"], env=[{"name": "PYTHONPATH", "value": "/own"}])
    name = shared.create(custom_job(replica, replica, name="debugged"))
    shared.in_state(name, "JOB_STATE_RUNNING")
    (task, first), (_, second) = ports(shared, name)
    assert task == "workerpool0-0"

    (shown,) = taken("docs/emulator.md", "json")
    (documented,) = json.loads(shown)["configurations"]
    assert (documented["name"], documented["connect"]) == ("workerpool1-0", at(DEFAULT_DEBUG_PORT + 1)["connect"])
    mapping = documented | {"pathMappings": [{"localRoot": str(code), "remoteRoot": "/gcs/code"}]}
    breakpoints = {f"{code}/train.py": [4], f"{code}/child.py": [2]}
    with DebuggerClient("127.0.0.1", second) as debugger, DebuggerClient("127.0.0.1", first) as bystander:
        debugger.attach(mapping | at(second), breakpoints)
        assert debugger.evaluate_where_it_stopped("total + 1") == (4, "43")
        child = debugger.event("debugpyAttach")
        assert child["connect"] == at(second)["connect"]
        with DebuggerClient("127.0.0.1", second) as debugger_of_child:
            debugger_of_child.attach(child, breakpoints)
            assert debugger_of_child.evaluate_where_it_stopped("part") == (2, "42")
            debugger_of_child.event("terminated")
        debugger.event("terminated")
        bystander.attach(at(first), {})
        bystander.event("terminated")
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert sorted(shared.lines(name)) == ["part 42", "total 40 /own", "total 42 /own"]
    until(lambda: not is_open(first) and not is_open(second), "the end of the ports")


def test_workers_are_attached_later(shared: RunningEmulator) -> None:
    code = shared.data / "gcs" / "launched"
    code.mkdir()
    (code / "launcher.py").write_text(LAUNCHER)
    (code / "worker.py").write_text(WORKER)
    inject_debug(shared)
    name = shared.create(custom_job(pool("", command=["python3", "/gcs/launched/launcher.py"]), name="debugged"))
    until(lambda: sorted(shared.lines(name)) == ["worker 0 runs", "worker 1 runs"], "both workers")
    ((_, port),) = ports(shared, name)

    mapping = {"pathMappings": [{"localRoot": str(code), "remoteRoot": "/gcs/launched"}]}
    with DebuggerClient("127.0.0.1", port) as debugger, contextlib.ExitStack() as sessions:
        debugger.attach(at(port) | mapping, {})
        workers = [sessions.enter_context(DebuggerClient("127.0.0.1", port)) for _ in range(2)]
        for worker in workers:
            worker.attach(debugger.event("debugpyAttach"), {f"{code}/worker.py": [7]})
        (code / "go").touch()
        assert sorted(worker.evaluate_where_it_stopped("rank") for worker in workers) == [(7, "0"), (7, "1")]
        debugger.event("terminated")
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"


@pytest.fixture
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """An emulator whose containers reach nothing."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("offline") / "data", "--no-egress")
    yield emulator
    emulator.close()


@needs_root
def test_packages_are_debugged_after_a_crash(offline: RunningEmulator) -> None:
    wheel = packages.wheel(offline.data / "gcs" / BUCKET, "trainer", "value = 6 * 7\nprint('value', value)\n")
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        taken = occupied.getsockname()[1]
        inject_debug(offline, "--wait", f"--port={taken}")
        name = offline.create(custom_job(package_pool(wheel), name="debugged"))
        until(lambda: ports(offline, name), "the port")
        offline.end(signal.SIGKILL)
        offline.start()
        until(lambda: len(ports(offline, name)) == 2, "the port after the crash")
        _, port = ports(offline, name)[-1]
        assert port > taken

        def read_as_another_user() -> str:
            with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as stranger:
                return stranger.recv(1000).decode()

        assert as_user(NOBODY, read_as_another_user) == ""
        with DebuggerClient("127.0.0.1", port) as debugger:
            debugger.attach({**at(port), "justMyCode": False}, {INSTALLED: [2]})
            assert debugger.evaluate_where_it_stopped("value") == (2, "42")
            debugger.event("terminated")
    assert offline.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert offline.lines(name)[-1] == "value 42"


class ReplicaInMemory:
    """An executor and its only replica: keeps what is sent to it, and answers nothing."""

    def __init__(self) -> None:
        self.connections: list[bytes] = []
        self.ended = threading.Semaphore(0)
        self._lock = threading.Lock()

    def connect_to_port(self, *_: Any) -> "ConnectionInMemory":
        return ConnectionInMemory(self)

    def keep(self, sent: bytes) -> None:
        with self._lock:
            self.connections.append(sent)
        self.ended.release()


class ConnectionInMemory:
    """A connection to it; its output ends with its input."""

    def __init__(self, replica: ReplicaInMemory) -> None:
        self._replica = replica
        self._sent = b""
        self._ended = threading.Event()

    def write(self, data: bytes) -> None:
        self._sent += data

    def close_input(self) -> None:
        self._ended.set()

    def output(self) -> Iterator[tuple[int, bytes]]:
        assert self._ended.wait(PATIENCE_SECONDS)
        yield from ()

    def close(self) -> None:
        self._replica.keep(self._sent)


MESSAGE = b"Content-Length: 2\r\n\r\n{}"


@contextlib.contextmanager
def forwarded(listening: socket.socket, replica: ReplicaInMemory) -> Iterator[None]:
    """Relay the connections of a listening socket to a replica while the block runs."""
    debug_ports = DebugPorts(cast("Database", None), cast("Executor", replica))
    listener = debugging._Listener(Replica(0, 0), listening)
    debug_ports._listeners["1"] = {"workerpool0-0": listener}
    threading.Thread(target=debug_ports._accept, args=("1", listener), daemon=True).start()
    try:
        yield
    finally:
        debug_ports.close("1")


def resetting(source_port: int, port: int) -> socket.socket:
    """A connection from a port of the sender's choice, reset when it is closed."""
    connection = socket.socket()
    connection.settimeout(PATIENCE_SECONDS)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.bind(("127.0.0.1", source_port))
    connection.connect(("127.0.0.1", port))
    return connection


@needs_root
def test_reset_messages_reach_no_replica() -> None:
    """As of requests (test_access.py): what another user sent before a reset reaches no replica."""
    replica = ReplicaInMemory()
    with ExitStack() as stack:
        ports = [stack.enter_context(reserve_port()) for _ in range(50)]
        listening = socket.create_server(("127.0.0.1", 0), backlog=200)
        port = listening.getsockname()[1]

        def send_and_reset() -> None:
            for source_port in ports:
                with resetting(source_port, port) as connection:
                    connection.sendall(MESSAGE.replace(b"{}", b"[]"))

        as_user(NOBODY, send_and_reset)  # nobody accepts yet: they wait for their turn
        own = [stack.enter_context(resetting(source_port, port)) for source_port in ports]
        with forwarded(listening, replica):
            for connection in own:
                connection.sendall(MESSAGE)
                connection.shutdown(socket.SHUT_WR)
            for _ in own:
                assert replica.ended.acquire(timeout=PATIENCE_SECONDS)
    assert replica.connections == [MESSAGE] * 50


@needs_root
def test_other_users_reach_no_replica() -> None:
    replica = ReplicaInMemory()
    listening = socket.create_server(("127.0.0.1", 0))

    def attach() -> str:
        with socket.create_connection(listening.getsockname(), PATIENCE_SECONDS) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(MESSAGE)
                return connection.recv(100).decode()
            return ""

    with forwarded(listening, replica):
        assert [as_user(NOBODY, attach) for _ in range(20)] == [""] * 20
        assert replica.connections == []


@pytest.mark.parametrize(
    "sent",
    [
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        b"CONNECT x:1 HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01",
        b"\r\n" + MESSAGE,
    ],
)
def test_no_client_but_a_debugger_is_relayed(sent: bytes) -> None:
    replica = ReplicaInMemory()
    listening = socket.create_server(("127.0.0.1", 0))
    with forwarded(listening, replica):
        with socket.create_connection(listening.getsockname(), PATIENCE_SECONDS) as connection:
            connection.sendall(sent)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(100) == b""
        assert replica.connections == []
        with socket.create_connection(listening.getsockname(), PATIENCE_SECONDS) as connection:
            connection.sendall(MESSAGE.lower())
            connection.shutdown(socket.SHUT_WR)
            assert replica.ended.acquire(timeout=PATIENCE_SECONDS)
    assert replica.connections == [MESSAGE.lower()]


def test_a_replica_has_limited_debuggers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debugging, "_MAX_CLIENTS", 2)
    replica = ReplicaInMemory()
    listening = socket.create_server(("127.0.0.1", 0))
    with ExitStack() as stack:
        stack.enter_context(forwarded(listening, replica))

        def connect() -> socket.socket:
            return stack.enter_context(socket.create_connection(listening.getsockname(), PATIENCE_SECONDS))

        held = [connect() for _ in range(2)]
        for _ in range(20):
            assert connect().recv(100) == b""
        for connection in held:
            connection.sendall(MESSAGE)
            connection.shutdown(socket.SHUT_WR)
            assert replica.ended.acquire(timeout=PATIENCE_SECONDS)
            assert connection.recv(100) == b""


def test_a_port_outlives_a_lack_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user may use up what the process can open, for a while."""
    replica = ReplicaInMemory()
    failures = iter([errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOMEM])

    class Scarce(socket.socket):
        def accept(self) -> tuple[socket.socket, Any]:
            if failure := next(failures, None):
                raise OSError(failure, "scarce")
            return super().accept()

    monkeypatch.setattr(debugging, "_RETRY_SECONDS", 0.0)
    listening = Scarce()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    with (
        forwarded(listening, replica),
        socket.create_connection(listening.getsockname(), PATIENCE_SECONDS) as connection,
    ):
        connection.sendall(MESSAGE)
        connection.shutdown(socket.SHUT_WR)
        assert replica.ended.acquire(timeout=PATIENCE_SECONDS)
    assert replica.connections == [MESSAGE]


def test_pages_and_containers_reach_no_replica(shared: RunningEmulator) -> None:
    inject_debug(shared, "--wait")
    name = shared.create(custom_job(pool("pass"), name="debugged"))
    until(lambda: ports(shared, name), "the port")
    ((_, port),) = ports(shared, name)
    # What any page in the owner's browser can send without being asked: debugpy would take the body for a message.
    body = json.dumps({"seq": 1, "type": "request", "command": "initialize", "arguments": {"adapterID": "python"}})
    head = (
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as page:
        page.sendall(f"{head}{body}".encode())
        with contextlib.suppress(ConnectionResetError):
            assert page.recv(1000) == b""
    (container,) = labelled(name)
    form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    inspected = subprocess.run(["docker", "inspect", "-f", form, container], capture_output=True, text=True, check=True)
    script = f"""
import socket
gateway = socket.inet_ntoa(bytes.fromhex(open("/proc/net/route").read().split()[13])[::-1])
for host in (gateway, {inspected.stdout.strip()!r}, "127.0.0.1"):
    for port in ({port}, {CONTAINER_PORT}):
        try:
            with socket.create_connection((host, port), 3) as connection:
                connection.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
                said = connection.recv(100)
            # Another emulator may have a door at the gateway, by either number; debugpy speaks no HTTP.
            is_door = host == gateway and said.startswith(b"HTTP/1.1 ")
            print("refused" if is_door else f"connected to {{host}} {{port}}")
        except OSError:
            print("refused")
"""
    arguments = ["docker", "run", "--rm", IMAGE, "python3", "-c", script]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["refused"] * 6, "")
    shared.call("POST", f"v1/{name}:cancel")
    assert shared.ended(name)["state"] == "JOB_STATE_CANCELLED"
