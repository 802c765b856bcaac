"""A line between Docker and a registry that breaks under what is too much for it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

_TEXT = b"the line was lost"
_LOST = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_TEXT), _TEXT)


class CuttingProxy:
    """Forwards connections to a port of this machine, and cuts each one after `limit` bytes towards it.

    `sent` counts the bytes that got through. Without a limit all of them do. After `cuts` such connections the next one
    is not cut but answered, as what stands before a registry does that is lost: with an error that is none of its own.
    """

    def __init__(self, port: int, limit: int | None, cuts: int) -> None:
        self.limit = limit
        self.cuts = cuts
        self.sent = 0
        self._upstream = ("127.0.0.1", port)
        self._counting = threading.Lock()

    @contextmanager
    def serving(self) -> Iterator[int]:
        """The port to connect to, while the line is up."""
        with closing(socket.create_server(("127.0.0.1", 0))) as listening:
            threading.Thread(target=self._accept, args=[listening], daemon=True).start()
            yield listening.getsockname()[1]
            listening.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.create_connection(self._upstream)
                threading.Thread(target=self._forth, args=[client, server], daemon=True).start()
                threading.Thread(target=_pass_on, args=[server, client], daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        carried = 0
        with suppress(OSError), client, server:
            while data := client.recv(65536):
                carried += len(data)
                if self.limit is not None and carried > self.limit:
                    self._give_up(client)
                    return
                server.sendall(data)
                with self._counting:
                    self.sent += len(data)

    def _give_up(self, client: socket.socket) -> None:
        with self._counting:
            self.cuts -= 1
            cut = self.cuts >= 0
        if not cut:
            client.sendall(_LOST)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):  # or the answer would be lost with what is not read
                pass


def _pass_on(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while data := server.recv(65536):
            client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)
