"""The serving process: its data folder, lock, database and port, the ASGI application, and an orderly end."""

import asyncio
import contextlib
import errno
import gc
import json
import logging
import os
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from vertex_api import __version__
from vertex_api.emulator import Address
from vertex_emulator.api.routes import Api, unimplemented, unserved
from vertex_emulator.clients import with_whole_path
from vertex_emulator.data_folder import STARTED, DataFolder, acquire_lock
from vertex_emulator.database import Database, connection
from vertex_emulator.debugging import DebugPorts
from vertex_emulator.errors import ApiError, EmulatorError, StartError
from vertex_emulator.gcs import messages as gcs_messages
from vertex_emulator.gcs import routes as gcs_routes
from vertex_emulator.http.connection import HttpServer, Limits, Listener, can_identify_users, raise_file_limit
from vertex_emulator.http.responses import error_response
from vertex_emulator.http.security import Access, SecurityMiddleware, ensure_token, is_loopback
from vertex_emulator.inside.authority import Authority
from vertex_emulator.inside.door import Door, Returning
from vertex_emulator.inside.entries import EntryWriter
from vertex_emulator.inside.identity import Identities
from vertex_emulator.inside.permissions import Permissions
from vertex_emulator.inside.standins import StandIns
from vertex_emulator.page.routes import Page
from vertex_emulator.replicas import daemon
from vertex_emulator.replicas.containers import ContainerSettings
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.rpc.relay import Translator
from vertex_emulator.scheduling.custom_job import Hooks
from vertex_emulator.scheduling.scheduler import Scheduler, WorkQueue
from vertex_emulator.secrets import SecretValues
from vertex_emulator.times import format_time, now_ns

_MIN_CAPACITY = 4
_STOP_SECONDS = 1.0
_log = logging.getLogger("vertex_emulator")
_http_log = logging.getLogger("vertex_emulator.http")


def serve(
    data_path: Path,
    host: str,
    port: int | None,
    allow_remote: bool,
    container_options: Mapping[str, Any],
    on_ready: Callable[[], None],
) -> None:
    """Serve a data folder until SIGTERM or SIGINT; containers go on running. Raises StartError.

    `container_options` has those fields of ContainerSettings that the command line gives; the others keep their values.
    `on_ready` is called once the emulator answers.
    """
    if not is_loopback(host) and not allow_remote:
        raise StartError(
            f"{host} can be reached from other machines, and whoever has the emulator's token can run containers here; "
            "add --allow-remote if that is what you want"
        )
    daemon.require()
    data = DataFolder.open(data_path, create=STARTED not in os.environ)
    with acquire_lock(data.lock):
        data.endpoint.unlink(missing_ok=True)  # of an emulator that was killed: its port may be anyone's by now
        database = Database(data.database)
        listener = None
        try:
            listener = open_listener(host, port, database)
            settings = _container_settings(database, container_options)
            Server(data, database, listener, host, allow_remote, settings, on_ready).serve_until_stopped()
        except sqlite3.Error as error:
            raise StartError(f"the database {data.database} cannot be used: {error}") from error
        finally:
            data.endpoint.unlink(missing_ok=True)
            if listener is not None:
                listener.close()
            database.close()


