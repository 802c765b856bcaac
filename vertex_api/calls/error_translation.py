"""The errors of Google's libraries as those of `vertex_api.client_errors`, one line each."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from vertex_api import client_errors
from vertex_api.calls import credentials
from vertex_api.calls.retry_rules import DISABLED_API

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

    from vertex_api.calls.bounded_transport import AnswerRefused

    try:
        yield
    except (api.NotFound, api.MethodNotImplemented) as error:
        raise client_errors.NotFound(_shorten_error_message(error)) from error
    except (api.Unauthorized, api.Forbidden) as error:
        raise client_errors.PermissionDenied(_shorten_error_message(error)) from error
    except api.TooManyRequests as error:
        raise _translate_to_quota_or_rate_error(error) from error
    except api.ClientError as error:
        raise client_errors.InvalidRequest(_shorten_error_message(error)) from error
    except (api.GoogleAPICallError, api.RetryError) as error:
        raise client_errors.Unavailable(
            _shorten_error_message(error), _get_retry_after_seconds_or_none(error)
        ) from error
    except (json_format.ParseError, requests.JSONDecodeError) as error:
        raise client_errors.Unavailable(_FOREIGN) from error
    except TimeoutError as error:
        raise client_errors.OperationUnfinished("what the service has accepted is still not done") from error
    except AnswerRefused as error:
        raise client_errors.Unavailable(str(error)) from error
    except (requests.RequestException, auth.TransportError) as error:
        message = f"no answer from {_describe_address(error)}: {_describe_root_cause(error)}"
        raise client_errors.Unavailable(message) from error
    except auth.GoogleAuthError as error:
        message = f"no valid Google credentials: {credentials.explain(error)}"
        raise client_errors.PermissionDenied(message) from error
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        # What the libraries above raise for answers of other types than the API's, such as an `error` that is a text.
        raise client_errors.Unavailable(_FOREIGN) from error


def require_object(value: Any) -> dict[str, Any]:
    """Return the JSON object that a service answers with. Raises Unavailable for anything else."""
    if not isinstance(value, dict):
        raise client_errors.Unavailable(_FOREIGN)
    return value


def require_list(answer: Mapping[str, Any], field: str) -> list[Any]:
    """Return a list in an answer, empty if the field is missing. Raises Unavailable for anything else."""
    value = answer.get(field) or []
    if not isinstance(value, list):
        raise client_errors.Unavailable(_FOREIGN)
    return value


def _translate_to_quota_or_rate_error(error: Any) -> client_errors.VertexError:
    """Tell a quota that does not cover the request from a limit of requests a minute; both are 429.

    The limit's text is "Quota exceeded for quota metric '…' and limit '… per minute per region'"
    (vertex-ai-samples#1000), with the reason RATE_LIMIT_EXCEEDED. What is neither is a limit too: it was refused.
    """
    message = _shorten_error_message(error)
    if error.reason != "RATE_LIMIT_EXCEEDED" and _CAPACITY.search(message):
        return client_errors.QuotaExceeded(message, _METRIC.findall(message))
    return client_errors.RateLimited(message, _get_retry_after_seconds_or_none(error))


def _get_retry_after_seconds_or_none(error: Any) -> float | None:
    """Return for how long the service asks to wait: by the header `Retry-After`, or a `google.rpc.RetryInfo`."""
    headers: Mapping[str, str] = getattr(error.response, "headers", None) or {}
    details = [detail for detail in getattr(error, "details", None) or [] if isinstance(detail, Mapping)]
    infos = [detail for detail in details if str(detail.get("@type", "")).endswith("google.rpc.RetryInfo")]
    delays = [str(info.get("retryDelay", "")).removesuffix("s") for info in infos]
    for text in (headers.get("Retry-After", ""), *delays):
        with suppress(ValueError):
            return max(0.0, float(text))
    return None


def _shorten_error_message(error: Any) -> str:
    """Return the service's message in one line, without the URL that Google's client puts before it.

    It names the reason SERVICE_DISABLED of its details, of whose text nothing is promised (vertex-ai-samples#476).
    """
    text = " ".join(re.sub(r"^[A-Z]+ https?://\S+: ", "", str(error.message)).split())
    text = text if len(text) <= 500 else f"{text[:497]}..."
    reason = getattr(error, "reason", None)
    return f"{text} ({reason})" if reason == "SERVICE_DISABLED" and not DISABLED_API.refusal.search(text) else text


def _describe_address(error: Any) -> str:
    request = getattr(error, "request", None)
    return "/".join(request.url.split("/")[:3]) if request is not None else "the API"


def _describe_root_cause(error: BaseException) -> str:
    """Return the operating system's text for the error below the layers of HTTP libraries."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return getattr(error, "strerror", None) or type(error).__name__
