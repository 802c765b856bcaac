#!/usr/bin/env python3
"""`vertex-emulator` in its image: on the volume /data, or on the folder that VERTEX_EMULATOR_DATA names.

The machine's daemon mounts the data folder into jobs, so its path must be one that the daemon knows. That of /data is
where the daemon keeps the volume. Here, a link of that path leads to /data.
"""

import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

HOME = Path("/opt/vertex-emulator")
sys.path.insert(0, str(HOME))

from vertex_emulator.cli.main import main  # noqa: E402 - the package is not installed
from vertex_emulator.cli.output import note  # noqa: E402
from vertex_emulator.errors import EmulatorError, StartError  # noqa: E402
from vertex_emulator.replicas import daemon  # noqa: E402

SOCKET = Path("/var/run/docker.sock")
DATA, LINK, VARIABLE = "/data", HOME / "data", "VERTEX_EMULATOR_DATA"
PUBLISHED = ("--host", "0.0.0.0", "--port", "8600", "--allow-remote")
_DOCKER_SECONDS = 30


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    if arguments[:1] == ["serve"] and not os.environ.get(VARIABLE):
        try:
            return serve(arguments[1:])
        except EmulatorError as error:
            note(str(error))
            return error.exit_code
    if LINK.is_symlink():
        os.environ.setdefault(VARIABLE, str(LINK.readlink()))
    return main(arguments)


def serve(options: list[str]) -> int:
    """Serve /data on a port that can be published. Raises EmulatorError."""
    container = inspect_self()
    os.environ[VARIABLE] = link_data(container)
    code = main(["serve", *PUBLISHED, *options])
    if container["HostConfig"]["AutoRemove"]:
        main(["reset", "--yes"])  # nothing finds the jobs again: their volume goes with this container
    return code


def inspect_self() -> dict[str, Any]:
    """What the daemon knows of this container. Raises EmulatorError."""
    from docker.errors import NotFound

    if not os.environ.get("DOCKER_HOST") and not SOCKET.exists():
        raise StartError(f"mount the socket of the machine's Docker: --volume {SOCKET}:{SOCKET}")
    daemon.require()
    # The daemon mounts /etc/hostname and others from a folder with the container's id; the host name may be anything.
    found = re.search(r"/containers/([0-9a-f]{64})/", Path("/proc/self/mountinfo").read_text())
    client = daemon.connect(_DOCKER_SECONDS)
    try:
        return dict(client.inspect_container(found[1] if found else socket.gethostname()))
    except NotFound as error:
        message = f"Docker does not know this container; mount a folder at its own path, and set {VARIABLE} to it"
        raise StartError(message) from error
    finally:
        client.close()


def link_data(container: dict[str, Any]) -> str:
    """Make the machine's path of /data lead there in this container, and return it. Raises StartError."""
    if container["HostConfig"]["NetworkMode"] == "host":
        raise StartError(f"with --network host, mount a folder of yours at its own path, and set {VARIABLE} to it")
    source = Path(next(mount["Source"] for mount in container["Mounts"] if mount["Destination"] == DATA))
    try:
        if not LINK.is_symlink():
            LINK.symlink_to(source)
        if not source.exists():
            source.parent.mkdir(parents=True, exist_ok=True)
            source.symlink_to(DATA)
    except OSError as error:
        message = f"{DATA} is root's: with --user, mount a folder of yours at its own path, and set {VARIABLE} to it"
        raise StartError(message) from error
    return str(source)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
