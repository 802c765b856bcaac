"""Clients of the Docker daemon that the environment names."""

from typing import TYPE_CHECKING

from vertex_emulator.errors import ExecutorUnavailable
from vertex_emulator.replicas.docker.docker_error_handling import get_docker_error_text

if TYPE_CHECKING:
    import docker


def create_docker_client(timeout_seconds: int | None) -> "docker.APIClient":
    """Return a client whose reads time out after `timeout_seconds`. Raises ExecutorUnavailable."""
    import docker
    from docker.errors import DockerException

    try:
        settings = docker.utils.kwargs_from_env()
        return docker.APIClient(version="auto", timeout=timeout_seconds, **settings)
    except DockerException as error:
        raise ExecutorUnavailable(f"Docker does not answer: {get_docker_error_text(error)}") from error
