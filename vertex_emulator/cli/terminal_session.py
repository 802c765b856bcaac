"""A program in a container at this process's own streams: what goes in, what comes out, and the terminal's state."""

import contextlib
import os
import select
import signal
import socket
import sys
import termios
import threading
import tty
from collections.abc import Iterator

from vertex_emulator.replicas.docker.exec_stream import ExecStream
from vertex_emulator.replicas.executor_protocol import STDERR

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK = 1 << 16
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def run_terminal_session(stream: ExecStream, is_terminal: bool) -> int:
    """Copy stdin to a program and its output to stdout and stderr until it ends; return its exit code.

    With `is_terminal`, this process's terminal is the program's: it is raw meanwhile, and its size is passed on.
    Raises BrokenPipeError if nobody reads the output any more, and ReplicaNotRunning if the container is gone.
    """
    # What the main thread wakes up for, beside stdin: the end of the output, and signals.
    wake_receiver, wake_sender = socket.socketpair()
    with contextlib.closing(wake_receiver), contextlib.closing(wake_sender), contextlib.closing(stream):
        wake_receiver.setblocking(False)
        wake_sender.setblocking(False)
        errors: list[BrokenPipeError] = []
        arguments = (stream, wake_sender, errors)
        output = threading.Thread(target=_copy_output_and_wake, args=arguments, daemon=True, name="output")
        with _keep_terminal_raw() if is_terminal else contextlib.nullcontext():
            if is_terminal:
                _send_terminal_size(stream)
            with _wake_on_signals(wake_sender):
                output.start()
                _copy_input_until_output_ends(stream, wake_receiver, is_terminal)
        output.join()
        if errors:
            raise errors[0]
        return stream.wait_for_exit_code()


def _copy_output_and_wake(stream: ExecStream, wake_sender: socket.socket, errors: list[BrokenPipeError]) -> None:
    # A connection that is cut ends the copy as the program's end does.
    with contextlib.suppress(OSError):
        try:
            for kind, data in stream.iterate_output_with_stream_numbers():
                _write_all(_STDERR if kind == STDERR else _STDOUT, data)
        except BrokenPipeError as error:  # the reader has gone, as `head` does
            errors.append(error)
    with contextlib.suppress(OSError):
        wake_sender.send(b"\0")


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _copy_input_until_output_ends(stream: ExecStream, wake_receiver: socket.socket, is_terminal: bool) -> None:
    readers: list[int] = [_STDIN, wake_receiver.fileno()]
    while True:
        ready = select.select(readers, [], [])[0]
        if wake_receiver.fileno() in ready:
            received = wake_receiver.recv(_CHUNK)
            if any(number in received for number in _ENDING_SIGNALS):
                sys.exit(128 + next(number for number in _ENDING_SIGNALS if number in received))
            if is_terminal and signal.SIGWINCH in received:
                _send_terminal_size(stream)
            if 0 in received:
                return
        if _STDIN in ready:
            try:
                data = os.read(_STDIN, _CHUNK)
                stream.write(data)
                if not data:
                    stream.close_input()
            except OSError:  # the program has ended, or there is no stdin
                data = b""
            if not data:
                readers.remove(_STDIN)


@contextlib.contextmanager
def _keep_terminal_raw() -> Iterator[None]:
    before = termios.tcgetattr(_STDIN)
    try:
        tty.setraw(_STDIN)
        yield
    finally:
        with contextlib.suppress(termios.error):  # a window that was closed
            termios.tcsetattr(_STDIN, termios.TCSANOW, before)


@contextlib.contextmanager
def _wake_on_signals(wake_sender: socket.socket) -> Iterator[None]:
    """Let signals that end this process, or tell a new size of the terminal, wake the main thread's `select`."""
    # One that is ignored, as by nohup, stays ignored.
    numbers = [
        number for number in (*_ENDING_SIGNALS, signal.SIGWINCH) if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    earlier_descriptor = signal.set_wakeup_fd(wake_sender.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(earlier_descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)


def _send_terminal_size(stream: ExecStream) -> None:
    size = os.get_terminal_size(_STDIN)
    stream.resize(size.lines, size.columns)
