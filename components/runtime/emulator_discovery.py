"""The emulator that serves a data folder, found by the same rule as in vertex_emulator/data_folder.py.

endpoint.json alone proves nothing: an emulator that is killed leaves it behind, and anybody can listen on its port.
"""

import fcntl
import http.client
import ipaddress
import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vertex_api.client import Endpoint

from ..errors import EmulatorFailed

MARKER_HEADER = "x-vertex-emulator"
"""The header of every answer of an emulator, with its version."""
REMOTE_VARIABLE = "VERTEX_EMULATOR_ALLOW_REMOTE"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the request that would follow has the emulator's token, whatever host it goes to."""

    def redirect_request(self, *_: Any) -> None:
        return None


DIRECT_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)
"""Ignores the proxies that are set for the internet, and follows no redirects."""
MAX_ANSWER_BYTES = 64 << 20
_ANSWER_SECONDS = 5


def find_running_endpoint_or_none(data: Path) -> Endpoint | None:
    """Return the endpoint of the emulator that serves a data folder, `None` without one that answers.

    Raises EmulatorFailed if it rejects this user, or listens on an address that is not allowed.
    """
    file = data / "endpoint.json"
    try:
        if not (file.exists() and _is_lock_held(data / "lock")):
            return None
        text = file.read_text()
        fields = json.loads(text)
        url, version, token_file = str(fields["url"]), str(fields["version"]), fields.get("token_file")
        token = Path(token_file).read_text().strip() if token_file else ""
        _raise_unless_address_is_allowed(url)
        is_emulator = _fetch_version_or_none_if_no_emulator(url, token) == version
        # A starting emulator holds the lock for a moment before it removes what another one left.
        return Endpoint.for_server(url, token) if is_emulator and file.read_text() == text else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, http.client.HTTPException):
        return None


def _is_lock_held(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that two probes do not meet
        except BlockingIOError:
            return True
    return False


def _raise_unless_address_is_allowed(url: str) -> None:
    host = urlsplit(url).hostname
    if host and not _is_loopback(host) and not os.environ.get(REMOTE_VARIABLE):
        raise EmulatorFailed(
            f"the emulator listens on {url}, which other machines reach: serve it on 127.0.0.1, or set "
            f"{REMOTE_VARIABLE}=1 to use it anyway"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _fetch_version_or_none_if_no_emulator(url: str, token: str) -> str | None:
    """Return the version in the marker of a server's answer, `None` if it is no emulator. Raises EmulatorFailed."""
    request = urllib.request.Request(f"{url}/healthz")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with DIRECT_OPENER.open(request, timeout=_ANSWER_SECONDS) as reply:
            return _get_version_header_or_none(reply)
    except urllib.error.HTTPError as error:
        with error:
            if _get_version_header_or_none(error) is None:
                return None
            message = json.loads(error.read(MAX_ANSWER_BYTES))["error"]["message"]
        raise EmulatorFailed(f"the emulator at {url} refuses: {message}") from error


def _get_version_header_or_none(reply: Any) -> str | None:
    value = reply.headers.get(MARKER_HEADER)
    return None if value is None else str(value)
