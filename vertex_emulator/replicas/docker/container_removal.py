"""The removal of a container, which may have begun already."""

from typing import Any

from vertex_emulator.replicas.docker.docker_error_handling import ignore_api_errors

_LIMIT_SECONDS = 60


def remove_container_and_wait_until_gone(client: Any, container_id: str) -> None:
    """Remove a container; return once it is gone.

    A process that is killed while it removes a container leaves Docker at it. Until then the container is listed and
    has its network.
    """
    from docker.errors import APIError

    with ignore_api_errors(404):
        try:
            client.remove_container(container_id, v=True, force=True)
        except APIError as error:
            if error.status_code != 409:  # 409: its removal has begun
                raise
            client.wait(container_id, timeout=_LIMIT_SECONDS, condition="removed")
