"""uvicorn's connection, with the user at its other end."""

import asyncio
import socket
import sys

from h11 import LocalProtocolError
from uvicorn.protocols.http.h11_impl import H11Protocol

from vertex_emulator.http.peer_user import peer_user

KEEP_ALIVE_SECONDS = 600
"""Much longer than clients wait between two requests: one that is sent while its idle connection is closed fails."""
PEER_USER_ID = "peer_user_id"
"""The key of a connection's user id in `scope["state"]`."""
ABORT_CONNECTION = "abort_connection"
"""The key in `scope["state"]` of a function that cuts a request's connection at once."""


_TCP_CLOSE = 7  # linux/tcp_states.h
_DROPPED_AT_ONCE = 100


class Listener(socket.socket):
    """A listening socket that drops connections which their clients have reset while they waited to be accepted.

    Nobody waits for their answers, so a flood of them does not keep others waiting. (macOS does not deliver them.)
    """

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """Accept the next connection that is open. Raises BlockingIOError if none waits, as any non-blocking socket."""
        for _ in range(_DROPPED_AT_ONCE):
            connection, address = super().accept()
            if (
                sys.platform != "linux"
                or connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _TCP_CLOSE
            ):
                return connection, address
            connection.close()
        raise BlockingIOError("other events have their turn first")


class IdentifiedConnection(H11Protocol):
    """An HTTP connection whose requests have the user id of the peer, or `None`, in `scope["state"][PEER_USER_ID]`.

    `scope["state"][ABORT_CONNECTION]` cuts the connection.

    The connection keeps the id. A cache by address and port would give it to the next process with the same port.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look up the peer's user, once for all requests."""
        super().connection_made(transport)
        user_id = peer_user(transport.get_extra_info("socket"))
        self.app_state = {**self.app_state, PEER_USER_ID: user_id, ABORT_CONNECTION: transport.abort}

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request, after which an application that works on its head sends nothing more."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
        try:
            super().send_400_response(msg)
        except LocalProtocolError:  # the application has begun its answer
            self.transport.close()
