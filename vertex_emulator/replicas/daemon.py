"""The Docker daemon that the environment names: whether it listens, clients of it, its errors, and its images."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vertex_emulator.errors import DockerMissing, EmulatorError, ExecutorUnavailable, ImageUnavailable

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


PULL_SILENCE_SECONDS = 300  # a pull that makes no progress for so long has failed
_LOOKUP_SECONDS = 5
_UNREADABLE = (401, 403, 404)  # registries do not say which of their images exist to those who may not read them
_LOCAL_REGISTRY = "localhost/"  # what `vertex-training` builds for this machine; there is nothing to pull from


@dataclass
class _Pull:
    waiting: set[str] = field(default_factory=set)
    done: bool = False
    failure: str | None = None


class Images:
    """Finds and pulls images; `on_pulled` gets the id of each waiting job."""

    def __init__(self, call: Call, on_pulled: Callable[[str], None]) -> None:
        self._call = call
        self._on_pulled = on_pulled
        self._lock = threading.Lock()
        self._pulls: dict[str, _Pull] = {}
        self._variables: dict[str, dict[str, str]] = {}

    def ensure(self, job_id: str, image: str) -> bool:
        """Return whether the machine has the image; if not, start to pull it. Raises ImageUnavailable."""
        if self._has(image):
            return True
        if image.startswith(_LOCAL_REGISTRY):
            raise ImageUnavailable(f"{image} is not on this machine; build it first")
        with self._lock:
            pull = self._pulls.get(image)
            has_waited = pull is not None and pull.done and job_id in pull.waiting
            if pull is None or (pull.done and not has_waited):
                pull = self._pulls[image] = _Pull()
                arguments = (image, pull)
                threading.Thread(target=self._pull_image, args=arguments, daemon=True, name=f"pull {image}").start()
            if not has_waited:
                pull.waiting.add(job_id)
                return False
            pull.waiting.discard(job_id)
        if pull.failure is None and self._has(image):  # the pull ended since the look
            return True
        raise ImageUnavailable(f"{image} cannot be pulled: {pull.failure or 'it was removed again'}")

    def lacks(self, image: str) -> bool:
        """Return whether neither the machine nor the image's registry has an image; False if that is not known."""
        import docker

        try:
            if self._has(image):
                return False
            if image.startswith(_LOCAL_REGISTRY):
                return True
            client = connect(_LOOKUP_SECONDS)
            try:
                client.inspect_distribution(image)
            finally:
                client.close()
        except ImageUnavailable:
            return True
        except docker.errors.APIError as error:
            return error.status_code in _UNREADABLE
        except (EmulatorError, docker.errors.DockerException, OSError):
            return False
        return False

    def variables(self, image: str) -> Mapping[str, str]:
        """Return the variables of an image, as they were when a job asked for it last; none if it is gone."""
        if image not in self._variables:
            self._has(image)
        return self._variables.get(image, {})

    def _has(self, image: str) -> bool:
        from docker.errors import APIError, ImageNotFound, NullResource

        try:
            found = self._call(lambda client: client.inspect_image(image))["Config"] or {}
            parts = (text.partition("=") for text in found.get("Env") or ())
            self._variables[image] = {name: value for name, _, value in parts}
        except ImageNotFound:
            return False
        except NullResource as error:
            raise ImageUnavailable('"" is no image name') from error
        except APIError as error:
            if error.status_code != 400:
                raise
            raise ImageUnavailable(f"{image} is no image name that Docker knows: {error.explanation}") from error
        return True

    def _pull_image(self, image: str, pull: _Pull) -> None:
        import docker

        try:
            repository, tag = docker.utils.parse_repository_tag(image)
            client = docker.APIClient(version="auto", timeout=PULL_SILENCE_SECONDS, **docker.utils.kwargs_from_env())
            try:
                for progress in client.pull(repository, tag=tag or "latest", stream=True, decode=True):
                    if "error" in progress:
                        raise ImageUnavailable(progress["error"])
            finally:
                client.close()
        except (EmulatorError, docker.errors.DockerException, OSError) as error:
            pull.failure = error_text(error)
        with self._lock:
            pull.done = True
            waiting = set(pull.waiting)
        for job in waiting:
            self._on_pulled(job)
