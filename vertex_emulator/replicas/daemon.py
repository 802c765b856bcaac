"""The Docker daemon that the environment names: whether it listens, clients of it, and what its errors mean."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vertex_emulator.errors import DockerMissing, ExecutorUnavailable

if TYPE_CHECKING:
    import docker

Call = Callable[[Callable[[Any], Any]], Any]
"""Runs a function on a Docker client and returns its result. Raises ExecutorUnavailable."""
_DEFAULT_HOST = "unix:///var/run/docker.sock"  # docker.constants.DEFAULT_UNIX_SOCKET
_CONNECT_SECONDS = 5.0


def require() -> None:
    """Raise DockerMissing unless a daemon listens where the SDK will look; one that is reached by SSH is not tried.

    A connection tells enough and takes no time; importing the SDK takes longer than all else of a start.
    """
    host = os.environ.get("DOCKER_HOST") or _DEFAULT_HOST
    parts = urlsplit(host)
    try:
        if parts.scheme in ("unix", "http+unix"):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_CONNECT_SECONDS)
                connection.connect(parts.path)
        elif parts.scheme in ("tcp", "http", "https") and parts.hostname and parts.port:
            socket.create_connection((parts.hostname, parts.port), _CONNECT_SECONDS).close()
    except PermissionError as error:
        message = f"you may not use Docker on {host}: add your user to the group `docker`, and log in again"
        raise DockerMissing(message) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        message = f"Docker does not answer on {host} ({reason}): install Docker, start it, or set DOCKER_HOST"
        raise DockerMissing(message) from error


def connect(timeout: int | None) -> "docker.APIClient":
    """Return a client whose reads time out after `timeout` seconds. Raises ExecutorUnavailable."""
    import docker
    from docker.errors import DockerException

    try:
        return docker.APIClient(version="auto", timeout=timeout, **docker.utils.kwargs_from_env())
    except DockerException as error:
        raise ExecutorUnavailable(f"Docker does not answer: {error_text(error)}") from error


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Raise connection errors of the SDK as ExecutorUnavailable; leave errors that the daemon returns as they are."""
    import requests
    import urllib3

    try:
        yield
    except (requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError, OSError) as error:
        if isinstance(error, requests.HTTPError):
            raise
        raise ExecutorUnavailable(f"Docker does not answer: {error_text(error)}") from error


@contextlib.contextmanager
def ignore(*http_statuses: int) -> Iterator[None]:
    """Ignore errors that the daemon returns with one of the HTTP statuses."""
    from docker.errors import APIError

    try:
        yield
    except APIError as error:
        if error.status_code not in http_statuses:
            raise


def error_text(error: Exception) -> str:
    """The error text of the daemon or, without one, of the SDK."""
    return str(getattr(error, "explanation", None) or error).strip()
