"""The client of the training API: Google's own (`aiplatform_v1` over REST), for the cloud and the emulator alike."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from pydantic.alias_generators import to_snake

from vertex_api import client_errors
from vertex_api.calls import credentials
from vertex_api.calls.error_translation import require_list, require_object, translate_errors
from vertex_api.calls.log_entry_pages import collect_log_entries
from vertex_api.calls.retry_rules import CallKind
from vertex_api.calls.retrying_caller import RetryingCaller
from vertex_api.deferred_packages import register_deferred_package
from vertex_api.job_kinds import TRAINING_PIPELINE, Kind
from vertex_api.resource_names import ResourceName, build_parent

Job = dict[str, Any]
CALL_TIMEOUT = 60.0
"""Seconds for one call. Creating a job is quick; a list of 1,000 jobs takes a few."""
_EXECUTION_FIELDS = "executions(name,state,startTime,result,error/payload)"
MAX_PAGES, MAX_LIST_BYTES, MAX_LIST_SECONDS = 1_000, 256 << 20, 600.0
"""Of a list: 100,000 jobs."""
MAX_LINE_LENGTH = 10_000
_ID = re.compile(r"[\w-]+")


class JobClient(Protocol):
    """The calls to the API that the provider needs. Jobs are JSON objects with the API's own field names.

    Every method raises VertexError.
    """

    def create(
        self,
        kind: Kind,
        parent: str,
        job: Job,
        *,
        check_before: Callable[[], None],
        find_created: Callable[[], Job | None],
        keep_first: Callable[[Job], Job] = lambda job: job,
    ) -> Job:
        """Submit a job to `projects/P/locations/R` and return it as the service stores it.

        `check_before` is called right before the request is sent. If its answer is lost, `find_created` looks for the
        job before it is sent again. If it was sent again, `keep_first` is called with the job that one of the requests
        has created: it removes the others, and returns the one that stays.
        """

    def require(self, name: ResourceName) -> Job:
        """Return the current job. Raises NotFound."""

    def list(self, kind: Kind, parent: str, filter: str) -> Sequence[Job]:
        """Return the jobs of a kind that match a filter such as `labels.team="vision"`."""

    def cancel(self, name: ResourceName) -> None:
        """Request that a job is stopped. It reaches a terminal state later."""

    def delete_and_wait(self, name: ResourceName) -> None:
        """Delete a job that has reached a terminal state, and wait until it is deleted. Raises NotFound."""

    def list_executions(self, workflow: str) -> Sequence[Job]:
        """Return the last 100 executions of `projects/P/locations/R/workflows/W`, newest first; none without it."""

    def fetch_log_lines(self, name: ResourceName, count: int, replica: str | None = None) -> Sequence[str]:
        """Return the last `count` log lines of a job's containers, or of one `replica` such as workerpool0-0."""


@dataclass(frozen=True)
class Endpoint:
    """The base URLs of Vertex AI, Cloud Logging and Workflow Executions.

    `token` is the bearer token of a server that is not Google's.
    """

    jobs: str
    logging: str
    token: str = field(default="", repr=False)
    executions: str = "https://workflowexecutions.googleapis.com"

    @classmethod
    def for_region(cls, region: str) -> "Endpoint":
        """Return Google's endpoints for a region."""
        return cls(f"https://{region}-aiplatform.googleapis.com", "https://logging.googleapis.com")

    @classmethod
    def for_server(cls, url: str, token: str = "") -> "Endpoint":
        """Return the endpoints of one server for both, such as the emulator."""
        return cls(url, url, token, url)


