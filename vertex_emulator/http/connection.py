"""The servers of an emulator, and their connections: how many there may be, whose they are, and for how long.

Linux tells the user at the other end of a connection (`man 7 sock_diag`). Those of the emulator's own user and of root
are known at once, others by what the application finds in a request. Whoever is not known gets few connections for a
short time, so that no other user of the machine, no other machine and no container takes what those need who are.
"""

import asyncio
import errno
import logging
import os
import re
import resource
import socket
import ssl
import struct
import sys
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import h11
import uvicorn
from h11 import LocalProtocolError
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from vertex_emulator.errors import StartError

PEER_USER = "peer_user"
"""The key of a connection's user id in `scope["state"]`."""
ABORT = "abort"
"""The key in `scope["state"]` of a function that cuts a request's connection at once."""
ADMIT = "admit"
"""The key in `scope["state"]` of a function by which an application says that it knows a connection's peer."""
MEMORY = "memory"
"""The key in `scope["state"]` of a dict in which an application keeps what it knows of a connection until its end."""
HTTP2 = b"PRI * HTTP/2.0"
"""How a connection of HTTP/2 begins without an upgrade (RFC 9113, 3.4)."""
_HANDSHAKE = b"\x16"
"""How a connection of TLS begins (RFC 8446, 5.1), and no method of HTTP."""
_OPTIONS: Mapping[str, Any] = {
    "ws": "none",
    "lifespan": "off",
    "proxy_headers": False,  # X-Forwarded-For is what a peer says of itself
    "log_config": None,
    "access_log": False,
    "server_header": False,
    # Much longer than clients wait between two requests: one that is sent while its idle connection is closed fails.
    "timeout_keep_alive": 600,
    # How many connections are accepted at once: some of them may have to be cut before the next ones.
    "backlog": 64,
}
_HEAD_END = b"\r\n\r\n"
_IDENTITY = re.compile(rb"\r\ntransfer-encoding: *identity *\r\n", re.IGNORECASE)
"""It means none (RFC 2616, 3.6). TensorFlow's file system sends it, and the parser takes `chunked` only."""
_MAX_FILES = 65_536  # some programs try all numbers of files that they may have
_WAITING = 4096  # connections that wait to be accepted; the system may have a lower limit
_TCP_CLOSE = 7  # linux/tcp_states.h
_DROPPED_AT_ONCE = 100
_PAUSE_SECONDS = 0.5  # less than the second for which asyncio stops to accept
_REPORT_SECONDS = 60.0
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logging.getLogger("vertex_emulator.http")


