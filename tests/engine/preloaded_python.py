"""Python processes of `pulumi`, forked from one that has imported what they import.

A command starts two, a program and a provider, and their imports are half of its processor time. A forked one differs
from a started one in these modules and in what Python reads from variables when it starts, which is the server's: its
client's `PYTHONPATH`, `PYTHONWARNINGS` and `PYTHONHASHSEED` reach only what it starts. Processes of other checkouts, of
installed packages and of tests that kill or interrupt them are started as always.

`startup/sitecustomize.py`, which runs first in each process that `pulumi` starts, asks for the fork, passes its own
streams and signals on, and ends with its exit code. If it is killed, so is the fork.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

_CHECKOUT = Path(__file__).parents[2]
_SOCKET = "PRELOADED_PYTHON"
_ALSO_IMPORTED = ("docker", "google.cloud.aiplatform_v1.types", "pulumi.dynamic")


@cache
def get_variables() -> dict[str, str]:
    """Return the variables with which `pulumi` uses forks of a process that is started now and ends with this one.

    Without variables where the system cannot wait for a process and a socket at once: all processes are started there.
    """
    if not hasattr(os, "pidfd_open"):
        return {}
    folder = Path(tempfile.mkdtemp(prefix="vertex-training-python-"))
    atexit.register(shutil.rmtree, folder)
    python = _CHECKOUT / ".venv" / "bin" / "python"
    process = subprocess.Popen(
        [python, "-u", "-m", __name__, folder / "socket"], cwd=_CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    atexit.register(process.kill)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return {_SOCKET: str(folder / "socket"), "PRELOADED_CHECKOUT": str(_CHECKOUT)}


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
    """Fork a process for each client of the socket at a path, until the standard input ends; return in each of them."""
    _import_modules()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, selectors.DefaultSelector() as selector:
        listener.bind(path)
        listener.listen(64)
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ, lambda: os._exit(0))
        sys.stdout.write("ready\n")
        while True:
            for key, _ in selector.select():
                if key.fileobj is not listener:
                    key.data()
                    continue
                client, _ = listener.accept()
                message, streams, _, _ = socket.recv_fds(client, 1 << 20, 3)
                pid = os.fork()
                if pid == 0:
                    client.close()
                    _close_registered_files(selector)
                    _take_over(json.loads(message), streams)
                    return
                _Fork(pid, client, selector)
                for stream in streams:
                    os.close(stream)


def _import_modules() -> None:
    """Import what a program or a provider may import."""
    import vertex_training

    modules = [module.name for module in pkgutil.walk_packages(vertex_training.__path__, "vertex_training.")]
    for name in (*modules, *_ALSO_IMPORTED):
        importlib.import_module(name)
    gc.disable()
    gc.freeze()


def _close_registered_files(selector: selectors.BaseSelector) -> None:
    """Close in a fork what its parent waits for: the listener, and the clients and processes of other forks."""
    for key in selector.get_map().values():
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
        elif isinstance(key.fileobj, int):
            os.close(key.fileobj)


def _take_over(client: dict[str, Any], streams: list[int]) -> None:
    """Make this process what its client would be: streams, folder, variables and arguments."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(client["cwd"])
    os.environ.clear()
    os.environ.update(client["environ"])
    sys.orig_argv = client["orig_argv"]


def _run_program() -> None:
    """Run the script or the module that the arguments name, as Python does."""
    program = sys.orig_argv[1:]
    while program[0] == "-u":
        program.pop(0)
    if program[0] == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(program[0]).parent)
        sys.argv = program
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
    _run_program()
