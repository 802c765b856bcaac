"""The HTTP side: Vertex's REST paths, Cloud Logging's entries:list, health, and the page."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_emulator.api.admin import Admin
from vertex_emulator.api.logging.entries import Entries
from vertex_emulator.api.methods import Methods, unimplemented
from vertex_emulator.database import Database, failures
from vertex_emulator.errors import ApiError, EmulatorError
from vertex_emulator.gcs.service import Storage
from vertex_emulator.http import body
from vertex_emulator.http.guard import Guard
from vertex_emulator.page.page import Page
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.resource_json import convert_to_version
from vertex_emulator.times import format_time, now_ns

_log = logging.getLogger("emulator.http")


@dataclass(frozen=True)
class App:
    """The routes over the methods; `allowed_host` is a further host name to answer to, besides loopback."""

    version: str
    database: Database
    executor: Executor
    methods: Methods
    entries: Entries
    admin: Admin
    storage: Storage
    page: Page
    allowed_host: str | None = None

    def asgi(self) -> Guard:
        """The ASGI application."""
        routes = [
            *self.page.routes(),
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/vertex_emulator/status", self._status),
            Route("/vertex_emulator/jobs/{id}", self._job_status),
            Route("/vertex_emulator/faults", self._faults, methods=["GET", "POST", "DELETE"]),
            Route("/v2/entries:list", self._entries, methods=["POST"]),
            Route("/v1/{path:path}", self._api, methods=["GET", "POST", "DELETE", "PATCH", "PUT"]),
            Route("/v1beta1/{path:path}", self._api, methods=["GET", "POST", "DELETE", "PATCH", "PUT"]),
            *self.storage.routes(),
        ]
        handlers: Mapping[Any, Any] = {
            ApiError: _api_error,
            404: lambda request, _: _answer(_not_found(request.url.path)),
            405: lambda request, _: _answer(unimplemented(request.method, request.url.path)),
            sqlite3.Error: _store_error,
            **self.storage.handlers(),
            Exception: _internal_error,
        }
        return Guard(Starlette(routes=routes, exception_handlers=handlers), self.version, self.allowed_host)

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": self.version})

    def _ready(self, _request: Request) -> Response:
        try:
            with self.database.write_transaction() as transaction:
                transaction.set_setting("ready", format_time(now_ns()))
            self.executor.ping()
        except sqlite3.Error as error:
            return JSONResponse(
                {"status": "unavailable", "reason": failures.describe_database_error(error)}, status_code=503
            )
        except EmulatorError as error:
            return JSONResponse({"status": "unavailable", "reason": str(error)}, status_code=503)
        return JSONResponse({"status": "ok"})

    def _status(self, _request: Request) -> Response:
        return JSONResponse(self.admin.status())

    def _job_status(self, request: Request) -> Response:
        found = self.admin.job(request.path_params["id"])
        if found is None:
            raise ApiError("NOT_FOUND", f"There is no job {request.path_params['id']} here.")
        return JSONResponse(found)

    async def _faults(self, request: Request) -> Response:
        sent = await body.read(request)
        return await _in_thread(lambda: self.admin.faults(request.method, sent))

    async def _entries(self, request: Request) -> Response:
        sent = await body.read(request)
        return await _in_thread(lambda: self.entries.page(sent))

    async def _api(self, request: Request) -> Response:
        sent = await body.read(request) if request.method == "POST" else {}
        query = dict(request.query_params)
        version, path = request.scope["path"].split("/")[1], request.path_params["path"]
        return await _in_thread(
            lambda: convert_to_version(self.methods.answer(request.method, path, query, sent), version)
        )


async def _in_thread(call: Callable[[], dict[str, Any]]) -> Response:
    # A page of studies with many trials is large, and this encoder four times as fast as Python's own.
    return await to_thread.run_sync(lambda: Response(to_json(call()), media_type="application/json"))


def _not_found(path: str) -> ApiError:
    return ApiError("NOT_FOUND", f"The requested URL {path} was not found on this emulator.")


def _answer(error: ApiError) -> Response:
    return JSONResponse(error.body(), status_code=error.http)


def _api_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _answer(error)


def _store_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, sqlite3.Error)
    _log.error("%s %a: %s", request.method, request.url.path, error)
    message = f"{failures.describe_database_error(error)}. Nothing was changed."
    full = failures.is_disk_full(error)
    return _answer(ApiError("RESOURCE_EXHAUSTED", message, http=507) if full else ApiError("UNAVAILABLE", message))


def _internal_error(request: Request, error: Exception) -> Response:
    _log.error("%s %a", request.method, request.url.path, exc_info=error)
    return _answer(
        ApiError("INTERNAL", f"Internal error in the emulator: {type(error).__name__}; its log has the rest.")
    )
