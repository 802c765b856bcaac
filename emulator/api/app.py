"""The HTTP side: Vertex's REST paths, Cloud Logging's entries:list, health, and the page."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.api.admin import Admin
from emulator.api.entries import Entries
from emulator.api.guard import Guard
from emulator.api.jobs import Jobs
from emulator.api.wire import masked
from emulator.containers.executor import Executor
from emulator.errors import ApiError, EmulatorError
from emulator.names import Path, parse_path
from emulator.page.page import Page
from emulator.store import Store
from vertex.kinds import KINDS, Kind

MAX_BODY_BYTES = 4 << 20
_QUERY = {
    "list": frozenset({"filter", "pageSize", "pageToken", "readMask"}),
    "operations": frozenset({"filter", "pageSize", "pageToken"}),
}
_SYSTEM_QUERY = frozenset(
    {"$alt", "alt", "$.xgafv", "access_token", "callback", "fields", "key", "oauth_token", "prettyPrint"}
    | {"quotaUser", "uploadType", "upload_protocol", "$prettyPrint", "$apiVersion"}
)
_log = logging.getLogger("emulator.http")


@dataclass(frozen=True)
class App:
    """The routes over the methods; `allowed_host` is a further host name to answer to, besides loopback."""

    version: str
    store: Store
    executor: Executor
    jobs: Jobs
    entries: Entries
    admin: Admin
    page: Page
    allowed_host: str | None = None

    def asgi(self) -> Guard:
        """The ASGI application."""
        routes = [
            *self.page.routes(),
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/emulator/status", self._status),
            Route("/emulator/jobs/{id}", self._job_status),
            Route("/v2/entries:list", self._entries, methods=["POST"]),
            Route("/v1/{path:path}", self._api, methods=["GET", "POST", "DELETE", "PATCH", "PUT"]),
            Route("/v1beta1/{path:path}", self._api, methods=["GET", "POST", "DELETE", "PATCH", "PUT"]),
        ]
        handlers: Mapping[Any, Any] = {
            ApiError: _api_error,
            404: lambda request, _: _answer(_not_found(request.url.path)),
            405: lambda request, _: _answer(_unimplemented(request.method, request.url.path)),
            sqlite3.OperationalError: _store_error,
            Exception: _internal_error,
        }
        return Guard(Starlette(routes=routes, exception_handlers=handlers), self.version, self.allowed_host)

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": self.version})

    def _ready(self, _request: Request) -> Response:
        try:
            with self.store.transaction() as change:
                change.set_setting("ready", "1")
            self.executor.ping()
        except (sqlite3.Error, EmulatorError) as error:
            return JSONResponse({"status": "unavailable", "reason": str(error)}, status_code=503)
        return JSONResponse({"status": "ok"})

    def _status(self, _request: Request) -> Response:
        return JSONResponse(self.admin.status())

    def _job_status(self, request: Request) -> Response:
        found = self.admin.job(request.path_params["id"])
        if found is None:
            raise ApiError("NOT_FOUND", f"There is no job {request.path_params['id']} here.")
        return JSONResponse(found)

    async def _entries(self, request: Request) -> Response:
        body = await _body(request)
        return await _in_thread(lambda: self.entries.page(body))

    async def _api(self, request: Request) -> Response:
        path = parse_path(request.path_params["path"])
        if path is None:
            raise _not_found(request.url.path)
        kind = KINDS.get(path.collection) if path.collection else None
        if path.collection and kind is None:
            raise ApiError(
                "UNIMPLEMENTED",
                f"This emulator has no {path.collection}; it has {', '.join(KINDS)} and operations (docs/fidelity.md).",
            )
        if path.in_operations:
            return await _in_thread(lambda: self._operations(request, path))
        if kind is None:
            raise _unimplemented(request.method, request.url.path)
        body = await _body(request) if request.method == "POST" else {}
        return await _in_thread(lambda: self._jobs(request, path, kind, body))

    def _jobs(self, request: Request, path: Path, kind: Kind, body: Mapping[str, Any]) -> dict[str, Any]:
        match request.method, path.id, path.verb:
            case "POST", None, None:
                _check_query(request)
                return self.jobs.create(kind, path.location, body)
            case "GET", None, None:
                query = _check_query(request, "list")
                reply = self.jobs.page(
                    kind, path.location, query.get("filter", ""), _page_size(query), query.get("pageToken", "")
                )
                paths = [part.strip() for part in query.get("readMask", "").split(",") if part.strip()]
                if paths and kind.collection in reply:
                    reply[kind.collection] = [masked(job, paths) for job in reply[kind.collection]]
                return reply
            case "GET", str(id_), None:
                _check_query(request)
                return self.jobs.get(kind, path.location, id_)
            case "POST", str(id_), "cancel":
                _check_query(request)
                return self.jobs.cancel(kind, path.location, id_)
            case "DELETE", str(id_), None:
                _check_query(request)
                return self.jobs.delete(kind, path.location, id_)
        raise _unimplemented(request.method, request.url.path)

    def _operations(self, request: Request, path: Path) -> dict[str, Any]:
        parent = path.location.name + (f"/{path.collection}/{path.id}" if path.collection else "")
        name = f"{parent}/operations/{path.operation}"
        match request.method, path.operation, path.verb:
            case "GET", None, None:
                _check_query(request, "operations")
                return self.jobs.operations(parent)
            case "GET", str(), None:
                return self.jobs.operation(name)
            case "POST", str(), "wait":
                return self.jobs.operation(name)
            case "POST", str(), "cancel":
                self.jobs.operation(name)
                return {}
            case "DELETE", str(), None:
                return self.jobs.delete_operation(name)
        raise _unimplemented(request.method, request.url.path)


async def _in_thread(call: Callable[[], dict[str, Any]]) -> Response:
    return JSONResponse(await to_thread.run_sync(call))


async def _body(request: Request) -> Mapping[str, Any]:
    """The request's JSON object; an absent body is an empty one."""
    size, parts = 0, []
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise ApiError(
                "INVALID_ARGUMENT", f"Request payload size exceeds the limit: {MAX_BODY_BYTES} bytes.", http=413
            )
        parts.append(part)
    raw = b"".join(parts)
    if not raw.strip():
        return {}
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ApiError("INVALID_ARGUMENT", f"Invalid JSON payload received. {error}") from error
    if not isinstance(body, Mapping):
        raise ApiError("INVALID_ARGUMENT", "Invalid JSON payload received. The root must be an object.")
    return body


