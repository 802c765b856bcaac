"""The one address of this machine that containers reach: the metadata server, and Google's services for a job's token.

A container is known by its address, which the kernel tells and no container can change; a token names its job, and
counts for the containers of that job as long as it runs. So a token that leaks is worth nothing to anybody else.
"""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import random
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from vertex_emulator import names
from vertex_emulator.clients import endpoints, with_whole_path
from vertex_emulator.database import Database
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError, ExecutorUnavailable, ReplicaCannotStart
from vertex_emulator.gcs.files import is_bucket
from vertex_emulator.gcs.objects import invalid_bucket
from vertex_emulator.http.connection import MEMORY, HttpServer, Limits, Listener, Relay
from vertex_emulator.http.permissions import CHECK, Check
from vertex_emulator.http.responses import error_response
from vertex_emulator.http.security import bearer
from vertex_emulator.inside import authority, buckets, identity, metadata, permissions, services
from vertex_emulator.inside.authority import Authority
from vertex_emulator.inside.buckets import BucketCall
from vertex_emulator.inside.entries import EntryWriter
from vertex_emulator.inside.identity import Identities, Identity
from vertex_emulator.inside.metadata import Caller
from vertex_emulator.inside.permissions import Permissions
from vertex_emulator.inside.standins import StandIn, StandIns
from vertex_emulator.inside.stored import WRITES, Stored
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.replicas.firewall import HOME
from vertex_emulator.replicas.mounts import Mount
from vertex_emulator.replicas.spec import Home
from vertex_emulator.rpc.relay import HEADER, Translator
from vertex_emulator.secrets import SecretValues

_SETTING = "door"
_NO_CALLER = (
    "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid "
    "authentication credential."
)
_BAD_TOKEN = _NO_CALLER.replace(
    "is missing required authentication credential", "had invalid authentication credentials"
)
_PORTS, _TRIES = range(20_000, 32_768), 20
"""Below those of outgoing connections, one of which could take the port while no emulator runs (ip(7))."""
_LIMITS = Limits(connections=512, unknown=256, idle_seconds=60.0)
_SERVED = re.compile(
    r"/(?:v1|v1beta1|ui)/projects/(?P<project>[^/:]+(?::[^/]+)?)/.*"
    r"|/(?:storage|upload|resumable/upload|download|batch/storage)(?:/.*)?"
)
"""The paths of the emulator's application that jobs may use. Its own methods and its page are not among them."""
_SECRET = re.compile(r"/v1/projects/([^/:]+)/secrets/([^/:]+)/versions/([^/:]+):access")
_PROJECT = re.compile(r"/v3/projects/([^/:]+)")
_OBJECT = re.compile(r"/([a-z0-9][a-z0-9._-]+)/(.+)")
"""An object by Cloud Storage's XML API, "Path-style requests"."""
_NOT_LED = (
    "Google's clients that read no variable for their address (gRPC, TensorFlow's gs://, the SDK) find no service "
    "here: {} (`vertex-training docs google`)."
)
_NOR_STAND_INS = "For the same reason, no call reaches what emulator.endpoints names."
_NO_DOOR = (
    "Google's libraries find neither an identity nor a service here: containers may reach no address of this machine "
    "(`vertex-training docs google`)."
)
_NOT_ACTING = (
    "--as cannot work here, because no name of Google's leads containers to the emulator: {} "
    "(`vertex-training docs google`)."
)
_CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
_PUBLIC = "commondatastorage.googleapis.com"
_NAME_SECONDS = 5.0
_TOKEN_PREFIX = "ya29.emulated"
_log = logging.getLogger("vertex_emulator.inside")


