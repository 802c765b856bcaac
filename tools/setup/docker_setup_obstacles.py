"""What this machine has of Docker, why no daemon can be started or installed on it, and what the user can do."""

import os
import shutil
import sys
from dataclasses import dataclass

from tools.setup import debian_packages
from tools.setup.subprocess_runner import CommandFailed, run_program

LOCAL_ENDPOINTS = ("unix:///var/run/docker.sock", "unix:///run/docker.sock")
ANSWER_LIMIT_SECONDS = 15


@dataclass(frozen=True)
class DockerSetup:
    """What this machine has of Docker.

    `failure` is the error of the `docker` command, empty without one; `endpoint` is the daemon's address.
    """

    has_command: bool
    failure: str
    endpoint: str
    has_daemon: bool
    is_root: bool
    can_install: bool
    is_macos: bool


def inspect_docker_setup() -> DockerSetup:
    """Return what this machine has of Docker."""
    failure = endpoint = ""
    try:
        endpoint = _require_docker_context_endpoint()
        require_daemon_description()
    except CommandFailed as error:
        failure = str(error)
    has_command, has_daemon = (shutil.which(name) is not None for name in ("docker", "dockerd"))
    is_root, is_macos = os.geteuid() == 0, sys.platform == "darwin"
    return DockerSetup(has_command, failure, endpoint, has_daemon, is_root, debian_packages.can_install(), is_macos)


def describe_docker_setup_obstacle_or_none(setup: DockerSetup) -> str | None:
    """Return why no daemon can be started or installed, and what the user can do; `None` if one can."""
    again = "then run `make setup` again."
    if not setup.has_command:
        install = f"Install Docker (docs.docker.com/get-docker), start it, {again}"
        return None if setup.can_install else f"there is no `docker` command. {install}"
    if setup.endpoint not in LOCAL_ENDPOINTS:
        return (
            f"no daemon answers at {setup.endpoint}, where DOCKER_HOST or the current Docker context points.\n"
            f"    {setup.failure}\n"
            f"Start that one, or leave it with `unset DOCKER_HOST; docker context use default`, {again}"
        )
    if "permission denied" in setup.failure:
        return f"it runs, but this user may not talk to it. Run `sudo usermod -aG docker $USER`, log in again, {again}"
    if setup.is_macos:
        return f"it is not running. Start Docker Desktop (`open -a Docker`), {again}"
    if not setup.has_daemon and not setup.can_install:
        return (
            "there is a `docker` command, but no daemon answers and none is installed. "
            f"Install Docker Engine (docs.docker.com/engine/install) or start Docker Desktop, {again}"
        )
    return None if setup.is_root else f"it is installed, but not running. Run `sudo systemctl start docker`, {again}"


def require_daemon_description() -> str:
    """Return the version and the address of the daemon that answers. Raises CommandFailed.

    The `docker` command is asked, which knows about DOCKER_HOST, contexts and their credentials.
    """
    version = run_program("docker", "version", "--format", "{{.Server.Version}}", limit=ANSWER_LIMIT_SECONDS)
    return f"Docker: {version} at {_require_docker_context_endpoint()}"


def _require_docker_context_endpoint() -> str:
    template = "{{.Endpoints.docker.Host}}"
    return run_program("docker", "context", "inspect", "--format", template, limit=ANSWER_LIMIT_SECONDS)