class RestClient:
    """JobClient over REST, whose calls are all made by its `caller`.

    Those of `vertex_api.calls.credentials` for https; for http, as of the emulator, at most a token.
    """

    def __init__(self, endpoint: Endpoint, caller: RetryingCaller | None = None) -> None:
        self._endpoint = endpoint
        self._caller = caller or RetryingCaller()

    def create(
        self,
        kind: Kind,
        parent: str,
        job: Job,
        *,
        check_before: Callable[[], None],
        find_created: Callable[[], Job | None],
        keep_first: Callable[[Job], Job] = lambda job: job,
    ) -> Job:
        request = {"parent": parent, to_snake(kind.type): self._build_proto_message(kind, job)}
        return self._caller.call(
            "create",
            lambda: _convert_to_job_json(self._send("create", kind, request), kind, parent),
            check_before=check_before,
            find_earlier_result=find_created,
            keep_first=keep_first,
        )

    def require(self, name: ResourceName) -> Job:
        parent = build_parent(name.project, name.region)
        return self._caller.call(
            "get", lambda: _convert_to_job_json(self._send("get", name.kind, {"name": str(name)}), name.kind, parent)
        )

    def list(self, kind: Kind, parent: str, filter: str) -> Sequence[Job]:
        request = {"parent": parent, "filter": filter, "page_size": 100}

        def list_all_pages() -> Sequence[Job]:
            with translate_errors():
                return [
                    _convert_to_job_json(message, kind, parent)
                    for page in _iterate_bounded_pages(self._send("list", kind, request))
                    for message in getattr(page, to_snake(kind.collection))
                ]

        return self._caller.call("list", list_all_pages)

    def cancel(self, name: ResourceName) -> None:
        self._caller.call("cancel", lambda: self._send("cancel", name.kind, {"name": str(name)}))

    def delete_and_wait(self, name: ResourceName) -> None:
        tries = 0

        def start_deletion_or_none_if_already_deleted() -> Any:
            nonlocal tries
            tries += 1
            try:
                return self._send("delete", name.kind, {"name": str(name)})
            except client_errors.NotFound:
                if tries > 1:
                    return None  # an earlier try, whose answer was lost, has deleted it
                raise

        if operation := self._caller.call("delete", start_deletion_or_none_if_already_deleted):

            def wait_for_end() -> None:
                with translate_errors():
                    operation.result(timeout=CALL_TIMEOUT)

            self._caller.call("get", wait_for_end)

    def list_executions(self, workflow: str) -> Sequence[Job]:
        # A BASIC view has no error and no result; of a FULL one, 100 is the most (REST reference, executions.list).
        query = {"pageSize": "100", "view": "FULL", "fields": _EXECUTION_FIELDS}
        url = f"{self._endpoint.executions}/v1/{workflow}/executions"

        def list_newest() -> Sequence[Job]:
            with translate_errors():
                return list(map(require_object, require_list(self._fetch_json("GET", url, params=query), "executions")))

        try:
            return self._caller.call("list", list_newest)
        except client_errors.NotFound:
            return []

    def fetch_log_lines(self, name: ResourceName, count: int, replica: str | None = None) -> Sequence[str]:
        return self._caller.call("read_log", lambda: self._query_log_lines(name, count, replica))

    def _query_log_lines(self, name: ResourceName, count: int, replica: str | None) -> Sequence[str]:
        task = f'="{replica}"' if replica else '!="service"'
        filter = f'resource.type="ml_job" AND resource.labels.job_id="{name.id}" AND resource.labels.task_name{task}'
        query = {"resourceNames": [f"projects/{name.project}"], "filter": filter, "orderBy": "timestamp desc"}

        def send_query(query: Mapping[str, Any]) -> dict[str, Any]:
            return self._fetch_json("POST", f"{self._endpoint.logging}/v2/entries:list", json=query)

        with translate_errors():
            return [_get_log_entry_text(entry) for entry in reversed(collect_log_entries(send_query, query, count))]

    def _fetch_json(self, method: str, url: str, **request: Any) -> dict[str, Any]:
        from google.api_core.exceptions import from_http_response

        reply = self._session.request(method, url, timeout=CALL_TIMEOUT, **request)
        if not reply.ok:
            raise from_http_response(reply)
        return require_object(reply.json())

    def _send(self, call_kind: CallKind, kind: Kind, request: dict[str, Any]) -> Any:
        with translate_errors():
            return self._get_client_method(call_kind, kind)(request=request, timeout=CALL_TIMEOUT)

    def _get_client_method(self, call_kind: CallKind, kind: Kind) -> Callable[..., Any]:
        noun = to_snake(kind.collection if call_kind == "list" else kind.type)
        client = self._pipeline_client if kind == TRAINING_PIPELINE else self._job_client
        return getattr(client, f"{call_kind}_{noun}")  # type: ignore[no-any-return]

    def _build_proto_message(self, kind: Kind, job: Job) -> Any:
        from google.protobuf import json_format

        message = getattr(_import_aiplatform_module_alone(f"types.{to_snake(kind.type)}"), kind.type)()
        try:
            json_format.ParseDict(job, type(message).pb(message))
        except json_format.ParseError as error:
            raise client_errors.InvalidRequest(f"Google's client does not send it: {error}") from error
        return message

    @cached_property
    def _credentials(self) -> Any:
        from google.auth.credentials import AnonymousCredentials

        if self._endpoint.token:
            from google.oauth2.credentials import Credentials

            return Credentials(self._endpoint.token)
        if self._endpoint.jobs.startswith("http://"):
            return AnonymousCredentials()
        with translate_errors():
            return credentials.load()

    @cached_property
    def _session(self) -> Any:
        from google.auth.transport.requests import AuthorizedSession

        return self._set_proxy_use_and_return_session(AuthorizedSession(self._credentials))

    def _set_proxy_use_and_return_session(self, session: Any) -> Any:
        """Return the session, bounded, which ignores configured proxies if the server is on this machine."""
        from vertex_api.calls import bounded_transport

        session.trust_env = not self._endpoint.jobs.startswith("http://")
        return bounded_transport.mount(session)

    @cached_property
    def _job_client(self) -> Any:
        return self._build_client("job_service", "JobService")

    @cached_property
    def _pipeline_client(self) -> Any:
        return self._build_client("pipeline_service", "PipelineService")

    def _build_client(self, module: str, service: str) -> Any:
        client_class = getattr(_import_aiplatform_module_alone(f"services.{module}.client"), f"{service}Client")
        transports = _import_aiplatform_module_alone(f"services.{module}.transports.rest")
        scheme, _, host = self._endpoint.jobs.partition("://")
        options = {"host": host, "url_scheme": scheme, "credentials": self._credentials}
        transport = getattr(transports, f"{service}RestTransport")(**options)
        self._set_proxy_use_and_return_session(transport._session)
        return client_class(transport=transport)


