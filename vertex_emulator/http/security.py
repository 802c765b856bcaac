"""Who may send requests, and from where: the check before every route, and the headers that every response carries.

The emulator runs containers for whoever may send it requests: its own user, root, and whoever has the data folder's
token. A web page that this user happens to visit must not: browsers send the page's Origin, and a page that points its
own name at 127.0.0.1 (DNS rebinding) still sends that name as Host.
"""

import asyncio
import ipaddress
import os
import pwd
import re
import secrets
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vertex_api.emulator import VERSION_HEADER
from vertex_emulator.errors import ApiError, StartError
from vertex_emulator.http.connection import ADMIT, PEER_USER, is_trusted
from vertex_emulator.http.responses import error_response

_SINGLE_HEADERS = ("authorization", "content-type")  # the server itself refuses a second Host and Content-Length


class SecurityMiddleware:
    """ASGI middleware that accepts requests of those who have `access`, to loopback names only.

    With `allowed_host`, requests may be to it and to any address too.
    """

    def __init__(self, app: ASGIApp, version: str, access: "Access", allowed_host: str | None = None) -> None:
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
            await self._answer(scope)(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            # The server stops and waits no longer; it would answer 500, which clients take for a fault.
            if has_begun:
                raise
            error = ApiError("UNAVAILABLE", "The emulator is being stopped. Send the request again when it runs.")
            await error_response(error)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> ASGIApp:
        """Return what answers a request: the application, or the response that rejects or redirects it."""
        headers = Headers(scope=scope)
        if message := _ambiguity(headers):
            # Who sees another end of this request than the server does would take what follows for another request.
            return error_response(ApiError("INVALID_ARGUMENT", message), headers={"connection": "close"})
        if error := self._foreign(scope["scheme"], headers):
            return error_response(error)
        if redirect := self._access.redirect(scope):
            return redirect
        if error := self._access.refusal(scope):
            return error_response(error)
        if admit := scope.get("state", {}).get(ADMIT):
            admit()
        return self._app

    def _foreign(self, scheme: str, headers: Headers) -> ApiError | None:
        """Return the error for a request to another host's name, or of another host's page."""
        host = headers.get("host", "")
        if not self._is_allowed(host_of(f"//{host}")):
            message = f'Host "{host}" is rejected: the emulator only accepts requests to this machine.'
            return ApiError("PERMISSION_DENIED", message)
        for origin in headers.getlist("origin"):
            # Other ports of this machine are other users' pages, or a trainer's.
            if origin.lower() != f"{scheme}://{host}".lower():
                message = f'Origin "{origin}" is rejected: only the emulator\'s own page may send requests.'
                return ApiError("PERMISSION_DENIED", message)
        return None

    def _is_allowed(self, host: str | None) -> bool:
        if host is None:
            return False
        if is_loopback(host):
            return True
        # A name can be pointed anywhere by whoever owns it; an address cannot.
        return self._allowed_host is not None and (host == self._allowed_host or _address(host) is not None)


def _ambiguity(headers: Headers) -> str | None:
    """Return what two readers of a request could understand differently (RFC 9112, 6.3, "Message Body Length")."""
    if "content-length" in headers and "transfer-encoding" in headers:
        return "The request has both Content-Length and Transfer-Encoding; send one of them."
    for name in _SINGLE_HEADERS:
        if len(headers.getlist(name)) > 1:
            return f"The request has the header {name.title()} twice; send it once."
    return None


_MAX_PORT = 65535
# A parser of URLs would find the same host in `localhost#evil.example` and `evil.example[::1]`.
_BARE_URL = re.compile(r"//(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{0,5}))?")


def host_of(url: str) -> str | None:
    """Return the host in `//host:port`, None if there is none, or more than that."""
    match = _BARE_URL.fullmatch(url)
    if match is None or int(match[3] or 0) > _MAX_PORT:
        return None
    return (match[1] or match[2]).lower()


def is_loopback(host: str) -> bool:
    """Return whether a host name or an address always means this machine."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class Access:
    """Who may use an emulator: its own user, root, and whoever has its token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def refusal(self, scope: Scope) -> ApiError | None:
        """Return the error for a request by somebody who may not send one."""
        user_id = scope.get("state", {}).get(PEER_USER)
        if is_trusted(user_id) or self._has_token(HTTPConnection(scope)):
            return None
        if user_id is None:
            message = (
                "This connection needs the emulator's token, because the system does not tell whose it is: send the "
                'header "Authorization: Bearer TOKEN" with the text of the file `token` in the data folder, or open '
                "the link of the page that `vertex-emulator env` prints."
            )
            return ApiError("UNAUTHENTICATED", message)
        message = (
            f"This emulator belongs to {_user(os.geteuid())}, and {_user(user_id)} may not use it: "
            "start one of your own with `vertex-emulator serve --data DIR`."
        )
        return ApiError("PERMISSION_DENIED", message)

    def redirect(self, scope: Scope) -> Response | None:
        """Return a response that keeps the token of the page's link, `/?token=…`, in a cookie; None for others."""
        if scope["path"] != "/" or not scope["query_string"]:
            return None
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if not tokens or not self._is_token(tokens[0]):
            return None
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(_cookie_name(scope), tokens[0], httponly=True, samesite="strict")
        return response

    def _has_token(self, request: HTTPConnection) -> bool:
        return self._is_token(bearer(request) or request.cookies.get(_cookie_name(request.scope), ""))

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self._token)


def bearer(request: HTTPConnection) -> str:
    """Return the token of a request's header `Authorization`; "" without one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def ensure_token(path: Path) -> str:
    """Return the token in a file that only its owner may read; make both at the first start. Raises StartError."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(number, "r+") as file:
            os.fchmod(number, 0o600)
            token = file.read().strip()
            if not token:
                token = secrets.token_urlsafe(32)
                file.seek(0)
                file.write(f"{token}\n")
    except (OSError, ValueError) as error:
        raise StartError(
            f"the token file {path} cannot be used: {error}; delete it, and a start makes another"
        ) from error
    return token


def _cookie_name(scope: Scope) -> str:
    """Return the cookie's name: browsers send cookies to all ports of a host, so each emulator has its own."""
    return f"vertex-emulator-{scope['server'][1]}"


def _user(user_id: int) -> str:
    try:
        return f"{pwd.getpwuid(user_id).pw_name} (uid {user_id})"
    except KeyError:
        return f"uid {user_id}"
