"""uvicorn's connections with the user at their other end, as Linux tells it (`man 7 sock_diag`)."""

import asyncio
import os
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from h11 import LocalProtocolError
from uvicorn.protocols.http.h11_impl import H11Protocol

SERVER_OPTIONS: Mapping[str, Any] = {
    "ws": "none",
    "lifespan": "off",
    "log_config": None,
    "access_log": False,
    "server_header": False,
    # Much longer than clients wait between two requests: one that is sent while its idle connection is closed fails.
    "timeout_keep_alive": 600,
}
"""Of uvicorn's Config, for every server of an emulator."""
PEER_USER = "peer_user"
"""The key of a connection's user id in `scope["state"]`."""
ABORT = "abort"
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
    """An HTTP connection whose requests have the user id of the peer, or None, in `scope["state"][PEER_USER]`.

    `scope["state"][ABORT]` cuts the connection.

    The connection keeps the id. A cache by address and port would give it to the next process with the same port.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look up the peer's user, once for all requests."""
        super().connection_made(transport)
        user_id = peer_user(transport.get_extra_info("socket"))
        self.app_state = {**self.app_state, PEER_USER: user_id, ABORT: transport.abort}

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request, after which an application that works on its head sends nothing more."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
        try:
            super().send_400_response(msg)
        except LocalProtocolError:  # the application has begun its answer
            self.transport.close()


Address = tuple[str, int]


class Accepted(Protocol):
    """A connection that a listener has accepted: a socket, or asyncio's view of one."""

    def fileno(self) -> int: ...
    def getpeername(self) -> Address: ...
    def getsockname(self) -> Address: ...


def can_identify_users() -> bool:
    """Return whether the kernel tells the user of a connection on this machine."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
        server.accept()[0] as accepted,
    ):
        return peer_user(accepted) is not None


_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST_FLAG = 4, 20, 1  # linux/netlink.h, linux/sock_diag.h
_CONNECTED = {1, 4, 5, 8}  # TCP_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2, _CLOSE_WAIT: linux/tcp_states.h
_SOCKET_ID = "!HH16s16s"  # inet_diag_sockid: ports and addresses; interface and cookie follow
_ANY_INTERFACE, _ANY_COOKIE, _ANY_STATE = b"\0" * 4, b"\xff" * 8, 0xFFFFFFFF
# nlmsghdr, then inet_diag_msg: family, state, timer, retransmissions, ports, the rest of the id, expiry, queues.
_REPLY = struct.Struct("=IHHII BBBB 4s 44x III II")
_REPLY_SECONDS = 1.0


def peer_user(connection: Accepted) -> int | None:
    """Return the id of the user that holds the other end of an accepted TCP connection.

    None if the kernel does not tell: the peer is on another machine or has closed its socket, or this is not Linux.

    The kernel is asked by addresses and ports. These belong to the next user of the peer's port as soon as the
    connection is reset, while what was sent can still be read. So the answer counts only if the kernel still has this
    very connection afterwards: until it drops that, no other is established between the same addresses and ports.
    """
    try:
        peer, own = connection.getpeername()[:2], connection.getsockname()[:2]
        # /proc/net/tcp tells the same, but reading it takes 8 ms and more, and an IPv4 connection may be in tcp6.
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.settimeout(_REPLY_SECONDS)
            there = _look_up(kernel, peer, own)
            here = _look_up(kernel, own, peer)
        if there is None or here is None or here.inode != os.fstat(connection.fileno()).st_ino:
            return None
    except (OSError, AttributeError):
        return None
    return there.user_id


class _Socket(NamedTuple):
    user_id: int
    inode: int


def _look_up(kernel: socket.socket, near: Address, far: Address) -> _Socket | None:
    """Return the socket at the near end of an established connection; None if there is none, or nobody holds it."""
    family = socket.AF_INET6 if ":" in near[0] else socket.AF_INET
    addresses = (socket.inet_pton(family, host).ljust(16, b"\0") for host in (near[0], far[0]))
    socket_id = struct.pack(_SOCKET_ID, near[1], far[1], *addresses) + _ANY_INTERFACE + _ANY_COOKIE
    query = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + socket_id
    kernel.send(struct.pack("=IHHII", 16 + len(query), _SOCK_DIAG_BY_FAMILY, _REQUEST_FLAG, 1, 0) + query)
    reply = kernel.recv(4096)
    if len(reply) < _REPLY.size:
        return None  # an error, mostly that there is no such socket
    _, _, _, _, _, _, state, _, _, ports, _, _, _, user_id, inode = _REPLY.unpack_from(reply)
    # Without a connection, the kernel describes a listener on the port, or a socket that is only about to connect. One
    # without an inode is closed, and counts as root's.
    if state not in _CONNECTED or ports != struct.pack("!HH", near[1], far[1]) or not inode:
        return None
    return _Socket(user_id, inode)