def _import_aiplatform_module_alone(module: str) -> ModuleType:
    """Import a module of `google.cloud.aiplatform_v1` without the clients and messages that jobs do not need."""
    for package in ("", ".types", ".services"):
        register_deferred_package(f"google.cloud.aiplatform_v1{package}")
    return import_module(f"google.cloud.aiplatform_v1.{module}")


def _convert_to_job_json(message: Any, kind: Kind, parent: str) -> Job:
    """Return a job as JSON. Raises Unavailable for one of another kind or region, which a later call would act on.

    Its project may be the number in place of the id.
    """
    from google.protobuf import json_format

    job = dict(json_format.MessageToDict(type(message).pb(message)))
    name, region = str(job.get("name", "")), parent.rpartition("/")[2]
    try:
        found = ResourceName.parse(name)
    except ValueError:
        found = None
    if found is None or (found.kind, found.region) != (kind, region) or not _ID.fullmatch(found.id):
        expected = f"{kind.collection} of {region}"
        raise client_errors.Unavailable(f'what answers is not the API: it names "{name[:200]}" among {expected}')
    return job


def _iterate_bounded_pages(pager: Any) -> Iterator[Any]:
    """Yield the pages of a list. Raises Unavailable for lists that do not end."""
    began, size = time.monotonic(), 0
    for number, page in enumerate(pager.pages):
        size += type(page).pb(page).ByteSize()
        if number >= MAX_PAGES or size > MAX_LIST_BYTES or time.monotonic() - began > MAX_LIST_SECONDS:
            raise client_errors.Unavailable(
                f"the list does not end: it has {number} pages and {size >> 20} MiB so far; delete old jobs, or what "
                "answers is not the API"
            )
        yield page


def _get_log_entry_text(entry: Mapping[str, Any]) -> str:
    payload = entry.get("jsonPayload", {})
    message = payload.get("message", payload) if isinstance(payload, Mapping) else payload
    return str(entry.get("textPayload") or message)[:MAX_LINE_LENGTH]