@dataclass
class Door:
    """Serves what jobs find of Google on an address that containers reach; they reach nothing else of this machine.

    `app` is the emulator's application, `buckets` its folder of buckets; `values` are its secrets, `stand_ins` the
    user's, `identities` those that jobs have at Google, and `permissions` notes what calls need. Keys and tokens are
    derived from `secret`, so they stay the same after a restart. `files` is how many the process may open.

    A container is trusted with its job, not with the emulator: none of its connections counts as known.
    """

    database: Database
    executor: Executor
    values: SecretValues
    stand_ins: StandIns
    identities: Identities
    entries: EntryWriter
    secret: str
    files: int
    app: ASGIApp
    buckets: Path
    authority: Authority
    translator: Translator
    permissions: Permissions
    _stored: Stored = field(default_factory=Stored)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _address: tuple[str, int, int] | None = None
    _running: list[tuple[HttpServer, threading.Thread, Listener]] = field(default_factory=list)

    def home(self, job: Job) -> Home:
        """Serve, and return how a job's containers find the door; nothing where there can be none.

        A job that brings credentials of its own goes to Google with them. Raises ExecutorUnavailable, StartError, and
        ReplicaCannotStart for a job that is to act as somebody at Google where that cannot be.
        """
        if any(_brings_credentials(pool) for pool in job.spec["jobSpec"]["workerPoolSpecs"]):
            return Home()
        acting = self.identities.of(job.location.project_number)
        with self._lock:
            self._address = self._address or self._serve(self.executor.gateway())
            if self._address is None:
                if acting:
                    raise ReplicaCannotStart(_NOT_ACTING.format("they may reach no address of this machine"))
                return Home(note=_NO_DOOR)
        host, port, tls_port = self._address
        secrets = self.values.exist_for(job.location.project_number)
        variables = _variables(f"{host}:{port}", self._key(job.location.project) if secrets else "")
        self.executor.lead_home(host, {80: port, 443: tls_port})
        obstacle = self.executor.set_rules()
        stand_ins = self.stand_ins.of(job.location.project_number)
        if obstacle is not None:
            if acting:
                raise ReplicaCannotStart(_NOT_ACTING.format(obstacle))
            note = _NOT_LED.format(obstacle)
            return Home(variables, note=f"{note} {_NOR_STAND_INS}" if stand_ins else note)
        trusted = dict.fromkeys(authority.VARIABLES, authority.BUNDLE)
        files = {authority.BUNDLE: self.authority.bundle(), authority.STORE: self.authority.store()}
        mounts = [Mount(str(file), target, read_only=True) for target, file in files.items()]
        project = job.location.project if acting else ""
        hosts = dict.fromkeys([*services.NAMES, *stand_ins], HOME)
        return Home({**variables, **trusted}, hosts, mounts, project=project, leading=authority.LEADING)

    def resume(self) -> None:
        """Serve where an earlier process did: its containers know that address. Do nothing if that is impossible."""
        with self.database.read() as transaction:
            address = transaction.settings.get(_SETTING)
        if address:
            with self._lock:
                self._address = self._serve(address.partition(":")[0])
                if self._address:
                    host, port, tls_port = self._address
                    self.executor.lead_home(host, {80: port, 443: tls_port})

    def stop(self, timeout: float) -> None:
        """Close the ports, after waiting at most `timeout` seconds for requests."""
        with self._lock:
            for server, _, _ in self._running:
                server.should_exit = True
            for _, thread, listener in self._running:
                thread.join(timeout)
                listener.close()

    async def relay(self, client: asyncio.Transport, first: bytes, _state: Mapping[str, Any]) -> Relay:
        """Hand a connection of gRPC on; its calls come back as requests of the container. Raises OSError."""
        try:
            caller = await to_thread.run_sync(self._look_up, client.get_extra_info("peername")[0])
        except ExecutorUnavailable as error:
            raise ConnectionError(str(error)) from error
        if caller is None:
            raise PermissionError("only containers of this emulator's jobs may call")
        return await self.translator.relay(client, first, caller, f"job {caller.job.id}", is_checked=True)

    def token(self, job: Job) -> str:
        """Return the access token of a job."""
        return f"{_TOKEN_PREFIX}.{job.id}.{self._derived(f'token of {job.id}')}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a container: the ASGI application."""
        scope = with_whole_path(scope)
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except ApiError as error:
            answer = error_response(error)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        """Return what answers a request, the emulator's application among it. Raises ApiError."""
        path = str(request.scope["path"])  # that of `request.url` has ? and # quoted
        if service := services.missing(request.headers.get("host", "")):
            return await self._stand_in(request, service)
        token = bearer(request)
        key = request.headers.get("x-goog-api-key") or ("" if token.startswith(_TOKEN_PREFIX) else token)
        needed = permissions.of_call(request.method, path)
        if key and (secret := _SECRET.fullmatch(path)):
            with contextlib.suppress(ExecutorUnavailable):  # the key needs no identity
                reader = await to_thread.run_sync(self._look_up, request.client.host if request.client else "")
                if needed and reader:
                    self.permissions.require(reader.job, *needed)
            return JSONResponse(self._secret(key, *secret.groups()))
        caller = await self._caller(request)
        if path == "/" or path.startswith("/computeMetadata"):
            if caller is None:
                raise ApiError("PERMISSION_DENIED", "Only containers of this emulator's jobs have a metadata server.")
            return metadata.answer(request, caller, self.token)

        job = self._job(request, caller)
        acting = self.identities.of(job.location.project_number)
        raw_path = request.scope["raw_path"]
        if acting and identity.is_of_google(acting, request.method, raw_path, self._has_bucket):
            return await self._google(request, acting, job, buckets.HOST)
        if request.method == "GET" and (asked := _PROJECT.fullmatch(path)):
            return self._project(job, asked[1])
        if path == "/v2/entries:write" and request.method == "POST":
            self.permissions.require(job, permissions.WRITE_ENTRIES, permissions.PROJECT)
            return await self.entries.answer(request, job)
        served, check = _SERVED.fullmatch(path), partial(self.permissions.require, job)
        if served is None:
            if request.method in ("GET", "HEAD") and (found := _OBJECT.fullmatch(path)):
                if acting and identity.is_real(acting, found[1], self._has_bucket):
                    return await self._google(request, acting, job, buckets.HOST)
                if self._has_bucket(found[1]) or "authorization" in request.headers:
                    return _checked(_at(self.app, f"/download/storage/v1/b/{found[1]}/o/{found[2]}"), check)
                return await _public(path, found[1])
            raise ApiError("NOT_FOUND", f"The requested URL {path} was not found for jobs of this emulator.")
        call = BucketCall.parse(request.method, raw_path) if request.method == "POST" else None
        if call and (call.verb or call.place == "upload"):
            self._require_bucket(call.to)
        project = served["project"]
        if project is not None and names.project_number(project) != job.location.project_number:
            place = path.partition("/projects/")[2].partition(":")[0]
            raise ApiError(
                "PERMISSION_DENIED", f"Permission denied on resource 'projects/{place}' (or it may not exist)."
            )
        if needed:
            check(*needed)
        if project is None or request.method not in WRITES:
            return _checked(self.app, check)
        self._stored.take(job.id)
        return _checked(self._stored.counted(self.app, job.id), check)

    def _has_bucket(self, name: str) -> bool:
        return (self.buckets / name).is_dir()

    def _require_bucket(self, name: str) -> None:
        """Raise ApiError for a bucket that does not exist. Programs outside may make one by its first object."""
        if not is_bucket(name):
            raise invalid_bucket(name)
        if not self._has_bucket(name):
            raise ApiError("NOT_FOUND", f"The specified bucket does not exist: {name}.")

    async def _stand_in(self, request: Request, service: str) -> ASGIApp:
        """Return what answers for a service that the emulator does not have. Raises ApiError."""
        job = self._job(request, await self._caller(request))
        urls = self.stand_ins.of(job.location.project_number)
        if service in urls:
            self._need_passed(request, job, service)
            return StandIn(service, urls[service])
        if acting := self.identities.of(job.location.project_number):
            return await self._google(request, acting, job, service)
        asked = _PROJECT.fullmatch(request.scope["path"]) if request.method == "GET" else None
        if service == services.RESOURCE_MANAGER and asked:
            return self._project(job, asked[1])
        raise services.refusal(service, urls)

    def _project(self, job: Job, name: str) -> JSONResponse:
        """Return a job's own project, whose id Google's SDK looks up in an experiment. Raises ApiError."""
        place = f"//{services.RESOURCE_MANAGER}/projects/{name}"
        if names.project_number(name) != job.location.project_number:
            raise permissions.denied(permissions.GET_PROJECT, place)
        self.permissions.require(job, permissions.GET_PROJECT, permissions.PROJECT, place)
        own = job.location
        return JSONResponse(
            {"name": f"projects/{own.project_number}", "projectId": own.project, "displayName": own.project}
        )

    def _need_passed(self, request: Request, job: Job, host: str) -> None:
        """Note what a call needs that is passed on. Raises ApiError if nothing grants it and grants are enforced."""
        place = job.location
        for needed in permissions.of_passed(host, request.method, request.scope["raw_path"], place.project_number):
            self.permissions.require(job, *needed, place.project)

    async def _google(self, request: Request, acting: Identity, job: Job, host: str) -> ASGIApp:
        """Return what answers for a service by Google itself, as whom a job acts as. Raises ApiError."""
        scope = request.scope
        identity.require_passable(host, scope["raw_path"], scope["query_string"], scope["headers"])
        account = acting.account_of(job)
        self._need_passed(request, job, host)
        return await to_thread.run_sync(self.identities.google, host, account)

    async def _caller(self, request: Request) -> Caller | None:
        """Return who is at the other end, once for all requests of a connection: until it ends, it is the same."""
        memory = request.scope["state"][MEMORY]
        if "caller" not in memory:
            address = request.client.host if request.client else ""
            try:
                memory["caller"] = await to_thread.run_sync(self._look_up, address)
            except ExecutorUnavailable as error:
                raise ApiError("UNAVAILABLE", str(error)) from error
        found: Caller | None = memory["caller"]
        return found

    def _look_up(self, address: str) -> Caller | None:
        found = self.executor.replica_at(address)
        if found is None:
            return None
        job_id, replica = found
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
        if job is None:
            return None
        acting = self.identities.of(job.location.project_number)
        return Caller(job, replica, acting.account if acting else "")

    def _job(self, request: Request, caller: Caller | None) -> Job:
        """Return the job that sends a request; clients of emulators send no token. Raises ApiError."""
        token = bearer(request)
        if caller is None:
            raise ApiError("UNAUTHENTICATED", _BAD_TOKEN if token else _NO_CALLER)
        with self.database.read() as transaction:
            job = transaction.jobs.get(caller.job.id)
        is_own = not token or hmac.compare_digest(token.encode(), self.token(caller.job).encode())
        if job is None or job.is_terminal or not is_own:
            raise ApiError("UNAUTHENTICATED", _BAD_TOKEN)
        return job

    def _serve(self, host: str | None) -> tuple[str, int, int] | None:
        """Serve in threads, at best on the stored ports; store and return address and ports. None if none are free."""
        if host is None:
            return None
        with self.database.read() as transaction:
            known_host, *known = (transaction.settings.get(_SETTING) or "").split(":")
        ports = [int(port) for port in known] if known_host == host else []
        plain, encrypted = self._listen(host, ports[:1]), self._listen(host, ports[1:])
        if plain is None or encrypted is None:
            for listener in filter(None, (plain, encrypted)):
                listener.close()
            return None
        address = host, plain.getsockname()[1], encrypted.getsockname()[1]
        with self.database.write() as transaction:
            transaction.settings.set(_SETTING, ":".join(map(str, address)))
        self._start(plain)
        self._start(encrypted, ssl_context_factory=lambda *_: self.authority.context())
        return address

    def _listen(self, host: str, known_ports: list[int]) -> Listener | None:
        for port in (*known_ports, *random.sample(_PORTS, _TRIES)):
            try:
                return Listener.open(host, port)
            except OSError as error:
                reason = error.strerror
                if port in known_ports:
                    _log.warning("containers that run already find nothing on %s:%s: %s", host, port, reason)
        _log.warning("jobs find none of Google's services on %s: %s", host, reason)
        return None

    def _start(self, listener: Listener, **options: Any) -> None:
        server = HttpServer(self, _LIMITS.within(self.files), self.relay, takes_identity=True, **options)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True, name="inside")
        self._running.append((server, thread, listener))
        thread.start()

    def _secret(self, key: str, project: str, secret: str, version: str) -> dict[str, Any]:
        """Return a version's payload to whoever has its project's key, which needs no identity. Raises ApiError."""
        if not hmac.compare_digest(key.encode(), self._key(project).encode()):
            name = f"projects/{project}/secrets/{secret}/versions/{version}"
            message = f"Permission 'secretmanager.versions.access' denied for resource '{name}' (or it may not exist)."
            raise ApiError("PERMISSION_DENIED", message)
        return self.values.access(project, secret, version)

    def _key(self, project: str) -> str:
        return self._derived(f"secrets of {names.project_number(project)}")

    def _derived(self, text: str) -> str:
        return hmac.new(self.secret.encode(), text.encode(), hashlib.sha256).hexdigest()


