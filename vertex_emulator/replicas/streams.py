"""A program that Docker runs beside a container's own, with its streams; one relays them to a port there."""

import contextlib
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vertex_emulator import programs
from vertex_emulator.errors import ReplicaNotRunning
from vertex_emulator.replicas import daemon

STDOUT, STDERR = 1, 2
"""The streams that a program in a container writes."""
_HEADER = struct.Struct(">BxxxL")  # of Docker's multiplexed streams: which stream, length
_CHUNK = 1 << 16
_EXIT_SECONDS = 10.0
# No key ends the connection: Docker's own ctrl-p ctrl-q would hold back each ctrl-p, which recalls a shell's last line.
_DETACH_KEYS = "ctrl-@,ctrl-^,ctrl-@"


class ExecStream:
    """A running program in a container; `is_terminal` gives it a terminal, which has one output stream.

    Raises ReplicaNotRunning if the container does not run, and ExecutorUnavailable.
    """

    def __init__(
        self,
        client: Any,
        container: str,
        command: Sequence[str],
        is_terminal: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        from docker.errors import APIError

        self._client, self._is_terminal = client, is_terminal
        try:
            with daemon.translate_errors():
                self._id = client.exec_create(
                    container,
                    list(command),
                    stdin=True,
                    tty=is_terminal,
                    environment=dict(environment or {}),
                    detach_keys=_DETACH_KEYS,
                )["Id"]
                response_socket = client.exec_start(self._id, tty=is_terminal, socket=True)
        except APIError as error:
            raise ReplicaNotRunning(daemon.error_text(error)) from error
        self._connection = getattr(response_socket, "_sock", response_socket)
        self._connection.settimeout(None)
        # The socket may lack what came together with the reply's headers: that is in their reader's buffer.
        self._response = response_socket._response
        self._reader = self._response.raw._fp.fp

    def write(self, data: bytes) -> None:
        """Write to the program's input. Raises OSError once it has ended."""
        self._connection.sendall(data)

    def close_input(self) -> None:
        """Let the program find the end of its input."""
        self._connection.shutdown(socket.SHUT_WR)

    def output(self) -> Iterator[tuple[int, bytes]]:
        """Yield what the program writes, each time with its stream, until it ends; a terminal has STDOUT only."""
        if self._is_terminal:
            while data := self._reader.read1(_CHUNK):
                yield STDOUT, data
            return
        while len(header := self._reader.read(_HEADER.size)) == _HEADER.size:
            stream, remaining = _HEADER.unpack(header)
            while remaining and (data := self._reader.read1(min(remaining, _CHUNK))):
                remaining -= len(data)
                yield stream, data

    def resize(self, rows: int, columns: int) -> None:
        """Tell the program's terminal its size; do nothing if the program has ended."""
        from docker.errors import APIError

        try:
            self._client.exec_resize(self._id, height=rows, width=columns)
        except APIError:
            return

    def wait(self) -> int:
        """Return the exit code, after the end of the output. Raises ReplicaNotRunning if the container is gone."""
        from docker.errors import APIError

        deadline = time.monotonic() + _EXIT_SECONDS
        try:
            with daemon.translate_errors():
                while (state := self._client.exec_inspect(self._id))["Running"] and time.monotonic() < deadline:
                    time.sleep(0.01)
        except APIError as error:
            raise ReplicaNotRunning(daemon.error_text(error)) from error
        return int(state["ExitCode"] or 0)

    def close(self) -> None:
        """Close the connection, which ends the program's input and output, also for a thread that reads it."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._response.close()


def open_port(client: Any, container: str, port: int, ready_socket: str) -> ExecStream:
    """Return a stream to a port of a container, by a program of Python in it; see ExecStream for what is raised.

    The program connects once the abstract socket of that name is bound in the container.
    """
    return ExecStream(client, container, [*programs.command("relay", "-I"), str(port), ready_socket])
