"""The program that connects its own input and output to a port of the container in which it runs.

Arguments: the port, and the name of an abstract socket that is bound once the port may be connected to
(`man 7 unix`). It waits for both.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time

_CHUNK = 1 << 16
_LISTEN_SECONDS = 120.0


def main(port: int, ready_socket: str) -> None:
    """Relay until the other end closes the connection."""
    connection = _connect(port, ready_socket)
    threading.Thread(target=_send_stdin, args=(connection,), daemon=True).start()
    while True:
        data = connection.recv(_CHUNK)
        if not data:
            os._exit(0)  # the other thread may wait for input for ever
        while data:
            data = data[os.write(1, data) :]


def _connect(port: int, ready_socket: str) -> socket.socket:
    deadline = time.monotonic() + _LISTEN_SECONDS
    while True:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
                probe.connect("\0" + ready_socket)
            return socket.create_connection(("127.0.0.1", port))
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"nothing listens on port {port}: {error}")
            time.sleep(0.05)


def _send_stdin(connection: socket.socket) -> None:
    while True:
        data = os.read(0, _CHUNK)
        if not data:
            connection.shutdown(socket.SHUT_WR)
            return
        connection.sendall(data)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