class Server(HttpServer):
    """The emulator on one data folder: the HTTP server, and what works beside it for as long as it serves.

    `listener` is the socket of `host`; `allow_remote` lets other machines in. `on_ready` is called once all answers.
    """

    def __init__(
        self,
        data: DataFolder,
        database: Database,
        listener: socket.socket,
        host: str,
        allow_remote: bool,
        settings: ContainerSettings,
        on_ready: Callable[[], None],
    ) -> None:
        self._data, self._database, self._listener = data, database, listener
        self._allow_remote, self._on_ready = allow_remote, on_ready
        port = listener.getsockname()[1]
        token_file = None if can_identify_users() and not allow_remote else str(data.token)
        self._endpoint = Address(os.getpid(), host, port, _url(host, port), __version__, token_file)

        files = raise_file_limit()
        queue = WorkQueue()
        self._executor = Executor(_emulator_id(database), queue.add, settings)
        token = ensure_token(data.token)
        self._debug_ports = DebugPorts(database, self._executor)
        hooks = Hooks(lambda job: self._door.home(job), self._debug_ports.open, self._debug_ports.close)
        capacity = max(_MIN_CAPACITY, os.cpu_count() or 1)
        self._scheduler = Scheduler(database, self._executor, data, queue, capacity, hooks)
        self._api = Api(database, self._executor, data, capacity, self._scheduler.wake, self._endpoint.url)

        app = _App(self._api).asgi()
        values, stand_ins, entries = SecretValues(data.secrets), StandIns(data.stand_ins), EntryWriter(database)
        authority = Authority(data.certificate, data.trusted)
        translator = self._translator = Translator(self._endpoint.url)
        self._door = Door(
            database,
            self._executor,
            values,
            stand_ins,
            Identities(data.identities),
            entries,
            token,
            files,
            app,
            data.buckets,
            authority,
            translator,
            Permissions(database, data.grants),
        )
        secured = SecurityMiddleware(app, __version__, Access(token), host if allow_remote else None)
        application = Returning(translator, self._door, secured)
        super().__init__(
            application,
            Limits().within(files),
            translator.relay_own,
            tls=authority.context,
            timeout_graceful_shutdown=int(_STOP_SECONDS),
        )

    def serve_until_stopped(self) -> None:
        """Serve until SIGTERM, SIGINT or a request to stop, and end in an orderly way."""
        # A study of thousands of trials is a million small objects; looking for cycles among them costs more than they.
        gc.set_threshold(50_000, 20, 50)
        # uvicorn logs each request that a stop cuts off with a traceback, and says before how many there are.
        logging.getLogger("uvicorn.error").addFilter(lambda log_record: not _is_cut_off(log_record))
        with _stopping_on_signals(self):
            self.run(sockets=[self._listener])

        # No client is to find the emulator while the rest ends.
        self._data.endpoint.unlink(missing_ok=True)
        self._api.schedule_loop.stop(_STOP_SECONDS)
        self._scheduler.stop(_STOP_SECONDS)
        # Whoever starts next, while this process may still end, gets the ports that containers and debuggers know.
        self._door.stop(_STOP_SECONDS)
        self._debug_ports.stop()
        self._translator.stop()
        _remove_firewall_rules(self._executor)
        _log.info("stopped; containers keep running, and the next start finds them")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then start what works beside the API, and say that all is ready."""
        await super().startup(sockets)

        # Whoever finds the endpoint may use the other ports too.
        self._door.resume()
        self._debug_ports.resume()
        self._data.announce(self._endpoint)
        self._scheduler.start()
        self._api.schedule_loop.start()

        _log.info("Vertex training emulator %s on %s, data in %s", __version__, self._endpoint.url, self._data.root)
        if self._allow_remote:
            _log.info("other machines need the token in %s: Authorization: Bearer TOKEN", self._data.token)
        elif self._endpoint.token_file:
            _log.info("requests need the token in %s; `vertex-emulator env` sets it for clients", self._data.token)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening; open pages would hold that up, so they end first."""
        self._database.changes.close()
        await super().shutdown(sockets)


def _is_cut_off(log_record: logging.LogRecord) -> bool:
    return log_record.exc_info is not None and isinstance(log_record.exc_info[1], asyncio.CancelledError)


def _remove_firewall_rules(executor: Executor) -> None:
    """Leave no rules on the machine that no container needs, unless Docker takes long."""

    def remove() -> None:
        try:
            executor.release_firewall()
        except Exception as error:  # noqa: BLE001 - the next start uses them, and a reset removes them
            _log.warning("the rules of the firewall stay: %s", error)

    thread = threading.Thread(target=remove, daemon=True, name="remove rules")
    thread.start()
    thread.join(_STOP_SECONDS)


