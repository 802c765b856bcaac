"""All routes: the training API (v1 and v1beta1), Cloud Logging, the emulator's own methods; and what none serves."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from pydantic_core import to_json
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from vertex_api.names import ALLOW_HEADER, KINDS
from vertex_emulator.api import lineage, lists
from vertex_emulator.api.emulator import EmulatorService
from vertex_emulator.api.faults import Handler, RequestFaults
from vertex_emulator.api.jobs import JobService
from vertex_emulator.api.lineage import LineageService
from vertex_emulator.api.lists import ListRequest
from vertex_emulator.api.logging import LogService
from vertex_emulator.api.models import ModelService, OperationService
from vertex_emulator.api.schedule_loop import ScheduleLoop
from vertex_emulator.api.schedules import ScheduleService
from vertex_emulator.api.tensorboards import ID_PARAMETERS, TensorboardService
from vertex_emulator.api.uploads import JobUploads
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.errors import AnswerLost, ApiError
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.http.connection import ABORT
from vertex_emulator.http.requests import read_json, read_query, run_in_thread, wants_enum_numbers
from vertex_emulator.http.responses import JSON_TYPE
from vertex_emulator.inside.permissions import Permissions
from vertex_emulator.names import (
    BOARD_COLLECTIONS,
    BOARD_PATTERNS,
    ID_PATTERN,
    LINEAGE_COLLECTIONS,
    LOCATION_PATTERN,
    STORE_PATTERN,
    Location,
    with_number,
)
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.representation import with_api_version, with_enum_numbers
from vertex_emulator.secrets import SecretValues

_LOCATION = "/{location:location}"


@dataclass(frozen=True)
class Api:
    """The API on one data folder: its routes, and the loop of schedules, which the server starts.

    `capacity` is in replicas; `wake` tells the scheduler that the job with an id has changed; `page_url` is where
    browsers find the emulator.
    """

    database: Database
    executor: Executor
    data: DataFolder
    capacity: int
    wake: Callable[[str], None]
    page_url: str

    @cached_property
    def jobs(self) -> JobService:
        """The methods on jobs, which clients and schedules call."""
        return JobService(self.database, self.data.buckets, self.capacity, self.executor, self.wake, self.page_url)

    @cached_property
    def schedule_loop(self) -> ScheduleLoop:
        """The loop of schedules."""
        return ScheduleLoop(self.database, self.jobs)

    def routes(self) -> list[BaseRoute]:
        """Return all routes. A handler's arguments are the parameters of its path, and what the route names beside."""
        faults = RequestFaults(self.database)
        jobs, models, operations = self.jobs, ModelService(self.database, self.data), OperationService(self.database)
        boards = TensorboardService(self.database, JobUploads(self.database, BucketTree(self.data.buckets)))
        nodes = LineageService(self.database)
        secrets, logs = SecretValues(self.data.secrets), LogService(self.database, self.executor, self.data)
        needs = Permissions(self.database, self.data.grants)
        schedules = ScheduleService(self.database, jobs, self.schedule_loop.wake)
        emulator = EmulatorService(self.database, self.executor, self.data, self.capacity, faults, self.wake, needs)

        some_jobs, some_models, operation = f"{_LOCATION}/{{kind:kind}}", f"{_LOCATION}/models", "/{name:operation}"
        job, model = f"{some_jobs}/{{job_id:id}}", f"{some_models}/{{model:id}}"
        secret = "/projects/{project:id}/secrets/{secret:id}/versions/{version:id}:access"
        operation_routes = [
            # Operations, which are done from the start: to wait for one is to get it.
            _route(
                "GET", "/{parent:parent}/operations", operations.list, _page, lists.PAGED | {"returnPartialSuccess"}
            ),
            _route("GET", operation, operations.get),
            _route("DELETE", operation, operations.delete),
            _route("POST", f"{operation}:cancel", operations.cancel),
            _route("POST", f"{operation}:wait", operations.get, query={"timeout"}),
        ]
        training = [
            # Jobs and pipelines, whose requests injected faults may hit.
            _route("GET", some_jobs, faults.wrap(jobs.list), _page, lists.MASKED),
            _route("POST", some_jobs, faults.wrap(jobs.create, "create"), _allowing, headers={ALLOW_HEADER}),
            _route("GET", job, faults.wrap(jobs.get)),
            _route("DELETE", job, faults.wrap(jobs.delete, "delete")),
            _route("POST", f"{job}:cancel", faults.wrap(jobs.cancel)),
            # Models and their versions.
            _route("GET", some_models, models.list, _page, lists.ORDERED),
            _route("POST", f"{some_models}:upload", models.upload, _body),
            _route("POST", f"{some_models}:copy", models.copy, _body),
            _route("GET", model, models.get),
            _route("DELETE", model, models.delete),
            _route("PATCH", model, models.patch, _patch, {"updateMask"}),
            _route("POST", f"{model}:mergeVersionAliases", models.merge_version_aliases, _body),
            _route("POST", f"{model}:export", models.export, _body),
            _route("DELETE", f"{model}:deleteVersion", models.delete_version),
            _route("GET", f"{model}:listVersions", models.list_versions, _page, lists.ORDERED),
            # Tensorboards and what is in them: `boards` and `board` are collections and resources of any of the levels.
            _route("GET", "/{collection:boards}", boards.list, _page, lists.ORDERED),
            _route("POST", "/{collection:boards}", boards.create, _whole, ID_PARAMETERS),
            _route("GET", "/{name:board}", boards.get),
            _route("PATCH", "/{name:board}", boards.patch, _patch, {"updateMask"}),
            _route("DELETE", "/{name:board}", boards.delete),
            _route("POST", "/{experiment:experiments}/runs:batchCreate", boards.batch_create, _body),
            _route("POST", "/{experiment:experiments}:batchCreate", boards.batch_create_series, _body),
            _route("POST", "/{experiment:experiments}:write", boards.write_runs, _body),
            _route("POST", "/{run:runs}:write", boards.write, _body),
            _route("GET", "/{series:timeSeries}:read", boards.read, _query, {"maxDataPoints", "filter"}),
            _route("GET", "/{board:tensorboards}:batchRead", boards.batch_read, _query, {"timeSeries"}),
            # Metadata stores, and the contexts, executions and artifacts in them: `node` is a resource of any of these.
            _route("GET", "/{collection:stores}", nodes.list, _long_page, {"pageSize", "pageToken"}),
            _route("GET", "/{collection:nodes}", nodes.list, _long_page, lists.PAGED | {"orderBy"}),
            _route("POST", "/{collection:stores}", nodes.create, _whole, lineage.ID_PARAMETERS),
            _route("POST", "/{collection:nodes}", nodes.create, _whole, lineage.ID_PARAMETERS),
            _route("POST", "/{collection:nodes}:purge", nodes.purge, _body),
            _route("GET", "/{name:store}", nodes.get),
            _route("GET", "/{name:node}", nodes.get),
            _route("PATCH", "/{name:node}", nodes.patch, _whole, {"updateMask", "allowMissing"}),
            _route("DELETE", "/{name:store}", nodes.delete, _query, {"force"}),
            _route("DELETE", "/{name:node}", nodes.delete, _query, {"etag", "force"}),
            _route("POST", "/{context:contexts}:addContextArtifactsAndExecutions", nodes.add_members, _body),
            _route("POST", "/{context:contexts}:addContextChildren", nodes.add_children, _body),
            _route("POST", "/{context:contexts}:removeContextChildren", nodes.remove_children, _body),
            _route("GET", "/{context:contexts}:queryContextLineageSubgraph", nodes.of_context),
            _route("POST", "/{execution:executions}:addExecutionEvents", nodes.add_events, _body),
            _route("GET", "/{execution:executions}:queryExecutionInputsAndOutputs", nodes.inputs_and_outputs),
            _route(
                "GET",
                "/{artifact:artifacts}:queryArtifactLineageSubgraph",
                nodes.of_artifact,
                _query,
                {"maxHops", "filter"},
            ),
            *operation_routes,
            # Secret Manager's versions, and last whatever the emulator has not.
            _route("GET", secret, secrets.access),
            Route("/{path:path}", _refuse, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ]

        some_schedules, schedule = f"{_LOCATION}/schedules", f"{_LOCATION}/schedules/{{schedule:id}}"
        return [
            Mount("/v1", routes=training),
            Mount("/v1beta1", routes=training),
            Mount("/ui", routes=operation_routes),  # where Google's clients of Go and Python look first
            _route("POST", "/v2/entries:list", logs.list_entries, _body, query=None),
            # The emulator's own methods.
            _own("GET", "/status", emulator.status),
            _own("POST", "/stop", emulator.stop),
            _own("POST", "/prune", emulator.prune, _body),
            _own("POST", "/faults", emulator.inject, _body),
            _own("DELETE", "/faults", emulator.clear_faults),
            # A name may have slashes.
            _own("GET", "/jobs/{reference:path}/replicas", emulator.replicas),
            _own("GET", "/jobs/{reference:path}/usage", emulator.usage),
            _own("POST", "/buckets/remember", emulator.remember),
            _own("POST", "/jobs/{reference:path}/faults", emulator.strike, _body),
            _own("GET", "/jobs/{reference:path}/log_folders", emulator.log_folders),
            _own("GET", "/jobs/{reference:path}", emulator.job),
            # Schedules, and the clock that they follow.
            _own("GET", "/schedules", schedules.list),
            _own("GET", some_schedules, schedules.list),
            _own("GET", schedule, schedules.get),
            _own("PUT", schedule, schedules.put, _body),
            _own("DELETE", schedule, schedules.delete),
            _own("POST", f"{schedule}:fire", schedules.fire),
            _own("POST", f"{schedule}:pause", schedules.pause),
            _own("POST", f"{schedule}:resume", schedules.resume),
            _own("PUT", "/clock", schedules.set_clock, _body),
            _own("DELETE", "/clock", schedules.unset_clock),
        ]


Arguments = Callable[[Mapping[str, str], Mapping[str, Any]], dict[str, Any]]
"""Makes a handler's arguments, beside the parameters of its path, of the query and the JSON object of a request."""


def _nothing(_query: Mapping[str, str], _body: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def _body(_query: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, Any]:
    return {"body": body}


def _allowing(headers: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, Any]:
    try:
        allowed = json.loads(headers.get(ALLOW_HEADER, "[]"))
    except ValueError:
        allowed = None
    if not isinstance(allowed, list):
        raise ApiError("INVALID_ARGUMENT", f"{ALLOW_HEADER} must be a JSON list of the places of problems.")
    return {"body": body, "allowed": frozenset(map(str, allowed))}


def _query(query: Mapping[str, str], _body: Mapping[str, Any]) -> dict[str, Any]:
    return {"parameters": query}


def _whole(query: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, Any]:
    return {"parameters": query, "body": body}


def _page(query: Mapping[str, str], _body: Mapping[str, Any]) -> dict[str, Any]:
    return {"list_request": ListRequest.parse(query)}


def _long_page(query: Mapping[str, str], _body: Mapping[str, Any]) -> dict[str, Any]:
    return {"list_request": ListRequest.parse(query, lineage.MAX_PAGE_SIZE)}


def _patch(query: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, Any]:
    return {"body": body, "update_mask": query.get("updateMask", "")}


def _route(
    method: str,
    path: str,
    handler: Handler,
    arguments: Arguments = _nothing,
    query: Collection[str] | None = (),
    headers: Collection[str] = (),
) -> Route:
    """Return a route that answers with the JSON object that `handler` returns, which runs in a thread.

    `query` are the query parameters of the method, None to ignore them. `headers` are given as if they were some too.
    """

    async def respond(request: Request) -> Response:
        body = await read_json(request) if method in ("POST", "PATCH", "PUT") else {}

        def reply() -> Response:
            parameters = {} if query is None else read_query(request.query_params, query)
            parameters |= {name: request.headers[name] for name in headers if name in request.headers}
            answer = handler(**request.path_params, **arguments(parameters, body))
            answer = with_api_version(answer, request.scope["path"].split("/")[1])
            if wants_enum_numbers(request.query_params):
                answer = with_enum_numbers(answer)
            # A page of studies with many trials is large, and this encoder is four times as fast as Python's own.
            return Response(to_json(answer), media_type=JSON_TYPE)

        try:
            return await run_in_thread(request, reply)
        except AnswerLost:
            request.scope["state"][ABORT]()
            return Response()  # which goes nowhere

    route = Route(path, respond, methods=[method])
    if query is not None:
        route.methods = {method}  # without HEAD, which Starlette adds to GET and Google's API does not have
    return route


def _own(method: str, path: str, handler: Handler, arguments: Arguments = _nothing) -> Route:
    return _route(method, f"/vertex_emulator{path}", handler, arguments, query=None)


def _convertor(pattern: str, parse: Callable[[str], Any]) -> Convertor[Any]:
    class PatternConvertor(Convertor[Any]):
        regex = pattern

        def convert(self, value: str) -> Any:
            return parse(value)

    return PatternConvertor()


def _in_one_region(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Refuse the region `-`: the service has no list of all regions. The text is that for a region elsewhere."""

    def parse_name(name: str) -> Any:
        if name.split("/")[3] == "-":
            message = "The provided location ID doesn't match the endpoint."
            raise ApiError("INVALID_ARGUMENT", f'{message} Name a region: "-" is none.')
        return parse(name)

    return parse_name


_BOARD = "|".join(BOARD_PATTERNS)
_BOARD_COLLECTION = "|".join(pattern.removesuffix(f"/{ID_PATTERN}") for pattern in BOARD_PATTERNS)
_NODE_COLLECTION = rf"{STORE_PATTERN}/(?:{'|'.join(LINEAGE_COLLECTIONS)})"
_NODE = rf"{_NODE_COLLECTION}/{ID_PATTERN}"
_PARENT = (
    rf"(?:{LOCATION_PATTERN}(?:/(?:{'|'.join((*KINDS, 'models'))})/{ID_PATTERN})?|{_BOARD}|{STORE_PATTERN}|{_NODE})"
)
_full_name = _in_one_region(with_number)
register_url_convertor("location", _convertor(LOCATION_PATTERN, _in_one_region(Location.parse)))
register_url_convertor("kind", _convertor("|".join(KINDS), KINDS.__getitem__))
register_url_convertor("id", _convertor(ID_PATTERN, str))  # a custom method such as `:cancel` may follow
register_url_convertor("parent", _convertor(_PARENT, _full_name))
register_url_convertor("operation", _convertor(rf"{_PARENT}/operations/{ID_PATTERN}", _full_name))
register_url_convertor("board", _convertor(_BOARD, _full_name))
register_url_convertor("boards", _convertor(_BOARD_COLLECTION, _full_name))
for _level, _pattern in zip(BOARD_COLLECTIONS, BOARD_PATTERNS, strict=True):
    register_url_convertor(_level, _convertor(_pattern, _full_name))
register_url_convertor("store", _convertor(STORE_PATTERN, _full_name))
register_url_convertor("stores", _convertor(STORE_PATTERN.removesuffix(f"/{ID_PATTERN}"), _full_name))
register_url_convertor("node", _convertor(_NODE, _full_name))
register_url_convertor("nodes", _convertor(_NODE_COLLECTION, _full_name))
for _name in LINEAGE_COLLECTIONS:
    register_url_convertor(_name, _convertor(f"{STORE_PATTERN}/{_name}/{ID_PATTERN}", _full_name))


async def _refuse(request: Request) -> Response:
    if request.method == "POST":
        await read_json(request)
    raise unserved(request.method, request.url.path)


def unserved(method: str, path: str) -> ApiError:
    """Return the error for a request that no route serves: UNIMPLEMENTED for a method of Vertex AI, else NOT_FOUND.

    Methods of Vertex AI are those of its discovery documents. What it does not have either is 404, as at Google's front
    end.
    """
    path = path.strip("/")
    if is_vertex_method(method, path):
        return unimplemented(method, path)
    return ApiError("NOT_FOUND", f"The requested URL /{path} was not found on this emulator ({method}).")


def unimplemented(method: str, path: str) -> ApiError:
    """Return the error for a method that the real service has and this emulator does not."""
    message = f"This emulator has no method {method} {path} (`vertex-training docs fidelity` lists what it has)."
    return ApiError("UNIMPLEMENTED", message)


_METHODS = "vertex_ai_methods.json"
_VERSIONS = ("v1", "v1beta1")
_ANY = "*"


def is_vertex_method(method: str, path: str) -> bool:
    """Return whether the discovery documents have a method for a path, such as `v1/projects/p/locations/r/models`."""
    version, separator, rest = path.partition(":" if path.startswith(tuple(f"{each}:" for each in _VERSIONS)) else "/")
    if version not in _VERSIONS:
        return False
    segments = (separator.strip("/") + rest).split("/")
    return method in _find_methods(_method_tree(version), segments, "")


def _find_methods(node: Mapping[str, Any], segments: list[str], previous: str) -> set[str]:
    """Return the HTTP methods at a path below a node of the tree of methods."""
    if not segments:
        return set(node.get("", ()))
    first, *rest = segments
    verb = first.rpartition(":")[2]
    # A project's id may contain a colon; elsewhere one comes before a custom method.
    candidates = [first] if ":" in first and previous != "projects" else [first, _ANY]
    candidates += [f"{_ANY}:{verb}"] if ":" in first else []
    children = (node[name] for name in candidates if name in node)
    return set().union(*(_find_methods(child, rest, first) for child in children))


@cache
def _method_tree(version: str) -> dict[str, Any]:
    """Return the methods of a version as a tree by segment; the key "" of a node has its HTTP methods."""
    document = json.loads(files(__package__).joinpath(_METHODS).read_text())
    tree: dict[str, Any] = {}
    for part in ("both", version):
        for method, paths in document[part].items():
            for path in paths:
                node = tree
                for segment in path.split("/"):
                    node = node.setdefault(segment, {})
                node.setdefault("", []).append(method)
    return tree
