"""The real identities of jobs: who acts at Google, what goes there, and the calls that are passed on.

A container has the emulator's token alone. The door puts a real one in its place in a call that it passes on; that one
is in the memory of this process, and in no file, log or answer.
"""

import asyncio
import base64
import os
import re
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, unquote_to_bytes, urlsplit
from urllib.request import getproxies, proxy_bypass

from vertex_api import emulator
from vertex_api.acting import Acting
from vertex_api.errors import PermissionDenied, VertexError
from vertex_emulator import names
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError
from vertex_emulator.inside.buckets import BucketCall
from vertex_emulator.inside.standins import StandIn

_HOST = re.compile(r"[a-z0-9-]+\.googleapis\.com")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_READS = ("GET", "HEAD")
_ISSUERS = frozenset(f"{each}.googleapis.com" for each in ("apikeys", "iam", "iamcredentials", "oauth2", "sts"))
"""Services whose answers are tokens and keys, which would outlive the job."""
_GRANT = "setIamPolicy"
_METHOD_OVERRIDES = (b"x-http-method-override", b"x-http-method", b"x-method-override")
_METHOD = b"$httpmethod"
_MAX_PROXY_ANSWER = 64 << 10


@dataclass(frozen=True)
class Identity:
    """Who the jobs of a project are at Google: `kind` says whether `account` acts, or who is logged in here.

    They may write to the buckets of `write`. Those of `real` are Google's, whatever is here under their names.
    """

    kind: Literal["account", "user"]
    account: str = ""
    write: frozenset[str] = frozenset()
    real: frozenset[str] = frozenset()

    def account_of(self, job: Job) -> str:
        """Return the account that a job acts as, "" for who is logged in here. Raises ApiError."""
        if self.kind == "user":
            return ""
        account = str(job.spec["jobSpec"].get("serviceAccount") or self.account)
        if not account:
            message = "The job has no serviceAccount that it could act as (`vertex-training docs google`)."
            raise ApiError("PERMISSION_DENIED", message)
        return account


@dataclass(frozen=True)
class Identities:
    """The identities in a file, which a stack or a run writes, and their tokens. It is read for each request."""

    file: Path
    _acting: dict[str, Acting] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, project_number: str) -> Identity | None:
        """Return the identity of a project's jobs, None if they have the emulator's alone.

        One that names a lock ends with the process that holds it. A file of another folder, as a branch or a copy may
        bring it, counts for nothing.
        """
        try:
            folder = self.file.parent
            for entry in names.values_of(self.file, project_number):
                if entry["folder"] == folder.stat().st_ino:
                    lock = Path(entry.get("while", "")).name
                    if lock and not emulator.is_locked(folder / lock):
                        return None
                    lists = (frozenset(entry.get(key, ())) for key in ("write", "real"))
                    return Identity(entry["as"], entry.get("account", ""), *lists)
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            return None
        return None

    def headers(self, account: str) -> list[tuple[bytes, bytes]]:
        """Return what a call has as an account. Raises ApiError."""
        try:
            found = self._of(account).headers()
        except VertexError as error:
            status = "UNAUTHENTICATED" if isinstance(error, PermissionDenied) else "UNAVAILABLE"
            raise ApiError(status, f"{error} (`vertex-training docs google`).") from error
        return [(name.encode(), value.encode("latin-1")) for name, value in found.items()]

    def _of(self, account: str) -> Acting:
        with self._lock:
            return self._acting.setdefault(account, Acting(account))

    def google(self, host: str, account: str) -> "Google":
        """Return what answers for a host of Google's, as an account. Raises ApiError."""
        return Google(host, f"https://{host}", tuple(self.headers(account)), self._of(account).forget)


