"""`vertex-emulator inject debug`: a debugger attaches to replicas, each on a port of this machine."""

import contextlib
import re
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.vertex_emulator import packages
from tests.vertex_emulator.debugger_client import DebuggerClient
from tests.vertex_emulator.other_user import NOBODY, as_user, needs_root
from tests.vertex_emulator.running import PATIENCE_SECONDS, RunningEmulator, command, custom_job, pool, until
from tests.vertex_emulator.test_python_packages import BUCKET
from tests.vertex_emulator.test_python_packages import pool as package_pool

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


def test_a_breakpoint_is_hit_in_one_of_two_replicas(shared: RunningEmulator) -> None:
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

    mapping = {"pathMappings": [{"localRoot": str(code), "remoteRoot": "/gcs/code"}]}
    breakpoints = {f"{code}/train.py": [4], f"{code}/child.py": [2]}
    with DebuggerClient("127.0.0.1", second) as debugger, DebuggerClient("127.0.0.1", first) as bystander:
        debugger.attach(at(second) | mapping, breakpoints)
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


def test_workers_of_a_launcher_run_and_are_attached_later(shared: RunningEmulator) -> None:
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
def test_a_package_is_debugged_after_a_crash_by_its_owner_alone(offline: RunningEmulator) -> None:
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
