"""A relay of bytes between a client's connection and a program in a container."""

import contextlib
import logging
import socket
import threading

from vertex_emulator.replicas.executor_protocol import STDERR, ByteStream

_CHUNK = 1 << 16
_log = logging.getLogger("vertex_emulator.debugging")


def relay_connection(client: socket.socket, stream: ByteStream) -> None:
    """Copy bytes in both directions until either end closes its connection; then both are closed."""
    sender = threading.Thread(
        target=_copy_to_stream_and_close_its_input, args=(client, stream), daemon=True, name="relay to container"
    )
    sender.start()
    try:
        with contextlib.suppress(OSError):
            for kind, data in stream.iterate_output_with_stream_numbers():
                if kind == STDERR:
                    _log.warning("%s", data.decode(errors="replace").strip())
                else:
                    client.sendall(data)
    finally:
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        sender.join()
        stream.close()


def _copy_to_stream_and_close_its_input(client: socket.socket, stream: ByteStream) -> None:
    with contextlib.suppress(OSError):
        while data := client.recv(_CHUNK):
            stream.write(data)
        stream.close_input()
