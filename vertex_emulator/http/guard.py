"""What stands before every route: who may ask, and the marker on every answer.

The emulator runs containers for whoever can reach it, without credentials. A web page that the user happens to visit
must not be able to: browsers send the page's Origin, and a page that points its own name at 127.0.0.1 (DNS rebinding)
still sends that name as Host.
"""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vertex_emulator.errors import ApiError

MARKER = "x-vertex-emulator"


class Guard:
    """ASGI middleware. Answers to loopback names only; with `allowed_host`, also to that name and to any address."""

    def __init__(self, app: ASGIApp, version: str, allowed_host: str | None = None) -> None:
        self._app = app
        self._version = version
        self._allowed_host = allowed_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[MARKER] = self._version
                headers["x-content-type-options"] = "nosniff"
                headers.setdefault("cache-control", "no-database")
                headers.setdefault("content-security-policy", "default-src 'none'; frame-ancestors 'none'")
            await send(message)

        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            await JSONResponse(refusal.body(), status_code=refusal.http)(scope, receive, marked)
            return
        await self._app(scope, receive, marked)

    def _refusal(self, headers: Headers) -> ApiError | None:
        host = headers.get("host", "")
        if not self._is_allowed(host_of(f"//{host}")):
            return ApiError(
                "PERMISSION_DENIED", f'Host "{host}" is refused: the emulator answers to this machine only.'
            )
        for origin in headers.getlist("origin"):
            if not self._is_allowed(host_of(origin)):
                return ApiError(
                    "PERMISSION_DENIED", f'Origin "{origin}" is refused: only pages of this machine may ask.'
                )
        return None

    def _is_allowed(self, host: str | None) -> bool:
        if host is None:
            return False
        if is_loopback(host):
            return True
        # A name can be pointed anywhere by whoever owns it; an address cannot.
        return self._allowed_host is not None and (host == self._allowed_host or _address(host) is not None)


def host_of(url: str) -> str | None:
    """The host in a URL or in `//host:port`; None when there is none."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return None if parts.username is not None or parts.path else parts.hostname


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine and nothing else."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> Any:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
