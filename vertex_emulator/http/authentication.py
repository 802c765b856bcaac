"""Authentication of requests: of the own user and root, and of whoever has the data folder's token."""

import os
import pwd
import secrets
from pathlib import Path
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from vertex_emulator.errors import ApiError, StartError
from vertex_emulator.http.connection_with_peer_user import PEER_USER_ID

_TOKEN_BYTES = 32
_BEARER = "bearer "


def read_or_create_token(path: Path) -> str:
    """Return the token in a file that only its owner may read; create both at the first start. Raises StartError."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(number, "r+") as file:
            os.fchmod(number, 0o600)
            token = file.read().strip()
            if not token:
                token = secrets.token_urlsafe(_TOKEN_BYTES)
                file.seek(0)
                file.write(f"{token}\n")
    except (OSError, ValueError) as error:
        raise StartError(
            f"the token file {path} cannot be used: {error}; delete it, and a start makes another"
        ) from error
    return token


class Access:
    """The check of one emulator, with its token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def find_authentication_error(self, scope: Scope) -> ApiError | None:
        """Return the error for a request by somebody who may not send one."""
        user_id = scope.get("state", {}).get(PEER_USER_ID)
        if (user_id is not None and user_id in (os.geteuid(), 0)) or self._has_token(HTTPConnection(scope)):
            return None
        if user_id is None:
            message = (
                "This connection needs the emulator's token, because the system does not tell whose it is: send the "
                'header "Authorization: Bearer TOKEN" with the text of the file `token` in the data folder, or open '
                "the link of the page that `vertex-emulator env` prints."
            )
            return ApiError("UNAUTHENTICATED", message)
        message = (
            f"This emulator belongs to {_describe_user(os.geteuid())}, and {_describe_user(user_id)} may not use it: "
            "start one of your own with `vertex-emulator serve --data DIR`."
        )
        return ApiError("PERMISSION_DENIED", message)

    def build_cookie_redirect_or_none(self, scope: Scope) -> Response | None:
        """Return a response that keeps the token of the page's link, `/?token=…`, in a cookie; else `None`."""
        if scope["path"] != "/" or not scope["query_string"]:
            return None
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if not tokens or not self._is_emulator_token(tokens[0]):
            return None
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(_get_cookie_name(scope), tokens[0], httponly=True, samesite="strict")
        return response

    def _has_token(self, request: HTTPConnection) -> bool:
        authorization = request.headers.get("authorization", "")
        if authorization.lower().startswith(_BEARER):
            return self._is_emulator_token(authorization[len(_BEARER) :].strip())
        return self._is_emulator_token(request.cookies.get(_get_cookie_name(request.scope), ""))

    def _is_emulator_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self._token)


def _get_cookie_name(scope: Scope) -> str:
    """Return the cookie's name: browsers send cookies to all ports of a host, so each emulator has its own."""
    return f"vertex-emulator-{scope['server'][1]}"


def _describe_user(user_id: int) -> str:
    try:
        return f"{pwd.getpwuid(user_id).pw_name} (uid {user_id})"
    except KeyError:
        return f"uid {user_id}"
