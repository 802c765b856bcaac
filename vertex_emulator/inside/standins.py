"""The user's stand-ins for services of Google that the emulator does not have: jobs ask them by the services' names.

Calls go there with the host that the job has named, so that URLs in answers lead back here, and without what says who
the job is. The emulator's own port takes no such host, and the metadata servers of clouds are no stand-ins.
"""

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import h11
from starlette.types import Receive, Scope, Send

from vertex_emulator import names
from vertex_emulator.errors import ApiError
from vertex_emulator.http.connection import ABORT
from vertex_emulator.http.responses import error_response
from vertex_emulator.replicas.firewall import METADATA_SERVERS

_CONNECT_SECONDS, _SILENT_SECONDS = 5.0, 120.0
_CHUNK = 64 << 10
_UNAUTHENTICATED = 401
_OF_JOBS = (b"authorization", b"x-goog-api-key", b"cookie", b"metadata-flavor")
"""Headers that say who a job is, or that make a request one to a metadata server."""
_OF_CONNECTIONS = (
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"),
    *(b"trailer", b"transfer-encoding", b"upgrade", b"expect"),
)
"""Headers that are for one connection (RFC 9110, 7.6.1)."""


@dataclass(frozen=True)
class StandIns:
    """The stand-ins in a file, which a stack writes: `{PROJECT: {HOST: URL}}`. It is read for each request."""

    file: Path

    def of(self, project_number: str) -> dict[str, str]:
        """Return the URLs of a project's stand-ins by host."""
        return {host: url for urls in names.values_of(self.file, project_number) for host, url in urls.items()}


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class StandIn:
    """The ASGI application that answers for `host` by what answers at `url`.

    Requests have `headers` in place of the job's; `refused` is called for one that these do not identify.
    """

    host: str
    url: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    refused: Callable[[], None] = _nothing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back. A redirect is an answer: it is the job that follows it, or not."""
        has_begun = False

        async def pass_back(message: Any) -> None:
            nonlocal has_begun
            has_begun = True
            if message.get("status") == _UNAUTHENTICATED:
                self.refused()
            await send(message)

        try:
            async with self._connection() as (reader, writer):
                await self._ask(scope, receive, pass_back, reader, writer)
        except (OSError, TimeoutError, h11.ProtocolError, ssl.CertificateError) as error:
            if has_begun:
                scope["state"][ABORT]()
                return
            await error_response(self._unanswered(error))(scope, receive, send)

    def _unanswered(self, error: Exception) -> ApiError:
        message = f"The stand-in {self.url} for {self.host} fails: {self._reason(error)}."
        return ApiError("UNAVAILABLE", f"{message} Start it, or correct emulator.endpoints.")

    def _reason(self, error: Exception) -> str:
        if isinstance(error, h11.ProtocolError):
            return "it does not answer as HTTP/1.1 does"
        if isinstance(error, TimeoutError):
            return "it does not answer in time"
        return getattr(error, "strerror", None) or str(error)

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Connect. Raises OSError, also for an address that is no stand-in's."""
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await self._open()
        try:
            address = ipaddress.ip_address(writer.get_extra_info("peername")[0].partition("%")[0])
            address = getattr(address, "ipv4_mapped", None) or address
            if any(address in ipaddress.ip_network(each) for each in METADATA_SERVERS):
                raise PermissionError("it is a metadata server of a cloud, which jobs do not reach")
            yield reader, writer
        finally:
            writer.transport.abort()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        url = urlsplit(self.url)
        context = ssl.create_default_context() if url.scheme == "https" else None
        return await asyncio.open_connection(url.hostname, url.port or (443 if context else 80), ssl=context)

    async def _ask(
        self, scope: Scope, receive: Receive, send: Send, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connection = h11.Connection(h11.CLIENT)
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        left_out = (*_OF_JOBS, *_OF_CONNECTIONS, b"host", *(name for name, _ in self.headers))
        headers = [(b"host", self.host.encode()), *self.headers]
        headers += [(name, value) for name, value in scope["headers"] if name not in left_out]
        if any(name == b"transfer-encoding" for name, _ in scope["headers"]):
            headers.append((b"transfer-encoding", b"chunked"))
        request = h11.Request(method=scope["method"], target=target, headers=[*headers, (b"connection", b"close")])
        await _write(writer, connection.send(request))
        while (message := await receive())["type"] == "http.request":
            if message.get("body"):
                await _write(writer, connection.send(h11.Data(message["body"])))
            if not message.get("more_body"):
                await _write(writer, connection.send(h11.EndOfMessage()))
                break
        else:
            return

        # An answer may have no end, and its reader may leave.
        answering = asyncio.create_task(_answer(connection, reader, send))
        leaving = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not answering.done():
                answering.cancel()
        if answering.done():
            await answering


async def _write(writer: asyncio.StreamWriter, data: bytes | None) -> None:
    writer.write(data or b"")
    async with asyncio.timeout(_SILENT_SECONDS):
        await writer.drain()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(connection: h11.Connection, reader: asyncio.StreamReader, send: Send) -> None:
    """Pass an answer back. Raises h11.RemoteProtocolError for one that is none, and TimeoutError."""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            async with asyncio.timeout(_SILENT_SECONDS):
                connection.receive_data(await reader.read(_CHUNK))
        elif isinstance(event, h11.Response):
            left_out = (*_OF_CONNECTIONS, b"date")  # which the server sets itself
            headers = [(name, value) for name, value in event.headers if name not in left_out]
            await send({"type": "http.response.start", "status": event.status_code, "headers": headers})
        elif isinstance(event, h11.Data):
            await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
        elif isinstance(event, h11.EndOfMessage):
            await send({"type": "http.response.body", "body": b""})
            return
        elif isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("the connection ends before an answer")