def _check_query(request: Request, method: str | None = None) -> dict[str, str]:
    """The query of a method; Google's front end refuses names that the method has not."""
    known = _QUERY[method] if method else frozenset[str]()
    for name in request.query_params:
        if name not in known and name not in _SYSTEM_QUERY:
            message = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
            raise ApiError("INVALID_ARGUMENT", message, [(name, "unknown query parameter")])
    return dict(request.query_params)


def _page_size(query: Mapping[str, str]) -> int:
    text = query.get("pageSize", "0")
    if not text.lstrip("-").isdecimal() or abs(int(text)) > 2**31 - 1:
        raise ApiError(
            "INVALID_ARGUMENT", f"pageSize is {text!r}; it must be a number", [("page_size", "not a number")]
        )
    return int(text)


def _not_found(path: str) -> ApiError:
    return ApiError("NOT_FOUND", f"The requested URL {path} was not found on this emulator.")


def _unimplemented(method: str, path: str) -> ApiError:
    return ApiError(
        "UNIMPLEMENTED", f"This emulator has no method {method} {path} (docs/fidelity.md lists what it has)."
    )


def _answer(error: ApiError) -> Response:
    return JSONResponse(error.body(), status_code=error.http)


def _api_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _answer(error)


def _store_error(request: Request, error: Exception) -> Response:
    _log.error("%s %s: %s", request.method, request.url.path, error)
    return _answer(ApiError("UNAVAILABLE", f"The emulator cannot use its store: {error}. Nothing was changed."))


def _internal_error(request: Request, error: Exception) -> Response:
    _log.error("%s %s", request.method, request.url.path, exc_info=error)
    return _answer(
        ApiError("INTERNAL", f"Internal error in the emulator: {type(error).__name__}; its log has the rest.")
    )
