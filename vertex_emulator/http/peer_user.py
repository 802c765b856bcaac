"""The user at the other end of a connection on this machine, as Linux tells it (`man 7 sock_diag`)."""

import socket
import struct

_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST_FLAG = 4, 20, 1  # linux/netlink.h, linux/sock_diag.h
_LISTEN_STATE = 10  # TCP_LISTEN, linux/tcp_states.h
_SOCKET_ID = "!HH16s16s"  # inet_diag_sockid: ports and addresses; interface and cookie follow
_ANY_INTERFACE, _ANY_COOKIE, _ANY_STATE = b"\0" * 4, b"\xff" * 8, 0xFFFFFFFF
# nlmsghdr, then inet_diag_msg: family, state, timer, retransmissions, ports, the rest of the id, expiry, queues.
_REPLY = struct.Struct("=IHHII BBBB 4s 44x III II")
_REPLY_SECONDS = 1.0

Address = tuple[str, int]


def find_user_id_of_peer(peer_address: Address, own_address: Address) -> int | None:
    """Return the user that holds the other end of a TCP connection from `peer_address` to `own_address`.

    `None` if the kernel does not tell: the peer is on another machine or has closed its socket, or this is not Linux.
    """
    try:
        # /proc/net/tcp tells the same, but reading it takes 8 ms and more, and an IPv4 connection may be in tcp6.
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.settimeout(_REPLY_SECONDS)
            kernel.send(_build_sock_diag_query(peer_address, own_address))
            reply = kernel.recv(4096)
    except (OSError, AttributeError):
        return None
    if len(reply) < _REPLY.size:
        return None  # an error, mostly that there is no such socket
    _, _, _, _, _, _, state, _, _, ports, _, _, _, user_id, inode = _REPLY.unpack_from(reply)
    # Without a connection, the kernel describes a listener on the port. A socket without an inode is closed, and
    # counts as root's.
    if state == _LISTEN_STATE or ports != struct.pack("!HH", peer_address[1], own_address[1]) or not inode:
        return None
    return int(user_id)


def can_identify_local_users() -> bool:
    """Return whether the kernel tells the user of a connection on this machine."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        return find_user_id_of_peer(client.getsockname(), server.getsockname()) is not None


def _build_sock_diag_query(peer_address: Address, own_address: Address) -> bytes:
    family = socket.AF_INET6 if ":" in peer_address[0] else socket.AF_INET
    addresses = (socket.inet_pton(family, host).ljust(16, b"\0") for host in (peer_address[0], own_address[0]))
    socket_id = struct.pack(_SOCKET_ID, peer_address[1], own_address[1], *addresses) + _ANY_INTERFACE + _ANY_COOKIE
    query = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + socket_id
    return struct.pack("=IHHII", 16 + len(query), _SOCK_DIAG_BY_FAMILY, _REQUEST_FLAG, 1, 0) + query