async def _public(path: str, bucket: str) -> ASGIApp:
    """Return what leads to a file that is public, such as a dataset of Keras, by another name of Cloud Storage's.

    Raises ApiError without the internet: the client's own error would name a host that its code does not.
    """
    try:
        async with asyncio.timeout(_NAME_SECONDS):
            await asyncio.get_running_loop().getaddrinfo(_PUBLIC, 443)
    except OSError as error:  # a TimeoutError, too
        reason = error.strerror or "no name server answers"
        message = (
            f"The specified bucket does not exist: {bucket}. If it is public, the file is fetched from {_PUBLIC}, "
            f"which this machine does not find ({reason})."
        )
        raise ApiError("NOT_FOUND", message) from error
    return RedirectResponse(f"https://{_PUBLIC}{quote(path)}")


@dataclass(frozen=True)
class Returning:
    """The ASGI application of the emulator's own port: requests that stand for calls of gRPC are their callers'.

    Those of containers are the `door`'s; all others are for `app`.
    """

    translator: Translator
    door: Door
    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        header = Headers(scope=scope).get(HEADER) if scope["type"] == "http" else None
        if header is None:
            await self.app(scope, receive, send)
            return
        caller = self.translator.caller(header)
        if caller is None:
            error = ApiError("PERMISSION_DENIED", f"The header {HEADER} is for the emulator's own use.")
            await error_response(error)(scope, receive, send)
        elif isinstance(caller, Caller):
            state = {**scope["state"], MEMORY: {"caller": caller}}
            await self.door({**scope, "state": state}, receive, send)
        else:
            await self.app({**scope, "state": {**scope["state"], **caller}}, receive, send)


