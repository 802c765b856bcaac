"""The client of the training API: Google's own (`aiplatform_v1` over REST), for the cloud and the emulator alike."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from pydantic.alias_generators import to_snake

from vertex_api import answers, credentials
from vertex_api.answers import require_list, require_object, translate_errors
from vertex_api.deferred import defer
from vertex_api.errors import InvalidRequest, NotFound
from vertex_api.names import ALLOW_HEADER, SERVICE_TASK, TRAINING_PIPELINE, JobJson, Kind, ResourceName, location_name
from vertex_api.retry import Caller, CallKind

Result = TypeVar("Result")
CALL_TIMEOUT = 60.0
"""Seconds for one call. Creating a job is quick; a list of 1,000 jobs takes a few."""
_EXECUTION_FIELDS = "executions(name,state,startTime,result,error/payload)"
MAX_LINE_LENGTH = 10_000


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


class Client:
    """The calls to the API that the provider needs, all made by its `caller`. Every method raises VertexError.

    Jobs are JSON objects with the API's own field names. Credentials are those of `vertex_api.credentials` for https;
    for http, as of the emulator, at most a token.
    """

    def __init__(self, endpoint: Endpoint, caller: Caller | None = None) -> None:
        self._endpoint = endpoint
        self._caller = caller or Caller()

    def create(
        self,
        kind: Kind,
        parent: str,
        job: JobJson,
        *,
        check_before: Callable[[], None],
        find_created: Callable[[], JobJson | None],
        keep_first: Callable[[JobJson], JobJson] = lambda job: job,
        allowed: Sequence[str] = (),
    ) -> JobJson:
        """Submit a job to `projects/P/locations/R` and return it as the service stores it.

        One with lifted problems, at `allowed` places, is sent as it is: Google's client lacks what is newer than it.
        `check_before` is called right before the request is sent. If its answer is lost, `find_created` looks for the
        job before it is sent again. If it was sent again, `keep_first` is called with the job that one of the requests
        has created: it removes the others, and returns the one that stays.
        """
        if allowed:
            url = f"{self._endpoint.jobs}/v1/{parent}/{kind.collection}"
            headers = {ALLOW_HEADER: json.dumps([*allowed])}  # for the emulator, which validates as a preview does
            send: Callable[[], Any] = partial(self._json, "POST", url, json=job, headers=headers)
        else:
            request = {"parent": parent, to_snake(kind.type): self._message(kind, job)}
            send = partial(self._send, "create", kind, request)

        def submit() -> JobJson:
            with translate_errors():
                return answers.read_job(send(), kind, parent)

        return self._caller.call(
            "create", submit, check_before=check_before, find_earlier_result=find_created, keep_first=keep_first
        )

    def require(self, name: ResourceName, *, is_whole: bool = False) -> JobJson:
        """Return the current job, with `is_whole` also what Google's client lacks of it. Raises NotFound."""
        request, parent = {"name": str(name)}, location_name(name.project, name.region)
        get = partial(self._send, "get", name.kind, request)
        if is_whole:
            get = partial(self._json, "GET", f"{self._endpoint.jobs}/v1/{name}")
        return self._call("get", lambda: answers.read_job(get(), name.kind, parent, name))

    def find(self, kind: Kind, parent: str, condition: str) -> Sequence[JobJson]:
        """Return the jobs of a kind that meet a condition such as `labels.team="vision"`."""
        request = {"parent": parent, "filter": condition, "page_size": 100}

        def jobs() -> Sequence[JobJson]:
            pages = answers.bounded_pages(self._send("list", kind, request))
            messages = (message for page in pages for message in getattr(page, to_snake(kind.collection)))
            return [answers.read_job(message, kind, parent) for message in messages]

        return self._call("list", jobs)

    def cancel(self, name: ResourceName) -> None:
        """Request that a job is stopped. It reaches a terminal state later."""
        self._call("cancel", lambda: self._send("cancel", name.kind, {"name": str(name)}))

    def delete(self, name: ResourceName) -> None:
        """Delete a job that has reached a terminal state, and wait until it is deleted. Raises NotFound."""
        tries = 0

        def start() -> Any:
            nonlocal tries
            tries += 1
            try:
                with translate_errors():
                    return self._send("delete", name.kind, {"name": str(name)})
            except NotFound:
                if tries > 1:
                    return None  # an earlier try, whose answer was lost, has deleted it
                raise

        if operation := self._caller.call("delete", start):
            answers.check_operation(operation.operation, location_name(name.project, name.region))
            self._call("get", lambda: operation.result(timeout=CALL_TIMEOUT))

    def list_executions(self, workflow: str) -> Sequence[JobJson]:
        """Return the last 100 executions of `projects/P/locations/R/workflows/W`, newest first; none without it."""
        # A BASIC view has no error and no result; of a FULL one, 100 is the most (REST reference, executions.list).
        query = {"pageSize": "100", "view": "FULL", "fields": _EXECUTION_FIELDS}
        url = f"{self._endpoint.executions}/v1/{workflow}/executions"

        def newest() -> Sequence[JobJson]:
            answer = self._json("GET", url, params=query)
            return [require_object(each) for each in require_list(answer, "executions")]

        try:
            return self._call("list", newest)
        except NotFound:
            return []

    def log_lines(self, name: ResourceName, count: int, replica: str | None = None) -> Sequence[str]:
        """Return the last `count` log lines of a job's containers.

        Or those of one `replica` such as workerpool1-0, of all replicas of one pool, such as workerpool1, or of the
        service, `SERVICE_TASK`.
        """
        tasks = f"resource.labels.task_name{_tasks(replica)}"
        condition = f'resource.type="ml_job" AND resource.labels.job_id="{name.id}" AND {tasks}'
        query = {"resourceNames": [f"projects/{name.project}"], "filter": condition, "orderBy": "timestamp desc"}
        url = f"{self._endpoint.logging}/v2/entries:list"

        def newest() -> Sequence[str]:
            entries = answers.log_entries(lambda query: self._json("POST", url, json=query), query, count)
            return [_log_line(entry) for entry in reversed(entries)]

        return self._call("read_log", newest)

    def _call(self, call_kind: CallKind, attempt: Callable[[], Result]) -> Result:
        def translated() -> Result:
            with translate_errors():
                return attempt()

        return self._caller.call(call_kind, translated)

    def _send(self, call_kind: CallKind, kind: Kind, request: dict[str, Any]) -> Any:
        return self._method(call_kind, kind)(request=request, timeout=CALL_TIMEOUT)

    def _json(self, method: str, url: str, **request: Any) -> dict[str, Any]:
        """Send a request to an API that Google's client is not for."""
        return answers.read_json(self._session.request(method, url, timeout=CALL_TIMEOUT, **request))

    def _method(self, call_kind: CallKind, kind: Kind) -> Callable[..., Any]:
        noun = to_snake(kind.collection if call_kind == "list" else kind.type)
        client = self._pipeline_client if kind == TRAINING_PIPELINE else self._job_client
        return getattr(client, f"{call_kind}_{noun}")  # type: ignore[no-any-return]

    def _message(self, kind: Kind, job: JobJson) -> Any:
        from google.protobuf import json_format

        message = getattr(_aiplatform(f"types.{to_snake(kind.type)}"), kind.type)()
        try:
            json_format.ParseDict(job, type(message).pb(message))
        except json_format.ParseError as error:
            raise InvalidRequest(f"Google's client does not send it: {error}") from error
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

        return self._bounded(AuthorizedSession(self._credentials))

    def _bounded(self, session: Any) -> Any:
        """Return the session, bounded, which ignores configured proxies if the server is on this machine."""
        from vertex_api import transport

        session.trust_env = not self._endpoint.jobs.startswith("http://")
        return transport.mount(session)

    @cached_property
    def _job_client(self) -> Any:
        return self._build_client("job_service", "JobService")

    @cached_property
    def _pipeline_client(self) -> Any:
        return self._build_client("pipeline_service", "PipelineService")

    def _build_client(self, module: str, service: str) -> Any:
        client_class = getattr(_aiplatform(f"services.{module}.client"), f"{service}Client")
        transports = _aiplatform(f"services.{module}.transports.rest")
        scheme, _, host = self._endpoint.jobs.partition("://")
        options = {"host": host, "url_scheme": scheme, "credentials": self._credentials}
        transport = getattr(transports, f"{service}RestTransport")(**options)
        self._bounded(transport._session)
        return client_class(transport=transport)


def _aiplatform(module: str) -> ModuleType:
    """Import a module of `google.cloud.aiplatform_v1` without the clients and messages that jobs do not need."""
    for package in ("", ".types", ".services"):
        defer(f"google.cloud.aiplatform_v1{package}")
    return import_module(f"google.cloud.aiplatform_v1.{module}")


def _tasks(replica: str | None) -> str:
    """Return the end of a log filter's condition on a task: one replica's, those of a pool, or all but the service."""
    if replica is None:
        return f'!="{SERVICE_TASK}"'
    return f'="{replica}"' if "-" in replica or replica == SERVICE_TASK else f'=~"^{replica}-"'


def _log_line(entry: Mapping[str, Any]) -> str:
    payload = entry.get("jsonPayload", {})
    message = payload.get("message", payload) if isinstance(payload, Mapping) else payload
    return str(entry.get("textPayload") or message)[:MAX_LINE_LENGTH]
