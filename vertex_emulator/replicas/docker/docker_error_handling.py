"""The handling of the Docker SDK's errors: which are translated to the emulator's, and which are ignored."""

import contextlib
from collections.abc import Iterator
from typing import Any

from vertex_emulator.errors import ExecutorUnavailable


@contextlib.contextmanager
def translate_connection_errors() -> Iterator[None]:
    """Raise connection errors of the SDK as ExecutorUnavailable; leave errors that the daemon returns as they are."""
    import requests
    import urllib3

    try:
        yield
    except (requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError, OSError) as error:
        if isinstance(error, requests.HTTPError):
            raise
        raise ExecutorUnavailable(f"Docker does not answer: {get_docker_error_text(error)}") from error


@contextlib.contextmanager
def ignore_api_errors(*http_statuses: int) -> Iterator[None]:
    """Ignore errors that the daemon returns with one of the HTTP statuses."""
    from docker.errors import APIError

    try:
        yield
    except APIError as error:
        if error.status_code not in http_statuses:
            raise


def get_docker_error_text(error: Exception) -> str:
    """Return the error text of the daemon or, without one, of the SDK."""
    return str(getattr(error, "explanation", None) or error).strip()


def is_container_at_fault(error: Any) -> bool:
    """Return whether the container itself is the cause: no such executable, not executable, an impossible mount."""
    return error.status_code in (400, 404) or "OCI runtime create failed" in get_docker_error_text(error)
