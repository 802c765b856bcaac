"""Secret Manager's `versions:access`: values from a file of the data folder, for this user and for containers."""

import base64
import hashlib
import hmac
import json
import logging
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_emulator import names
from vertex_emulator.database import Database
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError
from vertex_emulator.http.connection import HttpServer, Limits, Listener
from vertex_emulator.http.responses import error_response
from vertex_emulator.replicas.executor import Executor

_ONLY_VERSION = "1"
_LATEST = "latest"
_ADDRESS_VARIABLE, _KEY_VARIABLE = "SECRET_MANAGER_API_ENDPOINT", "SECRET_MANAGER_API_KEY"
_SETTING = "secret_manager_address"
_NO_KEY = "Send the text of SECRET_MANAGER_API_KEY as the header X-Goog-Api-Key (an API key of Google's clients)."
_PORTS, _TRIES = range(20_000, 32_768), 20
"""Below those of outgoing connections, one of which could take the port while no emulator runs (ip(7))."""
_LIMITS = Limits(connections=512, unknown=256, idle_seconds=60.0)
_log = logging.getLogger("vertex_emulator.secrets")


@dataclass(frozen=True)
class SecretValues:
    """The secrets in a file that only its owner may read: `{PROJECT: {SECRET: VALUE}}`, which a stack writes.

    Every secret has one version, 1, which is also `latest`. The file is read for each request, so an edit needs no
    restart.
    """

    file: Path

    def exist_for(self, project_number: str) -> bool:
        """Return whether a project has secrets."""
        return bool(self._read(project_number))

    def access(self, project: str, secret: str, version: str) -> dict[str, Any]:
        """Return a version's payload by the id or number of its project. Raises ApiError NOT_FOUND."""
        number = names.project_number(project)
        name = f"projects/{number}/secrets/{secret}"
        value = self._read(number).get(secret)
        # The service's own words.
        if value is None:
            raise ApiError("NOT_FOUND", f"Secret [{name}] not found or has no versions.")
        if version not in (_LATEST, _ONLY_VERSION):
            raise ApiError("NOT_FOUND", f"Secret Version [{name}/versions/{version}] not found.")
        from google_crc32c import value as crc32c

        data = value.encode()
        payload = {"data": base64.b64encode(data).decode(), "dataCrc32c": str(crc32c(data))}
        return {"name": f"{name}/versions/{_ONLY_VERSION}", "payload": payload}

    def _read(self, project_number: str) -> dict[str, str]:
        try:
            projects = json.loads(self.file.read_text())
        except FileNotFoundError:
            return {}
        return {
            secret: value
            for project, values in projects.items()
            if names.project_number(project) == project_number
            for secret, value in values.items()
        }


@dataclass
class SecretServer:
    """Serves `values` on an address that containers reach, from the first job on whose project has secrets.

    Containers reach nothing else of this machine, and each sees the secrets of its project: it needs the key of that,
    which is derived from `token`, so it stays the same after a restart. `files` is how many the process may open.

    A container is trusted with its key, not with the emulator: none of its connections counts as known.
    """

    database: Database
    executor: Executor
    values: SecretValues
    token: str
    files: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _address: tuple[str, int] | None = None
    _running: tuple[HttpServer, threading.Thread, Listener] | None = None

    def variables(self, job: Job) -> dict[str, str]:
        """Serve, and return the variables by which a job's containers find their secrets; none without secrets.

        Raises ExecutorUnavailable.
        """
        number = job.location.project_number
        if not self.values.exist_for(number):
            return {}
        with self._lock:
            self._address = self._address or self._serve(self.executor.gateway())
            if self._address is None:
                return {}
        host, port = self._address
        self.executor.open_port(host, port)
        return {_ADDRESS_VARIABLE: f"http://{host}:{port}", _KEY_VARIABLE: self._key(number)}

    def resume(self) -> None:
        """Serve where an earlier process did: its containers know that address. Do nothing if that is impossible."""
        with self.database.read() as transaction:
            address = transaction.settings.get(_SETTING)
        if address and self.values.file.exists():
            with self._lock:
                self._address = self._serve(address.rpartition(":")[0])
                if self._address:
                    self.executor.open_port(*self._address)

    def stop(self, timeout: float) -> None:
        """Close the port, after waiting at most `timeout` seconds for requests."""
        with self._lock:
            if self._running:
                server, thread, listener = self._running
                server.should_exit = True
                thread.join(timeout)
                listener.close()

    def _serve(self, host: str | None) -> tuple[str, int] | None:
        """Serve in a thread, at best on the stored port; store and return the address. None if no port is free."""
        if host is None:
            return None
        with self.database.read() as transaction:
            known_host, _, known_port = (transaction.settings.get(_SETTING) or "").rpartition(":")
        known_ports = [int(known_port)] if known_host == host else []
        for port in (*known_ports, *random.sample(_PORTS, _TRIES)):
            try:
                listener = Listener.open(host, port)
            except OSError as error:
                reason = error.strerror
                if port in known_ports:
                    _log.warning("containers that run already find no secrets on %s:%s: %s", host, port, reason)
                continue
            with self.database.write() as transaction:
                transaction.settings.set(_SETTING, f"{host}:{port}")
            self._start(listener)
            return host, port
        _log.warning("secrets are not served on %s: %s", host, reason)
        return None

    def _start(self, listener: Listener) -> None:
        path = "/v1/projects/{project}/secrets/{secret}/versions/{version}:access"
        server = HttpServer(Starlette(routes=[Route(path, self._answer)]), _LIMITS.within(self.files))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True, name="secrets")
        self._running = server, thread, listener
        thread.start()

    async def _answer(self, request: Request) -> Response:
        """Return a version's payload to whoever has its project's key; in the loop, so that requests do not queue."""
        key = request.headers.get("x-goog-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        project, secret, version = (request.path_params[name] for name in ("project", "secret", "version"))
        try:
            if not hmac.compare_digest(key.encode(), self._key(names.project_number(project)).encode()):
                name = f"projects/{project}/secrets/{secret}/versions/{version}"
                message = (
                    f"Permission 'secretmanager.versions.access' denied for resource '{name}' (or it may not exist)."
                )
                raise ApiError("PERMISSION_DENIED" if key else "UNAUTHENTICATED", message if key else _NO_KEY)
            return JSONResponse(self.values.access(project, secret, version))
        except ApiError as error:
            return error_response(error)

    def _key(self, project_number: str) -> str:
        return hmac.new(self.token.encode(), f"secrets of {project_number}".encode(), hashlib.sha256).hexdigest()
