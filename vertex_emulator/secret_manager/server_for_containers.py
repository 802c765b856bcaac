"""The server of secrets for containers, which reach nothing else of this machine: each sees those of its project."""

import hashlib
import hmac
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_emulator.database import Database
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError
from vertex_emulator.http.connection_with_peer_user import KEEP_ALIVE_SECONDS
from vertex_emulator.http.json_responses import build_error_response
from vertex_emulator.names import project_number
from vertex_emulator.replicas.executor_protocol import Executor
from vertex_emulator.secret_manager.secret_values import SecretValues

ADDRESS_VARIABLE, KEY_VARIABLE = "SECRET_MANAGER_API_ENDPOINT", "SECRET_MANAGER_API_KEY"
_SETTING = "secret_manager_address"
_NO_KEY = "Send the text of SECRET_MANAGER_API_KEY as the header X-Goog-Api-Key (an API key of Google's clients)."
_log = logging.getLogger("vertex_emulator.secrets")


@dataclass
class SecretServerForContainers:
    """Serves `values` on an address that containers reach, from the first job on whose project has secrets.

    A container needs the key of its project, which is derived from `token`, so it stays the same after a restart.
    """

    database: Database
    executor: Executor
    values: SecretValues
    token: str
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _address: tuple[str, int] | None = None

    def ensure_serving_and_build_secret_variables(self, job: Job) -> dict[str, str]:
        """Serve, and return the variables by which a job's containers find their secrets; none without secrets.

        Raises ExecutorUnavailable.
        """
        number = job.location.project_number
        if not self.values.has_secrets(number):
            return {}
        with self._lock:
            self._address = self._address or self._serve_and_store_address_or_none(
                self.executor.find_gateway_address_or_none()
            )
            if self._address is None:
                return {}
        host, port = self._address
        self.executor.set_port_to_open_to_containers(host, port)
        return {ADDRESS_VARIABLE: f"http://{host}:{port}", KEY_VARIABLE: self._derive_project_key(number)}

    def start_serving_on_earlier_address_if_any(self) -> None:
        """Serve where an earlier process did: its containers know that address. Do nothing if that is impossible."""
        with self.database.read() as transaction:
            address = transaction.settings.get(_SETTING)
        if address and self.values.file.exists():
            with self._lock:
                self._address = self._serve_and_store_address_or_none(address.rpartition(":")[0])
                if self._address:
                    self.executor.set_port_to_open_to_containers(*self._address)

    def _serve_and_store_address_or_none(self, host: str | None) -> tuple[str, int] | None:
        """Serve in a thread, at best on the stored port; store and return the address. None if no port is free."""
        if host is None:
            return None
        with self.database.read() as transaction:
            known_host, _, known_port = (transaction.settings.get(_SETTING) or "").rpartition(":")
        for port in (int(known_port), 0) if known_host == host else (0,):
            try:
                listener = socket.create_server((host, port))
            except OSError as error:
                _log.warning("secrets are not served on %s, port %s: %s", host, port or "any", error.strerror)
                continue
            address = host, int(listener.getsockname()[1])
            with self.database.write() as transaction:
                transaction.settings.set(_SETTING, f"{host}:{address[1]}")
            _start_thread_serving_secrets(self._access_secret_version_with_key, listener)
            return address
        return None

    def _access_secret_version_with_key(self, project: str, secret: str, version: str, key: str) -> dict[str, Any]:
        """Return a version's payload to whoever has its project's key. Raises ApiError."""
        if not hmac.compare_digest(key.encode(), self._derive_project_key(project_number(project)).encode()):
            name = f"projects/{project}/secrets/{secret}/versions/{version}"
            message = f"Permission 'secretmanager.versions.access' denied for resource '{name}' (or it may not exist)."
            raise ApiError("PERMISSION_DENIED" if key else "UNAUTHENTICATED", message if key else _NO_KEY)
        return self.values.access_secret_version(project, secret, version)

    def _derive_project_key(self, project_number: str) -> str:
        return hmac.new(self.token.encode(), f"secrets of {project_number}".encode(), hashlib.sha256).hexdigest()


def _start_thread_serving_secrets(access: Callable[..., dict[str, Any]], listener: socket.socket) -> None:
    def respond(request: Request) -> Response:
        key = request.headers.get("x-goog-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            return JSONResponse(access(**request.path_params, key=key))
        except ApiError as error:
            return build_error_response(error)

    path = "/v1/projects/{project}/secrets/{secret}/versions/{version}:access"
    config = uvicorn.Config(
        Starlette(routes=[Route(path, respond)]),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    threading.Thread(target=uvicorn.Server(config).run, args=([listener],), daemon=True, name="secrets").start()
