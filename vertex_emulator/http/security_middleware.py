"""The access check before every route, and the headers that every response carries.

The emulator runs containers for whoever may send it requests: its own user. A web page that this user happens to visit
must not: browsers send the page's Origin, and a page that points its own name at 127.0.0.1 (DNS rebinding) still sends
that name as Host.
"""

import asyncio
import ipaddress
import re
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vertex_emulator.errors import ApiError
from vertex_emulator.http.authentication import Access
from vertex_emulator.http.json_responses import build_error_response

VERSION_HEADER = "x-vertex-emulator"
_SINGLE_HEADERS = ("authorization", "content-type")  # the server itself refuses a second Host and Content-Length
_MAX_PORT = 65535
# A parser of URLs would find the same host in `localhost#evil.example` and `evil.example[::1]`.
_BARE_URL = re.compile(r"//(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{0,5}))?")


class SecurityMiddleware:
    """ASGI middleware that accepts requests of those who have `access`, to loopback names only.

    With `allowed_host`, requests may be to it and to any address too.
    """

    def __init__(self, app: ASGIApp, version: str, access: Access, allowed_host: str | None = None) -> None:
        self._app = app
        self._version = version
        self._access = access
        self._allowed_host = allowed_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                headers[VERSION_HEADER] = self._version
                headers["x-content-type-options"] = "nosniff"
                headers["cross-origin-resource-policy"] = "same-origin"  # also for what an <img> of another page loads
                headers.setdefault("cache-control", "no-store")
                headers.setdefault("content-security-policy", "default-src 'none'; frame-ancestors 'none'")
                if message["status"] == 401:
                    headers["www-authenticate"] = "Bearer"
            await send(message)

        try:
            await self._choose_app_or_response(scope)(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            # The server stops and waits no longer; it would answer 500, which clients take for a fault.
            if has_begun:
                raise
            error = ApiError("UNAVAILABLE", "The emulator is being stopped. Send the request again when it runs.")
            await build_error_response(error)(scope, receive, send_with_headers)

    def _choose_app_or_response(self, scope: Scope) -> ASGIApp:
        """Return what answers a request: the application, or the response that rejects or redirects it."""
        if message := _find_ambiguity(Headers(scope=scope)):
            # Who sees another end of this request than the server does would take what follows for another request.
            return build_error_response(ApiError("INVALID_ARGUMENT", message), headers={"connection": "close"})
        if error := self._find_host_or_origin_error(scope["scheme"], Headers(scope=scope)):
            return build_error_response(error)
        if redirect := self._access.build_cookie_redirect_or_none(scope):
            return redirect
        if error := self._access.find_authentication_error(scope):
            return build_error_response(error)
        return self._app

    def _find_host_or_origin_error(self, scheme: str, headers: Headers) -> ApiError | None:
        host = headers.get("host", "")
        if not self._is_allowed_host(find_host_of_bare_url(f"//{host}")):
            message = f'Host "{host}" is rejected: the emulator only accepts requests to this machine.'
            return ApiError("PERMISSION_DENIED", message)
        for origin in headers.getlist("origin"):
            # Other ports of this machine are other users' pages, or a trainer's.
            if origin.lower() != f"{scheme}://{host}".lower():
                message = f'Origin "{origin}" is rejected: only the emulator\'s own page may send requests.'
                return ApiError("PERMISSION_DENIED", message)
        return None

    def _is_allowed_host(self, host: str | None) -> bool:
        if host is None:
            return False
        if is_loopback_host(host):
            return True
        # A name can be pointed anywhere by whoever owns it; an address cannot.
        return self._allowed_host is not None and (
            host == self._allowed_host or _parse_ip_address_or_none(host) is not None
        )


def _find_ambiguity(headers: Headers) -> str | None:
    """Return what two readers of a request could understand differently (RFC 9112, 6.3, "Message Body Length")."""
    if "content-length" in headers and "transfer-encoding" in headers:
        return "The request has both Content-Length and Transfer-Encoding; send one of them."
    for name in _SINGLE_HEADERS:
        if len(headers.getlist(name)) > 1:
            return f"The request has the header {name.title()} twice; send it once."
    return None


def find_host_of_bare_url(url: str) -> str | None:
    """Return the host in a URL or in `//host:port`, None if there is none."""
    match = _BARE_URL.fullmatch(url)
    if match is None or int(match[3] or 0) > _MAX_PORT:
        return None
    return (match[1] or match[2]).lower()


def is_loopback_host(host: str) -> bool:
    """Return whether a host name or an address always means this machine."""
    address = _parse_ip_address_or_none(host)
    return host == "localhost" if address is None else address.is_loopback


def _parse_ip_address_or_none(host: str) -> Any:
    """Return an IPv4 or IPv6 address; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
