"""The client of the training API: Google's own (`aiplatform_v1` over REST), for the cloud and the emulator alike."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from pydantic.alias_generators import to_snake

from vertex_api import client_errors
from vertex_api.deferred_packages import register_deferred_package
from vertex_api.job_kinds import TRAINING_PIPELINE, Kind
from vertex_api.resource_names import ResourceName

Job = dict[str, Any]
CALL_TIMEOUT = 60.0
"""Seconds for one call. Creating a job is quick; a list of 1,000 jobs takes a few."""


class JobClient(Protocol):
    """The calls to the API that the provider needs. Jobs are JSON objects with the API's own field names.

    Every method raises VertexError.
    """

    def create(self, kind: Kind, parent: str, job: Job) -> Job:
        """Submit a job to `projects/P/locations/R` and return it as the service stores it."""

    def require(self, name: ResourceName) -> Job:
        """Return the current job. Raises NotFound."""

    def list(self, kind: Kind, parent: str, filter: str) -> Sequence[Job]:
        """Return the jobs of a kind that match a filter such as `labels.team="vision"`."""

    def cancel(self, name: ResourceName) -> None:
        """Request that a job is stopped. It reaches a terminal state later."""

    def delete_and_wait(self, name: ResourceName) -> None:
        """Delete a job that has reached a terminal state, and wait until it is deleted. Raises NotFound."""

    def fetch_log_lines(self, name: ResourceName, count: int, replica: str | None = None) -> Sequence[str]:
        """Return the last `count` log lines of a job's containers, or of one `replica` such as workerpool0-0."""


@dataclass(frozen=True)
class Endpoint:
    """The base URLs of Vertex AI and of Cloud Logging, and the bearer token of a server that is not Google's."""

    jobs: str
    logging: str
    token: str = field(default="", repr=False)

    @classmethod
    def for_region(cls, region: str) -> "Endpoint":
        """Return Google's endpoints for a region."""
        return cls(f"https://{region}-aiplatform.googleapis.com", "https://logging.googleapis.com")

    @classmethod
    def for_server(cls, url: str, token: str = "") -> "Endpoint":
        """Return the endpoints of one server for both, such as the emulator."""
        return cls(url, url, token)


