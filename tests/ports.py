"""Ports for servers that are told theirs, as they cannot choose one and say which."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserve_port() -> Iterator[int]:
    """Reserve a port of this machine while the context lasts, whether its server runs or not.

    The kernel gives a port that is bound to nobody else, and as nothing listens on it, a server with SO_REUSEADDR may.
    """
    with socket.socket() as reservation:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", 0))
        yield reservation.getsockname()[1]
