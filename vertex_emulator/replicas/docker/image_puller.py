"""Docker images, pulled in the background if missing."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vertex_emulator.errors import EmulatorError, ImageUnavailable

PULL_SILENCE_SECONDS = 300  # a pull that makes no progress for so long has failed
_LOOKUP_SECONDS = 5
_UNREADABLE = (401, 403, 404)  # registries do not say which of their images exist to those who may not read them
_LOCAL_REGISTRY = "localhost/"  # what `vertex-training` builds for this machine; there is nothing to pull from


@dataclass
class _PullRecord:
    waiting: set[str] = field(default_factory=set)
    done: bool = False
    failure: str | None = None


class ImagePuller:
    """Pulls images. `call_docker` runs a function on a Docker client, `on_pulled` gets the id of each waiting job."""

    def __init__(self, call_docker: Callable[[Callable[[Any], Any]], Any], on_pulled: Callable[[str], None]) -> None:
        self._call_docker = call_docker
        self._on_pulled = on_pulled
        self._lock = threading.Lock()
        self._records: dict[str, _PullRecord] = {}

    def has_image_or_starts_pull(self, job_id: str, image: str) -> bool:
        """Return whether the machine has the image; if not, start to pull it. Raises ImageUnavailable."""
        if self._has_image_or_raise_if_invalid_name(image):
            return True
        if image.startswith(_LOCAL_REGISTRY):
            raise ImageUnavailable(f"{image} is not on this machine; build it first")
        with self._lock:
            record = self._records.get(image)
            has_waited_for_pull = record is not None and record.done and job_id in record.waiting
            if record is None or (record.done and not has_waited_for_pull):
                record = self._records[image] = _PullRecord()
                pull, name = self._pull_image_and_wake_jobs, f"pull {image}"
                threading.Thread(target=pull, args=(image, record), daemon=True, name=name).start()
            if not has_waited_for_pull:
                record.waiting.add(job_id)
                return False
            record.waiting.discard(job_id)
        if record.failure is None and self._has_image_or_raise_if_invalid_name(image):  # the pull ended since the look
            return True
        raise ImageUnavailable(f"{image} cannot be pulled: {record.failure or 'it was removed again'}")

    def is_image_missing_here_and_in_registry(self, image: str) -> bool:
        """Return whether neither the machine nor the image's registry has an image; False if that is not known."""
        import docker

        try:
            if self._has_image_or_raise_if_invalid_name(image):
                return False
            if image.startswith(_LOCAL_REGISTRY):
                return True
            client = docker.APIClient(version="auto", timeout=_LOOKUP_SECONDS, **docker.utils.kwargs_from_env())
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

    def _has_image_or_raise_if_invalid_name(self, image: str) -> bool:
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

    def _pull_image_and_wake_jobs(self, image: str, record: _PullRecord) -> None:
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
            record.failure = str(getattr(error, "explanation", None) or error)
        with self._lock:
            record.done = True
            waiting = set(record.waiting)
        for job in waiting:
            self._on_pulled(job)