@dataclass(frozen=True)
class Google(StandIn):
    """The ASGI application that answers by Google itself, through the proxy that the environment names."""

    def _unanswered(self, error: Exception) -> ApiError:
        return ApiError("UNAVAILABLE", f"{self.host} fails: {self._reason(error)} (`vertex-training docs google`).")

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        trusted = os.environ.get("REQUESTS_CA_BUNDLE") or None
        context = ssl.create_default_context(cafile=trusted if trusted and Path(trusted).is_file() else None)
        proxy = None if proxy_bypass(self.host) else getproxies().get("https")
        if not proxy:
            return await asyncio.open_connection(self.host, 443, ssl=context)
        url = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        reader, writer = await asyncio.open_connection(url.hostname, url.port or 3128)
        try:
            await self._tunnel(reader, writer, url.username, url.password)
            await writer.start_tls(context, server_hostname=self.host)
        except BaseException:
            writer.transport.abort()
            raise
        return reader, writer

    async def _tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str | None, password: str | None
    ) -> None:
        head = f"CONNECT {self.host}:443 HTTP/1.1\r\nHost: {self.host}:443\r\n"
        if user is not None:
            pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password or "")
            head += f"Proxy-Authorization: Basic {base64.b64encode(pair).decode()}\r\n"
        writer.write(f"{head}\r\n".encode())
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise ConnectionError("the proxy of the environment does not answer") from error
        status = answer[:_MAX_PROXY_ANSWER].split(b"\r\n", 1)[0].decode("latin-1").split()
        if status[1:2] != ["200"]:
            raise ConnectionError(f"the proxy of the environment refuses ({' '.join(status[1:4])})")


def require_passable(host: str, path: bytes, query: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    """Raise ApiError for a call that is not passed on, whoever acts.

    Those are calls for tokens and keys, for grants, and such whose method or path is another one for Google.
    """
    if not _HOST.fullmatch(host):
        raise ApiError("NOT_FOUND", f"{host} is no host of a service of Google's.")
    decoded = unquote(path.decode("latin-1"))
    if host in _ISSUERS or _GRANT in decoded:
        what = "changes who may do what" if _GRANT in decoded else "gives out credentials, which would outlive the job"
        message = f"{host} is not passed on: the call {what} (`vertex-training docs security`)."
        raise ApiError("PERMISSION_DENIED", message)
    overrides = [name for name, _ in headers if name in _METHOD_OVERRIDES]
    parts = [unquote(part) for part in path.decode("latin-1").split("/")]
    is_plain = parts[0] == "" and "" not in parts[1:-1] and not {".", ".."} & {*decoded.split("/")}
    if overrides or _METHOD in unquote_to_bytes(query).lower() or not is_plain:
        message = "A path with an empty part, . or .., or with another method than the request's, is not passed on."
        raise ApiError("INVALID_ARGUMENT", message)


def is_of_google(identity: Identity, method: str, raw_path: bytes, is_here: Callable[[str], bool]) -> bool:
    """Return whether a call of Cloud Storage's JSON API goes to Google: its bucket is there, and it may go there.

    Reads may. Writes stay at home, which has no such bucket, but for those to buckets of `identity.write`. Raises
    ApiError.
    """
    call = BucketCall.parse(method, raw_path)
    if call is None or not call.bucket:
        return False
    is_source_real, is_target_real = (is_real(identity, each, is_here) for each in (call.bucket, call.to))
    if not is_source_real and not is_target_real:
        return False
    if method in _READS:
        return True
    target, rest = call.to, call.rest
    if is_source_real != is_target_real:
        message = f"Nothing is copied between home and Google: download gs://{call.bucket}, upload to gs://{target}."
        raise ApiError("FAILED_PRECONDITION", f"{message} (`vertex-training docs google`).")
    is_object = rest[:1] == ("o",) and rest[2:3] not in (("acl",), ("iam",))
    if target in identity.write and is_object:
        return True
    if target in identity.write:
        raise ApiError("PERMISSION_DENIED", f"Of gs://{target}, objects are written alone, and no settings or grants.")
    message = f"Writes stay at home, and gs://{target} is Google's: --write gs://{target} lets them through"
    raise ApiError("PERMISSION_DENIED", f"{message} (`vertex-training docs google`).")


def is_real(identity: Identity, bucket: str, is_here: Callable[[str], bool]) -> bool:
    """Return whether a bucket is one of Google's."""
    return bool(_BUCKET.fullmatch(bucket)) and (bucket in identity.real or not is_here(bucket))