class RestClient:
    """JobClient over REST. Application Default Credentials for https; for http, as of the emulator, at most a token."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def create(self, kind: Kind, parent: str, job: Job) -> Job:
        message = self._build_proto_message(kind, job)
        return self._call_for_job("create", kind, parent=parent, **{to_snake(kind.type): message})

    def require(self, name: ResourceName) -> Job:
        return self._call_for_job("get", name.kind, name=str(name))

    def list(self, kind: Kind, parent: str, filter: str) -> Sequence[Job]:
        with _translate_errors():
            request = {"parent": parent, "filter": filter, "page_size": 100}
            return list(map(_to_job, self._get_client_method("list", kind)(request=request, timeout=CALL_TIMEOUT)))

    def cancel(self, name: ResourceName) -> None:
        with _translate_errors():
            self._get_client_method("cancel", name.kind)(request={"name": str(name)}, timeout=CALL_TIMEOUT)

    def delete_and_wait(self, name: ResourceName) -> None:
        with _translate_errors():
            operation = self._get_client_method("delete", name.kind)(request={"name": str(name)}, timeout=CALL_TIMEOUT)
            operation.result(timeout=CALL_TIMEOUT)

    def fetch_log_lines(self, name: ResourceName, count: int, replica: str | None = None) -> Sequence[str]:
        from google.api_core.exceptions import from_http_response

        task = f'="{replica}"' if replica else '!="service"'
        filter = f'resource.type="ml_job" AND resource.labels.job_id="{name.id}" AND resource.labels.task_name{task}'
        body: dict[str, Any] = {"resourceNames": [f"projects/{name.project}"], "filter": filter}
        body |= {"orderBy": "timestamp desc", "pageSize": count}
        with _translate_errors():
            reply = self._session.post(f"{self._endpoint.logging}/v2/entries:list", json=body, timeout=CALL_TIMEOUT)
            if not reply.ok:
                raise from_http_response(reply)
            return [_get_log_entry_text(entry) for entry in reversed(reply.json().get("entries", []))]

    def _call_for_job(self, verb: str, kind: Kind, **request: Any) -> Job:
        with _translate_errors():
            return _to_job(self._get_client_method(verb, kind)(request=request, timeout=CALL_TIMEOUT))

    def _get_client_method(self, verb: str, kind: Kind) -> Callable[..., Any]:
        noun = to_snake(kind.collection if verb == "list" else kind.type)
        client = self._pipeline_client if kind == TRAINING_PIPELINE else self._job_client
        return getattr(client, f"{verb}_{noun}")  # type: ignore[no-any-return]

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
        import google.auth
        from google.auth.credentials import AnonymousCredentials

        if self._endpoint.token:
            from google.oauth2.credentials import Credentials

            return Credentials(self._endpoint.token)
        if self._endpoint.jobs.startswith("http://"):
            return AnonymousCredentials()
        with _translate_errors():
            return google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])[0]

    @cached_property
    def _session(self) -> Any:
        from google.auth.transport.requests import AuthorizedSession

        return self._bypass_proxies_if_local(AuthorizedSession(self._credentials))

    def _bypass_proxies_if_local(self, session: Any) -> Any:
        """Return the session, which ignores configured proxies if the server is on this machine."""
        session.trust_env = not self._endpoint.jobs.startswith("http://")
        return session

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
        self._bypass_proxies_if_local(transport._session)
        return client_class(transport=transport)


def _import_aiplatform_module_alone(module: str) -> ModuleType:
    """Import a module of `google.cloud.aiplatform_v1` without the clients and messages that jobs do not need."""
    for package in ("", ".types", ".services"):
        register_deferred_package(f"google.cloud.aiplatform_v1{package}")
    return import_module(f"google.cloud.aiplatform_v1.{module}")


def _to_job(message: Any) -> Job:
    from google.protobuf import json_format

    return dict(json_format.MessageToDict(type(message).pb(message)))


def _get_log_entry_text(entry: dict[str, Any]) -> str:
    payload = entry.get("jsonPayload", {})
    return str(entry.get("textPayload") or payload.get("message") or payload)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise errors of Google's libraries as those of `vertex_api.client_errors`, one line each."""
    import requests
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth
    from google.protobuf import json_format

    try:
        yield
    except (api.NotFound, api.MethodNotImplemented) as error:
        raise client_errors.NotFound(_shorten_error_message(error)) from error
    except (api.Unauthorized, api.Forbidden) as error:
        raise client_errors.PermissionDenied(_shorten_error_message(error)) from error
    except api.TooManyRequests as error:
        raise client_errors.QuotaExceeded(_shorten_error_message(error)) from error
    except api.ClientError as error:
        raise client_errors.InvalidRequest(_shorten_error_message(error)) from error
    except (api.GoogleAPICallError, api.RetryError) as error:
        raise client_errors.Unavailable(_shorten_error_message(error)) from error
    except (json_format.ParseError, requests.JSONDecodeError) as error:
        raise client_errors.Unavailable("what answers is not the API, or a proxy stands before it") from error
    except TimeoutError as error:
        raise client_errors.Unavailable(f"still not done after {CALL_TIMEOUT:.0f} s") from error
    except (requests.RequestException, auth.TransportError) as error:
        message = f"no answer from {_describe_address(error)}: {_describe_root_cause(error)}"
        raise client_errors.Unavailable(message) from error
    except auth.GoogleAuthError as error:
        message = f"no valid Google credentials: {client_errors.CREDENTIALS_REMEDY}"
        raise client_errors.PermissionDenied(message) from error


def _shorten_error_message(error: Any) -> str:
    """Return the service's message in one line, without the URL that Google's client puts before it."""
    text = " ".join(re.sub(r"^[A-Z]+ https?://\S+: ", "", str(error.message)).split())
    return text if len(text) <= 500 else f"{text[:497]}..."


def _describe_address(error: Any) -> str:
    request = getattr(error, "request", None)
    return "/".join(request.url.split("/")[:3]) if request is not None else "the API"


def _describe_root_cause(error: BaseException) -> str:
    """Return the operating system's text for the error below the layers of HTTP libraries."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return getattr(error, "strerror", None) or type(error).__name__
