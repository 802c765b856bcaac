"""The emulator's side of gRPC: connections that begin as HTTP/2 are relayed to the process that translates them.

It answers by requests to the emulator's own port. Each has the number of the relay's port and a secret, by which the
emulator finds the connection that it stands for: so whoever calls may do by gRPC what they may do by REST.

The process has a server for the emulator's own user, and one for all others, who have few connections each: nobody
takes the places that the owner needs.
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from vertex_emulator.http.connection import ADMIT, PEER_USER, Relay, is_trusted

HEADER = "x-vertex-emulator-relay"
_FORGET_SECONDS = 660.0
"""Longer than the process works on a call."""
_CONNECTIONS = 16
"""Of one caller who is not the emulator's own user; on each, few calls at once."""
_FOLDER = Path(__file__).parents[2]
"""Where the process finds this package, installed or not."""
_OWN_ADDRESS = "ipv4:127.0.0.1:"
"""As gRPC writes it."""
_log = logging.getLogger("vertex_emulator.rpc")


@dataclass
class Translator:
    """The process that translates; `url` is the emulator's own port. It starts with the first connection."""

    url: str
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    _callers: dict[int, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _process: "subprocess.Popen[str] | None" = None
    _ports: tuple[int, int] = (0, 0)
    _connections: "Counter[str | None]" = field(default_factory=Counter)

    def caller(self, header: str) -> Any:
        """Return who has sent the call for which a request of the process stands; None if it is not the process's."""
        secret, _, peer = header.partition(":")
        # Another user may connect to the process from the port of a relay, at another address of this machine.
        if not hmac.compare_digest(secret.encode(), self.secret.encode()) or not peer.startswith(_OWN_ADDRESS):
            return None
        port = peer.removeprefix(_OWN_ADDRESS)
        return self._callers.get(int(port)) if port.isdigit() else None

    def ports(self) -> tuple[int, int]:
        """Return the ports of the running process, for its owner and for others. Start it first. Raises OSError."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                command = [sys.executable, "-m", "vertex_emulator.rpc.server", self.url]
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=_FOLDER,
                    start_new_session=True,
                )
                assert self._process.stdin is not None and self._process.stdout is not None
                self._process.stdin.write(f"{self.secret}\n")
                self._process.stdin.flush()
                said = self._process.stdout.readline().split()
                if len(said) != 2:
                    raise OSError("gRPC is not served: its process has not started; the emulator's log says why")
                self._ports = int(said[0]), int(said[1])
                _log.info("gRPC is served by process %s", self._process.pid)
            return self._ports

    def stop(self) -> None:
        """End the process; it ends with this one, too, as its input does."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.communicate()

    async def relay_own(self, client: asyncio.Transport, first: bytes, state: Mapping[str, Any]) -> Relay:
        """Relay a client of the emulator's own port: each call is checked as a request of its user. Raises OSError."""
        user = state[PEER_USER]
        unknown = client.get_extra_info("peername")[0] if user is None else f"uid {user}"
        key = None if is_trusted(user) else unknown
        return await self.relay(client, first, {PEER_USER: user, ADMIT: state[ADMIT]}, key, is_checked=key is None)

    async def relay(
        self, client: asyncio.Transport, first: bytes, caller: Any, key: str | None, *, is_checked: bool
    ) -> Relay:
        """Connect a client whose first bytes are these to the process. Raises OSError.

        `caller` is what `caller` returns for its calls; `key` tells callers apart, None for the emulator's own user.
        """
        if key is not None and self._connections[key] >= _CONNECTIONS:
            raise PermissionError(f"{key} has {_CONNECTIONS} connections already")
        self._connections[key] += 1
        try:
            server = await self._connected(client, key)
        except BaseException:
            self._leave(key)
            raise
        self._callers[server.own_port] = caller
        server.transport.write(first)
        return _Relay(server, is_checked)

    async def _connected(self, client: asyncio.Transport, key: str | None) -> "_Server":
        loop = asyncio.get_running_loop()
        ports = await loop.run_in_executor(None, self.ports)
        while True:
            _, server = await loop.create_connection(
                lambda: _Server(client), "127.0.0.1", ports[key is not None], local_addr=("127.0.0.1", 0)
            )
            # The process may still work on a call of whoever had the port before, who is forgotten some time later.
            if server.own_port not in self._callers:
                if server.transport.is_closing():
                    raise ConnectionResetError("the process that translates has ended")
                server.on_end = partial(self._end, server.own_port, key)
                return server
            server.transport.abort()

    def _end(self, port: int, key: str | None) -> None:
        asyncio.get_running_loop().call_later(_FORGET_SECONDS, self._callers.pop, port, None)
        self._leave(key)

    def _leave(self, key: str | None) -> None:
        self._connections[key] -= 1
        if not self._connections[key]:
            del self._connections[key]


class _Server(asyncio.Protocol):
    """The connection to the process: what it answers goes to the client. With `on_end`, the client ends with it."""

    transport: asyncio.Transport
    own_port: int
    on_end: Callable[[], None] | None = None

    def __init__(self, client: asyncio.Transport) -> None:
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.own_port = transport, transport.get_extra_info("sockname")[1]

    def data_received(self, data: bytes) -> None:
        self._client.write(data)

    def pause_writing(self) -> None:
        self._client.pause_reading()

    def resume_writing(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._client.resume_reading()

    def connection_lost(self, _exc: Exception | None) -> None:
        if self.on_end is not None:
            self.on_end()
            self._client.close()


@dataclass
class _Relay:
    """What the client sends goes to the process."""

    server: _Server
    is_checked: bool

    def send(self, data: bytes) -> None:
        """Pass on what the client has sent."""
        self.server.transport.write(data)

    def pause(self) -> None:
        """Wait until the client reads."""
        self.server.transport.pause_reading()

    def resume(self) -> None:
        """Go on."""
        self.server.transport.resume_reading()

    def close(self) -> None:
        """End both connections."""
        self.server.transport.close()