@contextlib.contextmanager
def _stopping_on_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGTERM and SIGINT do no more than stop the server, where uvicorn does not handle them.

    It does so from the start of its loop on, and raises the signal that stopped it once more at its end.
    """

    def request_stop(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def open_listener(host: str, port: int | None, database: Database) -> Listener:
    """Open a socket on the requested port, else on the last one (so that links stay valid), else on a free one."""
    with database.read() as transaction:
        remembered = transaction.settings.get("port")
    candidates = [port] if port is not None else [*([int(remembered)] if remembered else []), 0]
    for candidate in candidates:
        try:
            listener = Listener.open(host, candidate)
        except OSError as error:
            if port is None and candidate and error.errno == errno.EADDRINUSE:
                continue
            raise StartError(_listen_error(host, candidate, error)) from error
        break
    try:
        with database.write() as transaction:
            transaction.settings.set("port", str(listener.getsockname()[1]))
    except sqlite3.Error as error:
        listener.close()
        raise StartError(f"the database cannot be written: {error}") from error
    return listener


def _listen_error(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use: choose another with --port, or leave --port out for a free one"
    return f"cannot listen on {host}:{port}: {error.strerror}"


def _url(listen_host: str, port: int) -> str:
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen_host, listen_host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _container_settings(database: Database, given: Mapping[str, Any]) -> ContainerSettings:
    """Return the settings of containers: what is given, else those of the last start, else the defaults."""
    with database.write() as transaction:
        options = {**json.loads(transaction.settings.get("containers") or "{}"), **given}
        transaction.settings.set("containers", json.dumps(options))
    return ContainerSettings(**options)


def _emulator_id(database: Database) -> str:
    """Return the id that labels the containers of this data folder, and create it at the first start."""
    with database.write() as transaction:
        emulator_id = transaction.settings.get("emulator")
        if emulator_id is None:
            emulator_id = token_hex(6)
            transaction.settings.set("emulator", emulator_id)
    return emulator_id


@dataclass(frozen=True)
class _App:
    """The ASGI application: the API, the page, Cloud Storage and health checks, with one form of errors."""

    api: Api

    def asgi(self) -> ASGIApp:
        """Return the ASGI application."""
        data = self.api.data
        routes = [
            *self.api.routes(),
            *Page(self.api.database, self.api.executor, data).routes(),
            Route("/healthz", self._health),
            Route("/readyz", self._readiness),
            *gcs_routes.build(data.buckets, data.uploads, data.object_metadata),
        ]
        handlers: Mapping[Any, Any] = {
            ApiError: lambda _, error: error_response(error),
            404: lambda request, _: error_response(
                gcs_messages.xml_upload_error(request) or unserved(request.method, request.url.path)
            ),
            405: lambda request, _: error_response(unimplemented(request.method, request.url.path)),
            sqlite3.Error: _database_error,
            **gcs_messages.ERROR_HANDLERS,
            Exception: _internal_error,
        }
        app = Starlette(routes=routes, exception_handlers=handlers)

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await app(with_whole_path(scope), receive, send)

        return answer

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    def _readiness(self, _request: Request) -> Response:
        try:
            with self.api.database.write() as transaction:
                transaction.settings.set("ready", format_time(now_ns()))
            self.api.executor.ping()
        except (sqlite3.Error, EmulatorError) as error:
            reason = connection.describe(error) if isinstance(error, sqlite3.Error) else str(error)
            return JSONResponse({"status": "unavailable", "reason": reason}, status_code=503)
        return JSONResponse({"status": "ok"})


def _database_error(request: Request, error: sqlite3.Error) -> Response:
    _http_log.error("%s %a: %s", request.method, request.url.path, error)
    message = f"{connection.describe(error)}. Nothing was changed."
    if connection.is_disk_full(error):
        return error_response(ApiError("RESOURCE_EXHAUSTED", message, http=507))
    return error_response(ApiError("UNAVAILABLE", message))


def _internal_error(request: Request, error: Exception) -> Response:
    _http_log.error("%s %a", request.method, request.url.path, exc_info=error)
    message = f"Internal error in the emulator: {type(error).__name__}; see its log for details."
    return error_response(ApiError("INTERNAL", message))
