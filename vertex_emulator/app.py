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
from vertex_emulator.api.cli_backend_service import CliBackendService
from vertex_emulator.api.injected_request_faults import InjectedRequestFaults
from vertex_emulator.api.job_service import JobService
from vertex_emulator.api.logging.log_entry_listing import LogEntryListingService
from vertex_emulator.api.model_export import ModelExportService
from vertex_emulator.api.model_service import ModelService
from vertex_emulator.api.operation_service import OperationService
from vertex_emulator.api.routes import build_routes
from vertex_emulator.api.unserved_path_errors import (
    build_unimplemented_error,
    build_unimplemented_or_not_found_error,
)
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, connection
from vertex_emulator.errors import ApiError, EmulatorError
from vertex_emulator.gcs import messages as gcs_messages
from vertex_emulator.gcs import routes as gcs_routes
from vertex_emulator.gcs.files import BucketTree, FolderCopier
from vertex_emulator.http.authentication import Access
from vertex_emulator.http.json_responses import build_error_response
from vertex_emulator.http.security_middleware import SecurityMiddleware
from vertex_emulator.page.routes import Page
from vertex_emulator.replicas.executor_protocol import Executor
from vertex_emulator.schedules.schedule_loop import ScheduleLoop
from vertex_emulator.schedules.schedule_service import ScheduleService
from vertex_emulator.schedules.schedules_clock import ScheduleClockService
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
    def job_service(self) -> JobService:
        """The methods on jobs, which clients and schedules call."""
        return JobService(self.database, self.data.buckets, self.capacity, self.executor, self.wake, self.page_url)

    @cached_property
    def schedule_loop(self) -> ScheduleLoop:
        """The loop of schedules, which the server starts."""
        return ScheduleLoop(self.database, self.job_service)

    def build_asgi_app(self) -> SecurityMiddleware:
        """Return the ASGI application."""
        request_faults = InjectedRequestFaults(self.database)
        routes = [
            *build_routes(
                self.job_service,
                ModelService(self.database, self.data.buckets),
                ModelExportService(self.database, FolderCopier(BucketTree(self.data.buckets), self.data.uploads)),
                OperationService(self.database),
                LogEntryListingService(self.database, self.executor, self.data),
                CliBackendService(self.database, self.executor, self.data, self.capacity, request_faults, self.wake),
                request_faults,
                SecretValues(self.data.secrets),
                ScheduleService(self.database, self.job_service, self.schedule_loop.wake_or_start_if_needed),
                ScheduleClockService(self.database, self.schedule_loop.wake_or_start_if_needed),
            ),
            *Page(self.database, self.executor, self.data).routes(),
            Route("/healthz", self._respond_with_health),
            Route("/readyz", self._try_database_and_executor_and_respond_with_readiness),
            *gcs_routes.build(self.data.buckets, self.data.uploads, self.data.object_metadata),
        ]
        handlers: Mapping[Any, Any] = {
            ApiError: lambda _, error: build_error_response(error),
            404: lambda request, _: build_error_response(
                gcs_messages.xml_upload_error(request)
                or build_unimplemented_or_not_found_error(request.method, request.url.path)
            ),
            405: lambda request, _: build_error_response(build_unimplemented_error(request.method, request.url.path)),
            sqlite3.Error: _log_and_respond_with_database_error,
            **gcs_messages.ERROR_HANDLERS,
            Exception: _log_and_respond_with_internal_error,
        }
        application = Starlette(routes=routes, exception_handlers=handlers)
        return SecurityMiddleware(application, __version__, self.access, self.allowed_host)

    async def _respond_with_health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    def _try_database_and_executor_and_respond_with_readiness(self, _request: Request) -> Response:
        try:
            with self.database.write() as transaction:
                transaction.settings.set("ready", format_time(now_ns()))
            self.executor.ping()
        except (sqlite3.Error, EmulatorError) as error:
            reason = connection.describe(error) if isinstance(error, sqlite3.Error) else str(error)
            return JSONResponse({"status": "unavailable", "reason": reason}, status_code=503)
        return JSONResponse({"status": "ok"})


def _log_and_respond_with_database_error(request: Request, error: sqlite3.Error) -> Response:
    _log.error("%s %a: %s", request.method, request.url.path, error)
    message = f"{connection.describe(error)}. Nothing was changed."
    if connection.is_disk_full(error):
        return build_error_response(ApiError("RESOURCE_EXHAUSTED", message, http=507))
    return build_error_response(ApiError("UNAVAILABLE", message))


def _log_and_respond_with_internal_error(request: Request, error: Exception) -> Response:
    _log.error("%s %a", request.method, request.url.path, exc_info=error)
    message = f"Internal error in the emulator: {type(error).__name__}; see its log for details."
    return build_error_response(ApiError("INTERNAL", message))
