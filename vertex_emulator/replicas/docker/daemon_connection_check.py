"""Whether a Docker daemon listens where the Docker SDK will look for one."""

import os
import socket
from urllib.parse import urlsplit

from vertex_emulator.errors import DockerMissing

_DEFAULT_HOST = "unix:///var/run/docker.sock"  # docker.constants.DEFAULT_UNIX_SOCKET
_CONNECT_SECONDS = 5.0


def raise_unless_docker_daemon_listens() -> None:
    """Raise DockerMissing unless a daemon listens; one that is reached by SSH is not tried.

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
