"""The client of the training API: Google's own (`aiplatform_v1` over REST), for the cloud and the emulator alike."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from pydantic.alias_generators import to_snake

from vertex_api import credentials
from vertex_api.deferred import defer
from vertex_api.errors import (
    InvalidRequest,
    NotFound,
    OperationUnfinished,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
    Unavailable,
    VertexError,
)
from vertex_api.names import TRAINING_PIPELINE, JobJson, Kind, ResourceName, location_name
from vertex_api.retry import DISABLED_API, Caller, CallKind

Result = TypeVar("Result")
CALL_TIMEOUT = 60.0
"""Seconds for one call. Creating a job is quick; a list of 1,000 jobs takes a few."""
_EXECUTION_FIELDS = "executions(name,state,startTime,result,error/payload)"
MAX_PAGES, MAX_LIST_BYTES, MAX_LIST_SECONDS = 1_000, 256 << 20, 600.0
"""Of a list: 100,000 jobs."""
MAX_LINE_LENGTH = 10_000
_ID = re.compile(r"[\w-]+")


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
    ) -> JobJson:
        """Submit a job to `projects/P/locations/R` and return it as the service stores it.

        `check_before` is called right before the request is sent. If its answer is lost, `find_created` looks for the
        job before it is sent again. If it was sent again, `keep_first` is called with the job that one of the requests
        has created: it removes the others, and returns the one that stays.
        """
        request = {"parent": parent, to_snake(kind.type): self._message(kind, job)}

        def submit() -> JobJson:
            with translate_errors():
                return _job_json(self._send("create", kind, request), kind, parent)

        return self._caller.call(
            "create", submit, check_before=check_before, find_earlier_result=find_created, keep_first=keep_first
        )

    def require(self, name: ResourceName) -> JobJson:
        """Return the current job. Raises NotFound."""
        parent = location_name(name.project, name.region)
        return self._call(
            "get", lambda: _job_json(self._send("get", name.kind, {"name": str(name)}), name.kind, parent)
        )

    def list(self, kind: Kind, parent: str, filter: str) -> Sequence[JobJson]:
        """Return the jobs of a kind that match a filter such as `labels.team="vision"`."""
        request = {"parent": parent, "filter": filter, "page_size": 100}
        return self._call(
            "list",
            lambda: [
                _job_json(message, kind, parent)
                for page in _bounded_pages(self._send("list", kind, request))
                for message in getattr(page, to_snake(kind.collection))
            ],
        )

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
            self._call("get", lambda: operation.result(timeout=CALL_TIMEOUT))

    def list_executions(self, workflow: str) -> Sequence[JobJson]:
        """Return the last 100 executions of `projects/P/locations/R/workflows/W`, newest first; none without it."""
        # A BASIC view has no error and no result; of a FULL one, 100 is the most (REST reference, executions.list).
        query = {"pageSize": "100", "view": "FULL", "fields": _EXECUTION_FIELDS}
        url = f"{self._endpoint.executions}/v1/{workflow}/executions"

        def newest() -> Sequence[JobJson]:
            return [require_object(each) for each in require_list(self._json("GET", url, params=query), "executions")]

        try:
            return self._call("list", newest)
        except NotFound:
            return []

    def log_lines(self, name: ResourceName, count: int, replica: str | None = None) -> Sequence[str]:
        """Return the last `count` log lines of a job's containers.

        Or those of one `replica` such as workerpool1-0, or of all replicas of one pool, such as workerpool1.
        """
        if replica is None:
            task = '!="service"'
        elif "-" in replica:
            task = f'="{replica}"'
        else:
            task = f'=~"^{replica}-"'
        filter = f'resource.type="ml_job" AND resource.labels.job_id="{name.id}" AND resource.labels.task_name{task}'
        query = {"resourceNames": [f"projects/{name.project}"], "filter": filter, "orderBy": "timestamp desc"}
        url = f"{self._endpoint.logging}/v2/entries:list"

        def newest() -> Sequence[str]:
            entries = log_entries(lambda query: self._json("POST", url, json=query), query, count)
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
        from google.api_core.exceptions import from_http_response

        reply = self._session.request(method, url, timeout=CALL_TIMEOUT, **request)
        if not reply.ok:
            raise from_http_response(reply)
        return require_object(reply.json())

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


def _job_json(message: Any, kind: Kind, parent: str) -> JobJson:
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
        raise Unavailable(f'what answers is not the API: it names "{name[:200]}" among {expected}')
    return job


def _bounded_pages(pager: Any) -> Iterator[Any]:
    """Yield the pages of a list. Raises Unavailable for lists that do not end."""
    began, size = time.monotonic(), 0
    for number, page in enumerate(pager.pages):
        size += type(page).pb(page).ByteSize()
        if number >= MAX_PAGES or size > MAX_LIST_BYTES or time.monotonic() - began > MAX_LIST_SECONDS:
            raise Unavailable(
                f"the list does not end: it has {number} pages and {size >> 20} MiB so far; delete old jobs, or what "
                "answers is not the API"
            )
        yield page


def _log_line(entry: Mapping[str, Any]) -> str:
    payload = entry.get("jsonPayload", {})
    message = payload.get("message", payload) if isinstance(payload, Mapping) else payload
    return str(entry.get("textPayload") or message)[:MAX_LINE_LENGTH]


_MAX_LOG_PAGES = 20
"""A search over more is given up, so that nobody waits for it without end."""


def log_entries(
    send_query: Callable[[Mapping[str, Any]], Mapping[str, Any]], query: Mapping[str, Any], count: int
) -> list[Mapping[str, Any]]:
    """Return the first `count` entries that match a query, which `send_query` sends for one page after the other.

    A page with a `nextPageToken` may have fewer entries than asked for, even none: the search "did not have time to
    search all the possible log entries" (Google's page on entries.list of Cloud Logging).
    """
    entries: list[Mapping[str, Any]] = []
    query = {**query, "pageSize": count}
    for _ in range(_MAX_LOG_PAGES):
        page = send_query(query)
        found = page.get("entries")
        entries += [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []
        if len(entries) >= count or not page.get("nextPageToken"):
            break
        query["pageToken"] = page["nextPageToken"]
    return entries[:count]


_CAPACITY = re.compile(r"exceed quota limits: (.+)|quota metric '[^']*custom_model_training")
"""A quota of machines, as the service's refusals are quoted in stable-diffusion-on-gcp#12 and xmanager#29."""
_FOREIGN = "what answers is not the API, or a proxy stands before it"
_METRIC = re.compile(r"[\w.-]+\.googleapis\.com/[\w-]+")


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of Google's libraries as a VertexError."""
    import requests
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth
    from google.protobuf import json_format

    from vertex_api.transport import AnswerRefused

    try:
        yield
    # The API's own answers.
    except (api.NotFound, api.MethodNotImplemented) as error:
        raise NotFound(_shorten(error)) from error
    except (api.Unauthorized, api.Forbidden) as error:
        raise PermissionDenied(_shorten(error)) from error
    except api.TooManyRequests as error:
        raise _too_many_requests(error) from error
    except api.ClientError as error:
        raise InvalidRequest(_shorten(error)) from error
    except (api.GoogleAPICallError, api.RetryError) as error:
        raise Unavailable(_shorten(error), _retry_after(error)) from error
    # No answer of the API, or none at all.
    except (json_format.ParseError, requests.JSONDecodeError) as error:
        raise Unavailable(_FOREIGN) from error
    except TimeoutError as error:
        raise OperationUnfinished("what the service has accepted is still not done") from error
    except AnswerRefused as error:
        raise Unavailable(str(error)) from error
    except (requests.RequestException, auth.TransportError) as error:
        message = f"no answer from {_address(error)}: {_root_cause(error)}"
        raise Unavailable(message) from error
    except auth.GoogleAuthError as error:
        message = f"no valid Google credentials: {credentials.explain(error)}"
        raise PermissionDenied(message) from error
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        # What the libraries above raise for answers of other types than the API's, such as an `error` that is a text.
        raise Unavailable(_FOREIGN) from error


