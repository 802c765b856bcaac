"""All routes of the API: the training API (v1 and v1beta1), Cloud Logging, and the emulator's own commands."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from vertex_api.names import KINDS
from vertex_emulator.api.cli_backend_service import CliBackendService
from vertex_emulator.api.injected_request_faults import InjectedRequestFaults
from vertex_emulator.api.job_service import JobService
from vertex_emulator.api.list_request import ListRequest
from vertex_emulator.api.logging.log_entry_listing import LogEntryListingService
from vertex_emulator.api.model_export import ModelExportService
from vertex_emulator.api.model_service import ModelService
from vertex_emulator.api.operation_service import OperationService
from vertex_emulator.api.unserved_path_errors import build_unimplemented_or_not_found_error
from vertex_emulator.errors import AnswerLost
from vertex_emulator.http.allowed_query_parameters import (
    LIST_PARAMETERS,
    OPERATION_LIST_PARAMETERS,
    ORDERED_LIST_PARAMETERS,
    UPDATE_PARAMETERS,
    WAIT_PARAMETERS,
    get_checked_camel_case_query,
)
from vertex_emulator.http.connection_with_peer_user import ABORT_CONNECTION
from vertex_emulator.http.json_request_body import read_json_object
from vertex_emulator.http.json_responses import respond_with_json_from_thread
from vertex_emulator.names import ID_PATTERN, LOCATION_PATTERN, Location
from vertex_emulator.resources import with_api_version
from vertex_emulator.schedules.schedule_service import ScheduleService
from vertex_emulator.schedules.schedules_clock import ScheduleClockService
from vertex_emulator.secrets import SecretValues

_COLLECTIONS = (*KINDS, "models")
_PARENT = rf"{LOCATION_PATTERN}(?:/(?:{'|'.join(_COLLECTIONS)})/{ID_PATTERN})?"


def build_routes(
    jobs: JobService,
    models: ModelService,
    model_export: ModelExportService,
    operations: OperationService,
    logging: LogEntryListingService,
    cli_backend: CliBackendService,
    request_faults: InjectedRequestFaults,
    secrets: SecretValues,
    schedules: ScheduleService,
    schedule_clock: ScheduleClockService,
) -> list[BaseRoute]:
    """Return every route of the API; path parameters are passed to the handler as arguments of the same names."""
    apply_faults = request_faults.wrap_handler
    one_job, one_model = "/{location:location}/{kind:kind}/{job_id:id}", "/{location:location}/models/{model:id}"
    training = [
        _create_route("GET", "/{location:location}/{kind:kind}", apply_faults(jobs.list_jobs), LIST_PARAMETERS),
        _create_route("POST", "/{location:location}/{kind:kind}", apply_faults(jobs.create, "create"), has_body=True),
        _create_route("GET", one_job, apply_faults(jobs.get)),
        _create_route("DELETE", one_job, apply_faults(jobs.delete, "delete")),
        _create_route("POST", f"{one_job}:cancel", apply_faults(jobs.cancel_unless_ended)),
        _create_route("GET", "/{location:location}/models", models.list_models, ORDERED_LIST_PARAMETERS),
        _create_route("POST", "/{location:location}/models:upload", models.upload, has_body=True),
        _create_route("GET", one_model, models.get),
        _create_route("DELETE", one_model, models.delete),
        _create_route("PATCH", one_model, models.patch, UPDATE_PARAMETERS, has_body=True),
        _create_route("POST", "/{location:location}/models:copy", models.copy, has_body=True),
        _create_route("POST", f"{one_model}:mergeVersionAliases", models.merge_version_aliases, has_body=True),
        _create_route("POST", f"{one_model}:export", model_export.export, has_body=True),
        _create_route("DELETE", f"{one_model}:deleteVersion", models.delete_version),
        _create_route("GET", f"{one_model}:listVersions", models.list_versions, ORDERED_LIST_PARAMETERS),
        _create_route("GET", "/{parent:parent}/operations", operations.list_operations, OPERATION_LIST_PARAMETERS),
        _create_route("GET", "/{name:operation}", operations.get),
        _create_route("DELETE", "/{name:operation}", operations.delete),
        _create_route("POST", "/{name:operation}:cancel", operations.accept_cancel_of_done_operation),
        _create_route("POST", "/{name:operation}:wait", operations.get, WAIT_PARAMETERS),
        _create_route(
            "GET",
            "/projects/{project:id}/secrets/{secret:id}/versions/{version:id}:access",
            secrets.access,
        ),
        Route("/{path:path}", _raise_unserved_path_error, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ]
    return [
        Mount("/v1", routes=training),
        Mount("/v1beta1", routes=training),
        _create_route("POST", "/v2/entries:list", logging.list_entries, parameters=None, has_body=True),
        _create_route("GET", "/vertex_emulator/status", cli_backend.get_emulator_status, parameters=None),
        _create_route("POST", "/vertex_emulator/stop", cli_backend.stop_emulator, parameters=None),
        _create_route("POST", "/vertex_emulator/prune", cli_backend.prune_jobs, parameters=None, has_body=True),
        _create_route(
            "GET", "/vertex_emulator/jobs/{job_id}", cli_backend.get_job_state_and_log_source, parameters=None
        ),
        _create_route(
            "GET", "/vertex_emulator/jobs/{job_id}/replicas", cli_backend.get_job_state_and_replicas, parameters=None
        ),
        _create_route(
            "GET",
            "/vertex_emulator/jobs/{job_id}/log_folders",
            cli_backend.get_job_name_and_event_file_folders,
            parameters=None,
        ),
        _create_route("POST", "/vertex_emulator/faults", cli_backend.inject_fault, parameters=None, has_body=True),
        _create_route("DELETE", "/vertex_emulator/faults", cli_backend.clear_faults, parameters=None),
        *_build_schedule_routes(schedules, schedule_clock),
    ]


def _build_schedule_routes(schedules: ScheduleService, clock: ScheduleClockService) -> list[BaseRoute]:
    some, clock_path = "/vertex_emulator/{location:location}/schedules", "/vertex_emulator/clock"
    one = f"{some}/{{schedule:id}}"
    return [
        _create_route("GET", "/vertex_emulator/schedules", schedules.list_schedules, parameters=None),
        _create_route("GET", some, schedules.list_schedules, parameters=None),
        _create_route("GET", one, schedules.get, parameters=None),
        _create_route("PUT", one, schedules.put, parameters=None, has_body=True),
        _create_route("DELETE", one, schedules.delete, parameters=None),
        _create_route("POST", f"{one}:fire", schedules.fire_and_get_schedule, parameters=None),
        _create_route("POST", f"{one}:pause", schedules.pause, parameters=None),
        _create_route("POST", f"{one}:resume", schedules.resume, parameters=None),
        _create_route("PUT", clock_path, clock.set_time_and_begin_passed_runs, parameters=None, has_body=True),
        _create_route("DELETE", clock_path, clock.unset_time_and_skip_passed_times, parameters=None),
    ]


def _create_route(
    method: str,
    path: str,
    handler: Callable[..., Mapping[str, Any]],
    parameters: frozenset[str] | None = frozenset(),
    has_body: bool = False,
) -> Route:
    """Return a route that answers with the JSON object that `handler` returns, which runs in a thread.

    `parameters` are the query parameters of the method, None to ignore the query. A list method's handler gets them as
    its argument `list_request`, that of a patch the mask as `update_mask`, one with `has_body` the request's JSON
    object as `body`.
    """

    async def respond(request: Request) -> Response:
        body = await read_json_object(request) if method in ("POST", "PATCH", "PUT") else {}

        def call_handler() -> Mapping[str, Any]:
            arguments = dict(request.path_params)
            query = {} if parameters is None else get_checked_camel_case_query(request.query_params, parameters)
            if parameters and "pageSize" in parameters:
                arguments["list_request"] = ListRequest.from_query(query)
            if parameters and "updateMask" in parameters:
                arguments["update_mask"] = query.get("updateMask", "")
            if has_body:
                arguments["body"] = body
            return with_api_version(handler(**arguments), request.scope["path"].split("/")[1])

        try:
            return await respond_with_json_from_thread(request, call_handler)
        except AnswerLost:
            request.scope["state"][ABORT_CONNECTION]()
            return Response()  # which goes nowhere

    route = Route(path, respond, methods=[method])
    if parameters is not None:
        route.methods = {method}  # without HEAD, which Starlette adds to GET and Google's API does not have
    return route


async def _raise_unserved_path_error(request: Request) -> Response:
    """Raise the error for a path or a method that has no route."""
    if request.method == "POST":
        await read_json_object(request)
    raise build_unimplemented_or_not_found_error(request.method, request.url.path)


def _replace_project_id_with_number(name: str) -> str:
    """Return the full name of a location or a resource in it, with the project's number."""
    parts = name.split("/")
    return "/".join([Location.parse("/".join(parts[:4])).name, *parts[4:]])


def _build_url_convertor(pattern: str, parse: Callable[[str], Any]) -> Convertor[Any]:
    class PatternConvertor(Convertor[Any]):
        regex = pattern

        def convert(self, value: str) -> Any:
            return parse(value)

    return PatternConvertor()


register_url_convertor("location", _build_url_convertor(LOCATION_PATTERN, Location.parse))
register_url_convertor("kind", _build_url_convertor("|".join(KINDS), KINDS.__getitem__))
# A custom method such as `:cancel` may follow.
register_url_convertor("id", _build_url_convertor(ID_PATTERN, str))
register_url_convertor("parent", _build_url_convertor(_PARENT, _replace_project_id_with_number))
register_url_convertor(
    "operation", _build_url_convertor(rf"{_PARENT}/operations/{ID_PATTERN}", _replace_project_id_with_number)
)
