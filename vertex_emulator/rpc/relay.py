"""The emulator's side of gRPC: connections that begin as HTTP/2 are relayed to the process that translates them.

It answers by requests to the emulator's own port. Each has the number of the relay's port and a secret, by which the
emulator finds the connection that it stands for: so whoever calls may do by gRPC what they may do by REST.
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vertex_emulator.http.connection import PEER_USER, Relay, is_trusted

OWN = "own"
"""The caller that is the emulator's own user, or root."""
HEADER = "x-vertex-emulator-relay"
_FORGET_SECONDS = 660.0
"""Longer than the process works on a call."""
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
    _port: int = 0

    def caller(self, header: str) -> Any:
        """Return who has sent the call for which a request of the process stands; None if it is not the process's."""
        secret, _, peer = header.partition(":")
        # Another user may connect to the process from the port of a relay, at another address of this machine.
        if not hmac.compare_digest(secret.encode(), self.secret.encode()) or not peer.startswith(_OWN_ADDRESS):
            return None
        port = peer.removeprefix(_OWN_ADDRESS)
        return self._callers.get(int(port)) if port.isdigit() else None

    def port(self) -> int:
        """Return the port of the running process, started if it is not. Raises OSError."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                command = [sys.executable, "-m", "vertex_emulator.rpc.server", self.url]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
                )
                assert self._process.stdin is not None and self._process.stdout is not None
                self._process.stdin.write(f"{self.secret}\n")
                self._process.stdin.flush()
                said = self._process.stdout.readline()
                if not said.strip().isdigit():
                    raise OSError("gRPC is not served: its process has not started; the emulator's log says why")
                self._port = int(said)
                _log.info("gRPC is served by process %s", self._process.pid)
            return self._port

    def stop(self) -> None:
        """End the process; it ends with this one, too, as its input does."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    async def relay_own(self, client: asyncio.Transport, first: bytes, state: Mapping[str, Any]) -> Relay:
        """Relay a client of the emulator's own port. Raises OSError."""
        if not is_trusted(state[PEER_USER]):
            raise PermissionError("another user calls, or the system does not tell who")
        return await self.relay(client, first, OWN)

    async def relay(self, client: asyncio.Transport, first: bytes, caller: Any) -> Relay:
        """Connect a client whose first bytes are these to the process. Raises OSError."""
        port = await asyncio.get_running_loop().run_in_executor(None, self.port)
        loop = asyncio.get_running_loop()
        while True:
            _, server = await loop.create_connection(
                lambda: _Server(client, self._callers), "127.0.0.1", port, local_addr=("127.0.0.1", 0)
            )
            # The process may still work on a call of whoever had the port before, who is forgotten some time later.
            if server.own_port not in self._callers:
                break
            server.keeps_client = True
            server.transport.abort()
        self._callers[server.own_port] = caller
        server.transport.write(first)
        return _Relay(server)


class _Server(asyncio.Protocol):
    """The connection to the process: what it answers goes to the client."""

    transport: asyncio.Transport

    def __init__(self, client: asyncio.Transport, callers: dict[int, Any]) -> None:
        self._client, self._callers, self.own_port, self.keeps_client = client, callers, 0, False

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
        if not self.keeps_client:
            loop = asyncio.get_running_loop()
            loop.call_later(_FORGET_SECONDS, self._callers.pop, self.own_port, None)
            self._client.close()


@dataclass
class _Relay:
    """What the client sends goes to the process."""

    server: _Server

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
