"""Python processes of `pulumi`, and commands of ours, forked from one that has imported what they import.

A command starts two, a program and a provider, and what they import and make ready is most of its processor time. A
forked one differs from a started one in these modules and in what Python reads from variables when it starts, which is
the server's: its client's `PYTHONPATH`, `PYTHONWARNINGS` and `PYTHONHASHSEED` reach only what it starts. Processes of
other checkouts, of installed packages and of tests that kill or interrupt them are started as always.

`startup/sitecustomize.py`, which runs first in each process that `pulumi` starts, asks for the fork, passes its own
streams and signals on, and ends with its exit code. If it is killed, so is the fork.
"""

import ast
import atexit
import fcntl
import gc
import importlib
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NoReturn, cast

_CHECKOUT = Path(__file__).parents[2]
_SOCKET = "PRELOADED_PYTHON"
_HOLD = b"hold"
"""What a process of the tests sends, and gets back; the others send what is to be run."""
_PACKAGES = ("vertex_api", "vertex_training")
_ALSO_IMPORTED = (
    "_strptime",
    "docker",
    "google.cloud.aiplatform_v1.types",
    "grpc._channel",
    "grpc._server",
    "pulumi.dynamic",
)
_OF_NETWORKS = ("compute", "servicenetworking")
"""Packages of `pulumi_gcp` that few projects need: the first takes twice as long as all others."""


@cache
def get_variables() -> dict[str, str]:
    """Return the variables with which `pulumi` uses forks of a process, which the processes of a test run share.

    It is started when none of them has one, and ends with the last that has. Without variables where the system cannot
    wait for a process and a socket at once: all processes are started there.
    """
    if not hasattr(os, "pidfd_open"):
        return {}
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    path = Path(tempfile.gettempdir()) / f"vertex-training-python-{run}"
    lock = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = _hold(path) or _start_server(path)
    finally:
        os.close(lock)
    atexit.register(held.close)
    return {_SOCKET: str(path), "PRELOADED_CHECKOUT": str(_CHECKOUT)}


def _hold(path: Path) -> socket.socket | None:
    """Return the connection for which the server at a path serves, until it is closed; None if none serves there."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with suppress(OSError):
        server.connect(str(path))
        server.send(_HOLD)
        if server.recv(16) == _HOLD:
            return server
    server.close()
    return None


def _start_server(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    python = _CHECKOUT / ".venv" / "bin" / "python"
    process = subprocess.Popen(
        [python, "-u", "-m", __name__, path], cwd=_CHECKOUT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    atexit.register(process.poll)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.stdout.close()
    held = _hold(path)
    assert held is not None
    return held


def remove_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with which `pulumi` starts its processes itself."""
    return {name: value for name, value in environment.items() if name != _SOCKET}


class _Fork:
    """A forked process, as its parent sees it: the client waits for its exit code."""

    def __init__(self, pid: int, client: socket.socket, selector: selectors.BaseSelector) -> None:
        self._pid, self._client, self._selector = pid, client, selector
        self._process = os.pidfd_open(pid)
        selector.register(client, selectors.EVENT_READ, self._pass_signal_on)
        selector.register(self._process, selectors.EVENT_READ, self._answer)

    def _pass_signal_on(self) -> None:
        """Send the process the signal that its client got; kill it if the client is gone."""
        if self._client.fileno() < 0:  # `_answer` has closed it, of two events at once
            return
        number = self._client.recv(16)
        if not number:
            self._selector.unregister(self._client)
        signal.pidfd_send_signal(self._process, int(number) if number else signal.SIGKILL)

    def _answer(self) -> None:
        """Tell the client how the process ended."""
        _, status = os.waitpid(self._pid, 0)
        self._selector.unregister(self._process)
        os.close(self._process)
        with suppress(KeyError, OSError):  # its client is gone
            self._selector.unregister(self._client)
            self._client.send(str(os.waitstatus_to_exitcode(status)).encode())
        self._client.close()


def serve(path: str) -> None:
    """Fork a process for each client of the socket at a path; return in each of them. End with the last that holds."""
    _import_modules()
    holders: set[socket.socket] = set()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, selectors.DefaultSelector() as selector:
        listener.bind(path)
        listener.listen(64)
        selector.register(listener, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        while True:
            for key, _ in selector.select():
                if key.fileobj in holders:
                    selector.unregister(key.fileobj)
                    holders.discard(cast(socket.socket, key.fileobj))
                    if not holders:
                        Path(path).unlink()
                        os._exit(0)
                    continue
                if key.fileobj is not listener:
                    key.data()
                    continue
                client, _ = listener.accept()
                message, streams, _, _ = socket.recv_fds(client, 1 << 20, 3)
                if message == _HOLD:
                    client.send(_HOLD)
                    holders.add(client)
                    selector.register(client, selectors.EVENT_READ)
                    continue
                pid = os.fork()
                if pid == 0:
                    client.close()
                    _close_registered_files(selector)
                    _take_over(message, streams)
                    return
                _Fork(pid, client, selector)
                for stream in streams:
                    os.close(stream)


def _import_modules() -> None:
    """Import what a program or a provider may import, and make the validators, which each would make for itself."""
    packages = [(package, importlib.import_module(package)) for package in _PACKAGES]
    modules = [each.name for name, made in packages for each in pkgutil.walk_packages(made.__path__, f"{name}.")]
    from vertex_training.runtime.engine import GCP_PACKAGES

    for name in (*modules, *_ALSO_IMPORTED):
        importlib.import_module(name)
    for name in sorted({*GCP_PACKAGES} - {*_OF_NETWORKS}):
        package = importlib.import_module(f"pulumi_gcp.{name}")
        _ = package._utilities  # until it is asked for something, it is not loaded

    from typing_extensions import is_typeddict
    from vertex_training.schema import shapes

    from vertex_api import types
    from vertex_api.messages import type_adapter

    jobs = (types.CustomJob, types.HyperparameterTuningJob, types.TrainingPipeline)
    for shape in (*vars(shapes).values(), *jobs):
        if is_typeddict(shape):
            type_adapter(shape)
    gc.disable()
    gc.freeze()


def _close_registered_files(selector: selectors.BaseSelector) -> None:
    """Close in a fork what its parent waits for: the listener, and the clients and processes of other forks."""
    for key in selector.get_map().values():
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
        elif isinstance(key.fileobj, int):
            os.close(key.fileobj)


def _take_over(client: bytes, streams: list[int]) -> None:
    """Make this process what its client would be: streams, arguments, variables, folder, and parent.

    A command line of `pulumi` is found through the parent. Without it, debug messages are sent that nobody reads, and a
    provider asks for the state of two stacks that there are not.
    """
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.orig_argv, environment, folder, parent = ast.literal_eval(client.decode())
    os.getppid = lambda: parent
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)


def _run_program() -> None:
    """Run the script or the module that the arguments name, as Python does."""
    program = sys.orig_argv[1:]
    while program[0] == "-u":
        program.pop(0)
    if program[0] == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv = program[1:]
        if not hasattr(sys.modules[program[1]], "__path__"):
            del sys.modules[program[1]]  # as if it were not imported yet: otherwise Python warns
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(program[0]).parent)
        sys.argv = program
        runpy.run_path(program[0], run_name="__main__")


def _exit(code: object) -> NoReturn:
    """Exit as Python does, but leave the heap to the system: to tear it down would copy it first."""
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0) & 0xFF)


if __name__ == "__main__":
    serve(sys.argv[1])
    try:
        _run_program()
    except SystemExit as ended:
        _exit(ended.code)
    _exit(0)