def require_object(value: Any) -> dict[str, Any]:
    """Return the JSON object that a service answers with. Raises Unavailable for anything else."""
    if not isinstance(value, dict):
        raise Unavailable(_FOREIGN)
    return value


def require_list(answer: Mapping[str, Any], field: str) -> list[Any]:
    """Return a list in an answer, empty if the field is missing. Raises Unavailable for anything else."""
    value = answer.get(field) or []
    if not isinstance(value, list):
        raise Unavailable(_FOREIGN)
    return value


def _too_many_requests(error: Any) -> VertexError:
    """Tell a quota that does not cover the request from a limit of requests a minute; both are 429.

    The limit's text is "Quota exceeded for quota metric '…' and limit '… per minute per region'"
    (vertex-ai-samples#1000), with the reason RATE_LIMIT_EXCEEDED. What is neither is a limit too: it was refused.
    """
    message = _shorten(error)
    if error.reason != "RATE_LIMIT_EXCEEDED" and _CAPACITY.search(message):
        return QuotaExceeded(message, _METRIC.findall(message))
    return RateLimited(message, _retry_after(error))


def _retry_after(error: Any) -> float | None:
    """Return for how long the service asks to wait: by the header `Retry-After`, or a `google.rpc.RetryInfo`."""
    headers: Mapping[str, str] = getattr(error.response, "headers", None) or {}
    details = [detail for detail in getattr(error, "details", None) or [] if isinstance(detail, Mapping)]
    infos = [detail for detail in details if str(detail.get("@type", "")).endswith("google.rpc.RetryInfo")]
    delays = [str(info.get("retryDelay", "")).removesuffix("s") for info in infos]
    for text in (headers.get("Retry-After", ""), *delays):
        with suppress(ValueError):
            return max(0.0, float(text))
    return None


def _shorten(error: Any) -> str:
    """Return the service's message in one line, without the URL that Google's client puts before it.

    It names the reason SERVICE_DISABLED of its details, of whose text nothing is promised (vertex-ai-samples#476).
    """
    text = " ".join(re.sub(r"^[A-Z]+ https?://\S+: ", "", str(error.message)).split())
    text = text if len(text) <= 500 else f"{text[:497]}..."
    reason = getattr(error, "reason", None)
    return f"{text} ({reason})" if reason == "SERVICE_DISABLED" and not DISABLED_API.refusal.search(text) else text


def _address(error: Any) -> str:
    request = getattr(error, "request", None)
    return "/".join(request.url.split("/")[:3]) if request is not None else "the API"


def _root_cause(error: BaseException) -> str:
    """Return the operating system's text for the error below the layers of HTTP libraries."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return getattr(error, "strerror", None) or type(error).__name__
