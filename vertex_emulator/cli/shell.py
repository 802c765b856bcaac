"""The command `shell`: a shell in a running replica, at this terminal or with what a pipe sends it."""

import contextlib
import os
import secrets
import select
import signal
import socket
import sys
import termios
import threading
import tty
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vertex_api.names import TERMINAL_STATES
from vertex_emulator.cli.emulator import job_path, send
from vertex_emulator.data_folder import require_endpoint
from vertex_emulator.errors import EmulatorError, ReplicaNotRunning
from vertex_emulator.replicas import daemon
from vertex_emulator.replicas.streams import STDERR, STDOUT, ExecStream

_FIRST_TASK = "workerpool0-0"
_FIND_SHELL = ("/bin/sh", "-c", "command -v bash || command -v sh")
_SESSION = "VERTEX_EMULATOR_SHELL"  # in the environment of a shell and all that it starts
# Docker ends nothing when a connection is closed, and the daemon's numbers of processes are not the container's.
_HANG_UP = """\
for folder in /proc/[0-9]*; do
  grep -q "$0" "$folder/environ" 2>/dev/null && kill -HUP "${folder#/proc/}"
done
"""
_STDIN_NUMBER, _STDOUT_NUMBER, _STDERR_NUMBER = 0, 1, 2
_CHUNK = 1 << 16
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def run(root: Path, job: str, task: str | None = None, trial: int | None = None) -> int:
    """Run a shell in a replica of a job, given by id or name; return the shell's exit code.

    A signal that ends this process, or a reader of its output that goes, hangs up the shell and what it has started, as
    the end of a terminal does.

    Raises EmulatorNotRunning, DockerMissing, ReplicaNotRunning, ExecutorUnavailable, EmulatorError for an unknown job,
    and BrokenPipeError if the reader has gone.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)  # gets the number 0, which a connection would get otherwise
    endpoint = require_endpoint(root)
    daemon.require()
    container = choose_container(send(endpoint, job_path(job, "/replicas")), task, trial)
    with contextlib.closing(daemon.connect(timeout=60)) as client:
        shell = _find_shell(client, container)
        is_terminal = os.isatty(0) and os.isatty(1)
        session = {_SESSION: secrets.token_hex(8)}
        environment = session | ({"TERM": os.environ["TERM"]} if is_terminal and "TERM" in os.environ else {})
        try:
            return _Session(ExecStream(client, container, [shell], is_terminal, environment), is_terminal).run()
        except (KeyboardInterrupt, SystemExit, BrokenPipeError):
            with contextlib.suppress(EmulatorError, OSError):
                _output(client, container, ["/bin/sh", "-c", _HANG_UP, f"{_SESSION}={session[_SESSION]}"])
            raise


def choose_container(reply: Mapping[str, Any], task: str | None, trial: int | None) -> str:
    """Return the name of the running container that is meant, of a reply about a job's replicas.

    Raises ReplicaNotRunning, and says which tasks or trials there are.
    """
    name, replicas = reply["name"], reply["replicas"]
    if reply["state"] in TERMINAL_STATES:
        raise ReplicaNotRunning(f"{name} has ended in {reply['state']}, and its containers are gone")
    trials = sorted({replica["trial"] for replica in replicas} - {None})
    if trial is not None and trial not in trials:
        raise ReplicaNotRunning(f"{name} has no running trial {trial}{_choices('running trials', trials)}")
    if trial is None and len(trials) > 1:
        raise ReplicaNotRunning(f"{name} has several running trials: choose one with --trial, of {_commas(trials)}")
    chosen = [replica for replica in replicas if trial in (None, replica["trial"])]
    tasks = [replica["task"] for replica in chosen]
    if not chosen:
        raise ReplicaNotRunning(f"{name} is in {reply['state']} and has no running replica yet")
    task = task or _FIRST_TASK
    if task not in tasks:
        raise ReplicaNotRunning(f"{name} has no task {task}{_choices('tasks', tasks)}")
    container = chosen[tasks.index(task)]["container"]
    if container is None:
        running = [replica["task"] for replica in chosen if replica["container"]]
        raise ReplicaNotRunning(f"{task} of {name} does not run{_choices('running tasks', running)}")
    return str(container)


def _find_shell(client: Any, container: str) -> str:
    """Return the path of bash, else of sh, in a container. Raises ReplicaNotRunning if it has neither."""
    exit_code, output = _output(client, container, _FIND_SHELL)
    if exit_code != 0:
        raise ReplicaNotRunning(f"the image of {container} has no shell: neither bash nor sh")
    return output.decode(errors="replace").strip()


def _output(client: Any, container: str, command: Sequence[str]) -> tuple[int, bytes]:
    """Run a command in a container without input; return its exit code and what it writes to stdout."""
    stream = ExecStream(client, container, command)
    try:
        stream.close_input()
        output = b"".join(data for kind, data in stream.output() if kind == STDOUT)
        return stream.wait(), output
    finally:
        stream.close()


def _choices(label: str, choices: Sequence[Any]) -> str:
    return f"; {label}: {_commas(choices)}" if choices else ""


def _commas(choices: Sequence[Any]) -> str:
    return ", ".join(map(str, choices))


class _Session:
    """A program in a container at this process's own streams: what goes in, what comes out, the terminal's state.

    With `is_terminal`, this process's terminal is the program's: it is raw meanwhile, and its size is passed on.
    """

    def __init__(self, stream: ExecStream, is_terminal: bool) -> None:
        self._stream = stream
        self._is_terminal = is_terminal
        # What the main thread wakes up for, beside stdin: the end of the output, and signals.
        self._receiver, self._sender = socket.socketpair()
        self._error: BrokenPipeError | None = None

    def run(self) -> int:
        """Copy stdin to the program and its output to stdout and stderr until it ends; return its exit code.

        Raises BrokenPipeError if nobody reads the output any more, and ReplicaNotRunning if the container is gone.
        """
        with contextlib.closing(self._receiver), contextlib.closing(self._sender), contextlib.closing(self._stream):
            self._receiver.setblocking(False)
            self._sender.setblocking(False)
            output = threading.Thread(target=self._copy_output, daemon=True, name="output")
            with _raw_terminal() if self._is_terminal else contextlib.nullcontext():
                if self._is_terminal:
                    self._send_size()
                with self._waking_signals():
                    output.start()
                    self._copy_input()
            output.join()
            if self._error:
                raise self._error
            return self._stream.wait()

    def _copy_output(self) -> None:
        # A connection that is cut ends the copy as the program's end does.
        with contextlib.suppress(OSError):
            try:
                for kind, data in self._stream.output():
                    rest = data
                    while rest:
                        rest = rest[os.write(_STDERR_NUMBER if kind == STDERR else _STDOUT_NUMBER, rest) :]
            except BrokenPipeError as error:  # the reader has gone, as `head` does
                self._error = error
        with contextlib.suppress(OSError):
            self._sender.send(b"\0")

    def _copy_input(self) -> None:
        """Copy stdin until the output ends."""
        readers: list[int] = [_STDIN_NUMBER, self._receiver.fileno()]
        while True:
            ready = select.select(readers, [], [])[0]
            if self._receiver.fileno() in ready:
                received = self._receiver.recv(_CHUNK)
                if any(number in received for number in _ENDING_SIGNALS):
                    sys.exit(128 + next(number for number in _ENDING_SIGNALS if number in received))
                if self._is_terminal and signal.SIGWINCH in received:
                    self._send_size()
                if 0 in received:
                    return
            if _STDIN_NUMBER in ready:
                try:
                    data = os.read(_STDIN_NUMBER, _CHUNK)
                    self._stream.write(data)
                    if not data:
                        self._stream.close_input()
                except OSError:  # the program has ended, or there is no stdin
                    data = b""
                if not data:
                    readers.remove(_STDIN_NUMBER)

    @contextlib.contextmanager
    def _waking_signals(self) -> Iterator[None]:
        """Let signals that end this process, or tell a new size of the terminal, wake the main thread's `select`."""
        # One that is ignored, as by nohup, stays ignored.
        numbers = [
            number for number in (*_ENDING_SIGNALS, signal.SIGWINCH) if signal.getsignal(number) is not signal.SIG_IGN
        ]
        before = {number: signal.signal(number, lambda *_: None) for number in numbers}
        earlier_descriptor = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(earlier_descriptor)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _send_size(self) -> None:
        size = os.get_terminal_size(_STDIN_NUMBER)
        self._stream.resize(size.lines, size.columns)


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    before = termios.tcgetattr(_STDIN_NUMBER)
    try:
        tty.setraw(_STDIN_NUMBER)
        yield
    finally:
        with contextlib.suppress(termios.error):  # a window that was closed
            termios.tcsetattr(_STDIN_NUMBER, termios.TCSANOW, before)
