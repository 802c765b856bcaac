"""What a service answers, and what its errors mean. What answers need not be the API: a proxy may, or a portal.

Google's libraries are imported where they are needed: a preview calls nothing.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from vertex_api import credentials
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
from vertex_api.names import JobJson, Kind, ResourceName
from vertex_api.retry import DISABLED_API

MAX_PAGES, MAX_LIST_BYTES, MAX_LIST_SECONDS = 1_000, 256 << 20, 600.0
"""Of a list: 100,000 jobs."""
_ID, _NUMBER = re.compile(r"[\w-]+"), re.compile("[0-9]+")
FOREIGN_TYPES = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""What Google's libraries raise for answers of other types than the API's, such as an `error` that is a text."""
_FOREIGN = "what answers is not the API, or a proxy stands before it"


def read_json(reply: Any) -> dict[str, Any]:
    """Return the JSON object of a reply of `requests`. Raises what `translate_errors` translates, and Unavailable."""
    from google.api_core.exceptions import from_http_response

    if not reply.ok:
        raise from_http_response(reply)
    return require_object(reply.json())


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


def read_job(message: Any, kind: Kind, parent: str, asked: ResourceName | None = None) -> JobJson:
    """Return a job as JSON, of the JSON or the message of Google's client that a service has answered with.

    Raises Unavailable for one that was not `asked` for, which a later call would act on. That is one of another kind,
    region or project, whose number may stand in place of its id.
    """
    if isinstance(message, dict):
        job = message
    else:
        from google.protobuf import json_format

        job = dict(json_format.MessageToDict(type(message).pb(message)))
    name, (_, project, _, region) = str(job.get("name", "")), parent.split("/")
    try:
        found = ResourceName.parse(name)
    except ValueError:
        found = None
    is_expected = (
        found is not None
        and (found.kind, found.region) == (kind, region)
        and (found.project == project or _NUMBER.fullmatch(found.project))
        and (found.id == asked.id if asked else _ID.fullmatch(found.id))
    )
    if not is_expected:
        expected = f"{kind.collection} of {project} in {region}"
        raise Unavailable(f'what answers is not the API: it names "{name[:200]}" among {expected}')
    return job


def check_operation(operation: Any, parent: str) -> None:
    """Raise Unavailable for an operation that goes on elsewhere, which a later call would ask for."""
    region = re.escape(parent.rpartition("/")[2])
    expected = rf"projects/[^/]+/locations/{region}/([\w-]+/[\w-]+/)*operations/[\w-]+"
    if not operation.done and not re.fullmatch(expected, operation.name):
        raise Unavailable(f'what answers is not the API: it names "{operation.name[:200]}" as an operation')


def bounded_pages(pager: Any) -> Iterator[Any]:
    """Yield the pages of a list. Raises Unavailable for lists that do not end."""
    began, size = time.monotonic(), 0
    for number, page in enumerate(pager.pages):
        size += type(page).pb(page).ByteSize()
        if number >= MAX_PAGES or size > MAX_LIST_BYTES or time.monotonic() - began > MAX_LIST_SECONDS:
            so_far = f"it has {number} pages and {size >> 20} MiB so far"
            raise Unavailable(f"the list does not end: {so_far}; delete old jobs, or what answers is not the API")
        yield page


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


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of Google's libraries as a VertexError."""
    import requests
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth
    from google.protobuf import json_format

    from vertex_api import transport

    before = transport.answers()
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
    except transport.AnswerRefused as error:
        raise Unavailable(str(error)) from error
    except (requests.RequestException, auth.TransportError) as error:
        message = f"no answer from {_address(error)}: {_root_cause(error)}"
        raise Unavailable(message) from error
    except auth.GoogleAuthError as error:
        message = f"no valid Google credentials: {credentials.explain(error)}"
        raise PermissionDenied(message) from error
    except FOREIGN_TYPES as error:
        if not transport.is_of_answer(error, before):
            raise
        raise Unavailable(_FOREIGN) from error


CAPACITY = re.compile(r"exceed quota limits: (.+)|quota metric '[^']*custom_model_training")
"""A quota of machines, as the service's refusals are quoted in stable-diffusion-on-gcp#12 and xmanager#29."""
_METRIC = re.compile(r"[\w.-]+\.googleapis\.com/[\w-]+")


def _too_many_requests(error: Any) -> VertexError:
    """Tell a quota that does not cover the request from a limit of requests a minute; both are 429.

    The limit's text is "Quota exceeded for quota metric '…' and limit '… per minute per region'"
    (vertex-ai-samples#1000), with the reason RATE_LIMIT_EXCEEDED. What is neither is a limit too: it was refused.
    """
    message = _shorten(error)
    if error.reason != "RATE_LIMIT_EXCEEDED" and CAPACITY.search(message):
        return QuotaExceeded(message, _METRIC.findall(message))
    return RateLimited(message, _retry_after(error))


def _retry_after(error: Any) -> float | None:
    """Return for how long the service asks to wait: by the header `Retry-After`, or a `google.rpc.RetryInfo`."""
    headers: Mapping[str, str] = getattr(error.response, "headers", None) or {}
    asked = headers.get("Retry-After", "")
    details = [detail for detail in getattr(error, "details", None) or [] if isinstance(detail, Mapping)]
    infos = [detail for detail in details if str(detail.get("@type", "")).endswith("google.rpc.RetryInfo")]
    delays = [str(info.get("retryDelay", "")).removesuffix("s") for info in infos]
    for text in (asked, *delays):
        with suppress(ValueError):
            return max(0.0, float(text))
    with suppress(ValueError, OverflowError):
        return max(0.0, _seconds_since_1970(asked) - _now(headers))
    return None


def _now(headers: Mapping[str, str]) -> float:
    """Return the time by the clock of the service, which differs from this machine's, or else by this machine's."""
    with suppress(ValueError, OverflowError):
        return _seconds_since_1970(headers.get("Date", ""))
    return time.time()


def _seconds_since_1970(date: str) -> float:
    """Return the time of an HTTP date (RFC 9110). Raises ValueError and OverflowError."""
    moment = parsedate_to_datetime(date)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


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
    if request is not None:
        return "/".join(request.url.split("/")[:3])
    return "Google's sign-in" if type(error).__module__ == "google.auth.exceptions" else "the API"


def _root_cause(error: BaseException) -> str:
    """Return the operating system's text for the error below the layers of HTTP libraries, or what was refused."""
    from vertex_api import transport

    while cause := error.__cause__ or error.__context__:
        if isinstance(error, transport.AnswerRefused):
            return str(error)
        error = cause
    if isinstance(error, transport.AnswerRefused):
        return str(error)
    return getattr(error, "strerror", None) or type(error).__name__