def _variables(address: str, key: str) -> dict[str, str]:
    """Return the variables that Google's libraries read, by their documentation and code; `key` "" if it has none."""
    url = f"http://{address}"
    found = {
        # Metadata: Python, Go, Java and Node; then gcloud and C++.
        "GCE_METADATA_HOST": address,
        "GCE_METADATA_IP": address,
        "GCE_METADATA_ROOT": address,
        # Storage: C++, and so pyarrow.
        "CLOUD_STORAGE_EMULATOR_ENDPOINT": url,
        **endpoints(url),
    }
    if key:
        found |= {
            "SECRET_MANAGER_API_ENDPOINT": url,
            "SECRET_MANAGER_API_KEY": key,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"{url}/",
        }
    return found


def _at(app: ASGIApp, path: str) -> ASGIApp:
    """Return an application that answers for another path."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "path": path, "raw_path": quote(path).encode()}, receive, send)

    return answer


def _checked(app: ASGIApp, check: Check) -> ASGIApp:
    """Return an application whose methods tell `check` what permissions a request needs."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": {**scope["state"], CHECK: check}}, receive, send)

    return answer


def _brings_credentials(pool: Mapping[str, Any]) -> bool:
    program = pool.get("containerSpec") or pool.get("pythonPackageSpec") or {}
    return any(variable["name"] == _CREDENTIALS for variable in program.get("env", []))
