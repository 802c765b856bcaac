"""The ASGI application: the API, the page, Cloud Storage and health checks, with one form of errors."""

import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_api import __version__
from vertex_emulator.api.emulator import EmulatorService
from vertex_emulator.api.faults import RequestFaults
from vertex_emulator.api.jobs import JobService
from vertex_emulator.api.logging import LogService
from vertex_emulator.api.models import ModelService
from vertex_emulator.api.operations import OperationService
from vertex_emulator.api.routes import Services, unimplemented, unserved
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, connection
from vertex_emulator.errors import ApiError, EmulatorError
from vertex_emulator.gcs import messages as gcs_messages
from vertex_emulator.gcs import routes as gcs_routes
from vertex_emulator.http.responses import error_response
from vertex_emulator.http.security import Access, SecurityMiddleware
from vertex_emulator.page.routes import Page
from vertex_emulator.replicas.executor_protocol import Executor
from vertex_emulator.schedules.loop import ScheduleLoop
from vertex_emulator.schedules.service import ScheduleService
from vertex_emulator.secrets import SecretValues
from vertex_emulator.times import format_time, now_ns

_log = logging.getLogger("vertex_emulator.http")


@dataclass(frozen=True)
class App:
    """The parts of the application on one data folder.

    `capacity` is in replicas; `wake` tells the scheduler that the job with an id has changed; `page_url` is where
    browsers find the emulator; requests may name `allowed_host` as their host, besides loopback names.
    """

    database: Database
    executor: Executor
    data: DataFolder
    capacity: int
    wake: Callable[[str], None]
    access: Access
    page_url: str
    allowed_host: str | None = None

    @cached_property
    def jobs(self) -> JobService:
        """The methods on jobs, which clients and schedules call."""
        return JobService(self.database, self.data.buckets, self.capacity, self.executor, self.wake, self.page_url)

    @cached_property
    def schedule_loop(self) -> ScheduleLoop:
        """The loop of schedules, which the server starts."""
        return ScheduleLoop(self.database, self.jobs)

    def asgi(self) -> SecurityMiddleware:
        """Return the ASGI application."""
        faults = RequestFaults(self.database)
        services = Services(
            self.jobs,
            ModelService(self.database, self.data),
            OperationService(self.database),
            LogService(self.database, self.executor, self.data),
            SecretValues(self.data.secrets),
            ScheduleService(self.database, self.jobs, self.schedule_loop.wake),
            EmulatorService(self.database, self.executor, self.data, self.capacity, faults, self.wake),
            faults,
        )
        routes = [
            *services.routes(),
            *Page(self.database, self.executor, self.data).routes(),
            Route("/healthz", self._health),
            Route("/readyz", self._readiness),
            *gcs_routes.build(self.data.buckets, self.data.uploads, self.data.object_metadata),
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
        application = Starlette(routes=routes, exception_handlers=handlers)
        return SecurityMiddleware(application, __version__, self.access, self.allowed_host)

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    def _readiness(self, _request: Request) -> Response:
        try:
            with self.database.write() as transaction:
                transaction.settings.set("ready", format_time(now_ns()))
            self.executor.ping()
        except (sqlite3.Error, EmulatorError) as error:
            reason = connection.describe(error) if isinstance(error, sqlite3.Error) else str(error)
            return JSONResponse({"status": "unavailable", "reason": reason}, status_code=503)
        return JSONResponse({"status": "ok"})


def _database_error(request: Request, error: sqlite3.Error) -> Response:
    _log.error("%s %a: %s", request.method, request.url.path, error)
    message = f"{connection.describe(error)}. Nothing was changed."
    if connection.is_disk_full(error):
        return error_response(ApiError("RESOURCE_EXHAUSTED", message, http=507))
    return error_response(ApiError("UNAVAILABLE", message))


def _internal_error(request: Request, error: Exception) -> Response:
    _log.error("%s %a", request.method, request.url.path, exc_info=error)
    message = f"Internal error in the emulator: {type(error).__name__}; see its log for details."
    return error_response(ApiError("INTERNAL", message))