def raise_file_limit() -> int:
    """Let this process open as many files as it may, within reason; return how many these are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return min(soft, _MAX_FILES) if soft != resource.RLIM_INFINITY else _MAX_FILES
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):  # macOS has a lower limit of its own
        return soft
    return wanted


@dataclass(frozen=True)
class Limits:
    """How many connections a server has, and how long those whose peers it does not know wait for requests."""

    connections: int = 2048
    unknown: int = 128
    first_seconds: float = 10.0
    """From the beginning of an unknown connection to the end of its first answer."""
    idle_seconds: float = 10.0
    """From one answer on an unknown connection to the end of the next."""
    relay_seconds: float = 60.0
    """From the beginning of a relay to an unknown connection's first admitted call, which may be the first of all."""

    def within(self, files: int) -> "Limits":
        """These limits in a process that may open so many files, of which it needs most for other things."""
        connections = min(self.connections, max(16, files // 4))
        return replace(self, connections=connections, unknown=min(self.unknown, connections // 2))


class Relay(Protocol):
    """The other side of a connection of HTTP/2, which this server hands on as it is.

    Unless it `is_checked`, whoever has opened it has to be admitted in time.
    """

    is_checked: bool

    def send(self, data: bytes) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...


OpenRelay = Callable[[asyncio.Transport, bytes, Mapping[str, Any]], Awaitable[Relay]]
"""Opens the other side for a client, its first bytes and the state of its connection. Raises OSError to refuse it."""


class HttpServer(uvicorn.Server):
    """An HTTP server within limits, for a `Listener`; connections of HTTP/2 are handed on by `relay`.

    With `tls`, a connection may begin by TLS: it is asked for its context with each, as long as that takes; StartError
    refuses it. `takes_identity` is for clients that name an encoding of bodies which means none.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        relay: OpenRelay | None = None,
        *,
        tls: Callable[[], ssl.SSLContext] | None = None,
        takes_identity: bool = False,
        **options: Any,
    ) -> None:
        crowd = _Crowd(limits)
        protocol: Any = partial(IdentifiedConnection, crowd=crowd, relay=relay, tls=tls, takes_identity=takes_identity)
        # Requests whose clients have left are worked on, too: what is beyond is answered 503 at once.
        requests = 2 * limits.connections
        super().__init__(uvicorn.Config(app, http=protocol, limit_concurrency=requests, **_OPTIONS, **options))
        self._crowd = crowd
        self._next_report = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        asyncio.get_running_loop().set_exception_handler(self._report)
        for listener in sockets or []:
            if isinstance(listener, Listener):
                listener.crowd = self._crowd
        await super().startup(sockets)

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what an event loop caught. That connections wait, asyncio tells each second with a traceback."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _NO_ROOM:
            loop.default_exception_handler(context)
        elif time.monotonic() >= self._next_report:
            self._next_report = time.monotonic() + _REPORT_SECONDS
            _log.warning("new connections wait: %s", error.strerror)


@dataclass
class _Crowd:
    """The connections of a server: all, those of peers that it does not know by peer, and the idle ones of the others.

    Each is a dict for its order: the first is the oldest.
    """

    limits: Limits
    all: "set[IdentifiedConnection]" = field(default_factory=set)
    unknown: "dict[str | int, dict[IdentifiedConnection, None]]" = field(default_factory=dict)
    idle: "dict[IdentifiedConnection, None]" = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Return whether the next connection has to wait until another one ends."""
        return len(self.all) >= self.limits.connections and not self.idle

    def enter(self, connection: "IdentifiedConnection", unknown_peer: str | int | None) -> None:
        """Add a connection; cut another one if these are too many.

        It is the oldest of the unknown peer that has the most, so that none shuts out another; or the longest idle.
        """
        self.all.add(connection)
        if unknown_peer is not None:
            self.unknown.setdefault(unknown_peer, {})[connection] = None
            if sum(map(len, self.unknown.values())) > self.limits.unknown:
                largest = max(self.unknown, key=lambda peer: len(self.unknown[peer]))
                self._cut(next(iter(self.unknown[largest])))
        if len(self.all) > self.limits.connections and self.idle:
            self._cut(next(iter(self.idle)))

    def admit(self, connection: "IdentifiedConnection", peer: str | int) -> None:
        """Count a connection among the known ones."""
        of_peer = self.unknown.get(peer, {})
        of_peer.pop(connection, None)
        if not of_peer:
            self.unknown.pop(peer, None)

    def leave(self, connection: "IdentifiedConnection", peer: str | int) -> None:
        """Forget a connection that has ended."""
        self.all.discard(connection)
        self.idle.pop(connection, None)
        self.admit(connection, peer)

    def _cut(self, connection: "IdentifiedConnection") -> None:
        self.leave(connection, connection.peer)
        connection.transport.abort()


class Listener(socket.socket):
    """A listening socket that drops connections which their clients have reset while they waited to be accepted.

    Nobody waits for their answers, so a flood of them does not keep others waiting. (macOS does not deliver them.)
    Where no more connections can be open, they wait.
    """

    crowd: _Crowd | None = None
    _next_try = 0.0

    @classmethod
    def open(cls, host: str, port: int) -> "Listener":
        """Listen on an address. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family) as opened:
            listener = cls(fileno=opened.detach())
        # Connections inherit it. asyncio sets it only where it opens the socket itself; without it, every reply on a
        # connection that is kept alive waits 40 ms for the client's acknowledgement of its headers.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener

    def listen(self, _backlog: int = 0, /) -> None:
        """Let connections wait, as many as the system allows; what the argument says is accepted at once."""
        super().listen(_WAITING)

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """Accept the next connection that is open.

        Raises BlockingIOError if none waits, as any non-blocking socket, and once OSError EMFILE if there is no room:
        asyncio stops to accept for a second then, but asks on in the same turn.
        """
        if time.monotonic() < self._next_try:
            raise BlockingIOError("there is no room yet")
        try:
            if self.crowd is not None and self.crowd.is_full:
                raise OSError(errno.EMFILE, f"{len(self.crowd.all)} are open, and all of them are in use")
            return self._accept_open()
        except OSError as error:
            if error.errno in _NO_ROOM:
                self._next_try = time.monotonic() + _PAUSE_SECONDS
            raise

    def _accept_open(self) -> tuple[socket.socket, tuple[str, int]]:
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

    `scope["state"][ABORT]` cuts the connection, `scope["state"][ADMIT]` says that the peer may use the server,
    `scope["state"][MEMORY]` is kept for all of its requests.

    The connection keeps the id. A cache by address and port would give it to the next process with the same port.
    """

    def __init__(
        self,
        *args: Any,
        crowd: _Crowd,
        relay: OpenRelay | None,
        tls: Callable[[], ssl.SSLContext] | None,
        takes_identity: bool,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._crowd, self._open_relay, self._tls, self._takes_identity = crowd, relay, tls, takes_identity
        self._is_begun = self._is_encrypted = False
        self._relay: Relay | None = None
        self._beginning: asyncio.Task[None] | None = None
        self._is_known = False
        self._deadline: asyncio.TimerHandle | None = None
        self.peer: str | int = ""
        """Whose connections are counted together: a user's, else those from an address."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look up the peer's user, once for all requests; below TLS, this is called again."""
        super().connection_made(transport)
        if self._is_begun:
            self._is_begun, self._is_encrypted = False, True
            return
        user_id = peer_user(transport.get_extra_info("socket"))
        known: dict[str, Any] = {PEER_USER: user_id, ABORT: transport.abort, ADMIT: self._admit, MEMORY: {}}
        self.app_state = {**self.app_state, **known}
        self.peer = (self.client[0] if self.client else "") if user_id is None else user_id
        self._is_known = is_trusted(user_id)
        self._crowd.enter(self, None if self._is_known else self.peer)
        self._expect_answer(self._crowd.limits.first_seconds)

    def _admit(self) -> None:
        if not self._is_known:
            self._is_known = True
            self._crowd.admit(self, self.peer)
            self._expect_answer(0)

    def _expect_answer(self, seconds: float) -> None:
        """Cut the connection after so many seconds unless its peer is known by then or an answer has been sent."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if self._is_known else self.loop.call_later(seconds, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Read a request."""
        is_begun, self._is_begun = self._is_begun, True
        if self._relay is not None:
            self._relay.send(data)
        elif self._open_relay is not None and not is_begun and data.startswith(HTTP2):
            self._begin_relay(self._open_relay, data)
        elif self._tls is not None and not is_begun and not self._is_encrypted and data.startswith(_HANDSHAKE):
            self._begin_tls(self._tls, data)
        else:
            self._crowd.idle.pop(self, None)
            if self._takes_identity and self.conn.their_state is h11.IDLE:
                head, end, rest = data.partition(_HEAD_END)
                data = _IDENTITY.sub(b"\r\n", head + end[:2]) + end[2:] + rest if end else data
            super().data_received(data)

    def _begin_relay(self, open_relay: OpenRelay, first: bytes) -> None:
        """Hand the connection on: nothing more is read of it until the other side is there."""
        if self._deadline is not None:
            self._deadline.cancel()
        self.transport.pause_reading()

        async def connect() -> None:
            try:
                relay = self._relay = await open_relay(self.transport, first, self.app_state)
            except OSError as error:
                _log.warning("a connection of HTTP/2 is refused: %s", error)
                self.transport.abort()
                return
            if self.transport.is_closing():
                relay.close()
            else:
                if not relay.is_checked:
                    self._expect_answer(self._crowd.limits.relay_seconds)
                self.transport.resume_reading()

        self._beginning = self.loop.create_task(connect())

    def _begin_tls(self, tls: Callable[[], ssl.SSLContext], first: bytes) -> None:
        """Read on below TLS: this is the same connection, whose peer is known already."""
        outer = self.transport
        outer.pause_reading()

        async def begin() -> None:
            try:
                context = await self.loop.run_in_executor(None, tls)
            except StartError as error:
                _log.warning("a connection of TLS is refused: %s", error)
                outer.abort()
                return
            if outer.is_closing():
                return
            ended = self.loop.create_future()
            ended.add_done_callback(self._end_handshake)
            protocol = SSLProtocol(self.loop, self, context, ended, server_side=True)
            outer.set_protocol(protocol)
            protocol.connection_made(outer)
            outer.resume_reading()
            # What has been read already; no more than a transport reads at once, for which there is room.
            protocol.get_buffer(len(first))[: len(first)] = first
            protocol.buffer_updated(len(first))

        self._beginning = self.loop.create_task(begin())

    def _end_handshake(self, handshake: "asyncio.Future[None]") -> None:
        """Forget a connection that has ended before TLS had begun, of which nothing else tells."""
        error = handshake.exception()
        if not self._is_encrypted:
            self.connection_lost(error if isinstance(error, Exception) else None)

    def pause_writing(self) -> None:
        """Wait until the client reads."""
        if self._relay is not None:
            self._relay.pause()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on."""
        if self._relay is not None:
            self._relay.resume()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless the connection has ended meanwhile."""
        if not self.transport.is_closing():
            if self._is_known:
                self._crowd.idle[self] = None
            self._expect_answer(self._crowd.limits.idle_seconds)
        super().on_response_complete()

    def handle_events(self) -> None:
        """Work on what has arrived, a request that came before the last answer among it."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._crowd.idle.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, at once: garbage collections are rare, and a flood of connections is not to await one.

        Without this, uvicorn's timer would keep one that its client has reset until its idle time is over.
        """
        if self._deadline is not None:
            self._deadline.cancel()
        self._crowd.leave(self, self.peer)
        if self._relay is not None:
            self._relay.close()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.app_state, self.scope, self.cycle = {}, None, None  # type: ignore[assignment]

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


def is_trusted(user_id: int | None) -> bool:
    """Return whether a user may do all that the emulator does: its own user and root may."""
    return user_id is not None and user_id in (os.geteuid(), 0)


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
