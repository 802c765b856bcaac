"""Docker images, pulled in the background if missing."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vertex_emulator.errors import EmulatorError, ImageUnavailable

PULL_SILENCE_SECONDS = 300  # a pull that makes no progress for so long has failed
_LOCAL_REGISTRY = "localhost/"  # what `vertex-training` builds for this machine; there is nothing to pull from


@dataclass
class _Pull:
    waiting: set[str] = field(default_factory=set)
    done: bool = False
    failure: str | None = None


class ImagePuller:
    """Pulls images. `call_docker` runs a function on a Docker client, `on_pulled` gets the id of each waiting job."""

    def __init__(self, call_docker: Callable[[Callable[[Any], Any]], Any], on_pulled: Callable[[str], None]) -> None:
        self._call_docker = call_docker
        self._on_pulled = on_pulled
        self._lock = threading.Lock()
        self._pulls: dict[str, _Pull] = {}

    def has_image_or_starts_pull(self, job_id: str, image: str) -> bool:
        """Return whether the machine has the image; if not, start to pull it. Raises ImageUnavailable."""
        if self._has_image(image):
            return True
        if image.startswith(_LOCAL_REGISTRY):
            raise ImageUnavailable(f"{image} is not on this machine; build it first")
        with self._lock:
            pull = self._pulls.get(image)
            if pull is not None and pull.done and job_id in pull.waiting:
                pull.waiting.discard(job_id)
                raise ImageUnavailable(f"{image} cannot be pulled: {pull.failure or 'it was removed again'}")
            if pull is None or pull.done:
                pull = self._pulls[image] = _Pull()
                threading.Thread(target=self._pull_image, args=(image, pull), daemon=True, name=f"pull {image}").start()
            pull.waiting.add(job_id)
        return False

    def _has_image(self, image: str) -> bool:
        from docker.errors import APIError, ImageNotFound, NullResource

        try:
            self._call_docker(lambda client: client.inspect_image(image))
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
            pull.failure = str(getattr(error, "explanation", None) or error)
        with self._lock:
            pull.done = True
            waiting = set(pull.waiting)
        for job in waiting:
            self._on_pulled(job)
