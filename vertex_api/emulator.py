"""An emulator as other processes see it: the files of its data folder, where it listens, and requests to it."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from vertex_api import locks

LOCK = "lock"
"""The file that the one process that serves a data folder has locked."""
ENDPOINT = "endpoint.json"
"""The file with the address of that process."""
SECRETS = "secrets.json"
"""The file of a stack's secrets: `{PROJECT: {SECRET: VALUE}}`."""
STAND_INS = "endpoints.json"
"""The file of stand-ins for services that an emulator does not have: `{PROJECT: {HOST: URL}}`."""
IDENTITIES = "identity.json"
"""The file of whom jobs act as at Google: `{PROJECT: {"as": "account", "account": E-MAIL, …}}`, without any secret."""
GRANTS = "grants.json"
"""The file that says what jobs may do: `{PROJECT: {account: EMAIL, enforce: BOOL, rules: [RULE]}}`.

A RULE grants `permissions`, which may end with `*`, on the resources `at`, and on those whose names begin with one of
`below` and with none of `but`. Resources are `gs://BUCKET`, `gs://BUCKET/OBJECT`, `secrets/NAME` and `project`.
"""
FETCHED = "fetched"
"""The folder of objects that runs have fetched from Google."""
DECLARATIONS = "declarations.json"
"""The file that says where the jobs of stacks are declared, by stack."""
VERSION_HEADER = "x-vertex-emulator"
"""The header of every answer of an emulator, with its version."""
SERVICES = ("aiplatform", "logging", "secretmanager", "storage", "www")
"""The services that an emulator has, by their hosts below googleapis.com; Vertex AI's may have a region before them."""
MAX_ANSWER_BYTES = 64 << 20


@dataclass(frozen=True)
class Address:
    """Where an emulator listens, and which process it is.

    `token_file` is the file with the token that requests need, None where the kernel identifies the user.
    """

    pid: int
    host: str
    port: int
    url: str
    version: str
    token_file: str | None = None

    @classmethod
    def read(cls, root: Path) -> "Address | None":
        """Return the address of the emulator that serves a data folder, None without one that is ready.

        The file alone proves nothing: an emulator that is killed leaves it behind, and anybody can listen on its port.
        Raises OSError if the lock cannot be probed.
        """
        if not is_served(root):
            return None
        try:
            found = json.loads((root / ENDPOINT).read_text())
            return cls(**{each.name: found[each.name] for each in fields(cls) if each.name in found})
        except (OSError, ValueError, TypeError):  # it is just starting or stopping
            return None

    def write(self, root: Path) -> None:
        """Write the file that `read` reads, at once as a whole. Raises OSError."""
        file = root / ENDPOINT
        partial = file.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(asdict(self)) + "\n")
            partial.replace(file)
        except OSError:
            partial.unlink(missing_ok=True)
            raise

    def token(self) -> str:
        """Return the token that requests need, "" if they need none. Raises OSError."""
        return Path(self.token_file).read_text().strip() if self.token_file else ""


def is_served(root: Path) -> bool:
    """Return whether an emulator serves a data folder, one that is as an emulator leaves it.

    It is for its owner only, and has no links: a branch may bring an endpoint, which would get a token of any file, and
    a lock that another user can hold. Raises OSError if the lock cannot be probed.
    """
    try:
        is_open = root.stat().st_mode & 0o077
    except OSError:
        return False
    return not is_open and not any((root / name).is_symlink() for name in (ENDPOINT, LOCK)) and is_locked(root / LOCK)


def is_locked(lock: Path) -> bool:
    """Return whether an emulator holds the lock of its data folder. Raises OSError if it cannot be probed."""
    try:
        with lock.open() as file:
            return not locks.try_take(file, shared=True)  # so that two probes do not meet
    except FileNotFoundError:
        return False


@dataclass(frozen=True)
class Answer:
    """An answer of a server: its HTTP status, and its JSON, or the text of a refusal that is none.

    `version` is that of the emulator, None for any other server.
    """

    status: int
    body: Any
    version: str | None

    @property
    def refusal(self) -> str:
        """The message of a google.rpc.Status, or a refusal's text; "" if it is neither."""
        if isinstance(self.body, str):
            return self.body.strip()
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return str(error.get("message", "")) if isinstance(error, dict) else ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the request that would follow has the emulator's token, whatever host it goes to."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)
"""Ignores the proxies that are set for the internet: the emulator is on this machine."""


def ask(
    url: str,
    token: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    method: str | None = None,
    seconds: float = 60,
) -> Answer:
    """Send a GET, or a POST if there is a `body`, and return the answer, whatever its status.

    Raises OSError and http.client.HTTPException without an answer, and ValueError for one that is no JSON and refuses
    nothing.
    """
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, headers, method=method)
    try:
        reply = _OPENER.open(request, timeout=seconds)
    except urllib.error.HTTPError as error:
        reply = error
    with reply:
        content, version = reply.read(MAX_ANSWER_BYTES), reply.headers.get(VERSION_HEADER)
        try:
            return Answer(reply.status, json.loads(content or b"{}"), version)
        except ValueError:
            if reply.status < 300:
                raise
            return Answer(reply.status, content.decode(errors="replace"), version)
