"""The Docker daemon: one that runs, one that is installed and can be started, or Debian's package."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tools.setup import debian_packages
from tools.setup.checkout_folders import get_shared_cache_folder
from tools.setup.progress_output import ProgressOutput
from tools.setup.subprocess_runner import (
    CommandFailed,
    SecondsCallback,
    SetupError,
    render_last_lines,
    run_program,
)

PACKAGE = "docker.io"
LOCAL_ENDPOINTS = ("unix:///var/run/docker.sock", "unix:///run/docker.sock")
SYSTEMD = Path("/run/systemd/system")  # exists if systemd runs this machine, see sd_booted(3)
ANSWER_LIMIT_SECONDS = 15
START_LIMIT_SECONDS = 60


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


def describe_if_ready() -> str | None:
    """Describe the running daemon; return `None` if there is none, or none that this user may use."""
    try:
        return _require_daemon_description()
    except CommandFailed:
        return None


def set_up_and_describe(output: ProgressOutput) -> str:
    """Start the daemon, and install it first if it is missing. Raises SetupError with what the user can do."""
    setup = inspect_docker_setup()
    if obstacle := describe_docker_setup_obstacle_or_none(setup):
        raise SetupError(f"Docker: {obstacle}")
    if not (setup.has_command and setup.has_daemon):
        try:
            debian_packages.install_packages(output, PACKAGE)
        except CommandFailed as error:
            raise SetupError(f"Docker: Debian's package {PACKAGE} could not be installed. {error}") from error
        if line := describe_if_ready():  # the package may have started it
            return f"{line}, installed with apt-get"
    return start_daemon_and_describe(output)


def inspect_docker_setup() -> DockerSetup:
    """Return what this machine has of Docker."""
    failure = endpoint = ""
    try:
        endpoint = _require_docker_context_endpoint()
        _require_daemon_description()
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


def start_daemon_and_describe(output: ProgressOutput) -> str:
    """Start the installed daemon and wait until it answers. Raises SetupError with the daemon's last lines."""
    log = get_shared_cache_folder() / "dockerd.log"
    progress = output.create_seconds_callback("starting Docker")
    if SYSTEMD.is_dir():
        try:
            run_program("systemctl", "start", "docker", limit=START_LIMIT_SECONDS, progress=progress)
            return f"{_require_daemon_description()}, started with systemctl"
        except CommandFailed as error:
            raise SetupError(f"Docker: it could not be started. {error}\nSee `journalctl -u docker`.") from error
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as log_stream:
        # In a session of its own: it outlives this one, and Ctrl-C in this terminal does not reach it.
        daemon = subprocess.Popen(
            ["dockerd"], stdin=subprocess.DEVNULL, stdout=log_stream, stderr=log_stream, start_new_session=True
        )
    _await_answer_or_terminate_and_raise(daemon, log, progress)
    return f"{_require_daemon_description()}, started (log in {log})"


def _await_answer_or_terminate_and_raise(
    daemon: subprocess.Popen[bytes], log: Path, report_progress: SecondsCallback
) -> None:
    started = time.monotonic()
    while (passed := time.monotonic() - started) < START_LIMIT_SECONDS and daemon.poll() is None:
        if describe_if_ready():
            return
        report_progress(passed)
        time.sleep(0.2)
    outcome = "ended by itself" if daemon.poll() is not None else f"did not answer within {START_LIMIT_SECONDS} s"
    daemon.terminate()
    daemon.wait()
    lines = log.read_text(errors="replace").splitlines(keepends=True)
    quotable = "".join(line for line in lines if "level=info" not in line)
    raise SetupError(
        f"Docker: `dockerd` {outcome}; it may not be allowed to run here (in a container without privileges, say)."
        f"{render_last_lines(quotable)}\n"
        f"All it wrote is in {log}. Get `dockerd` to run, then run `make setup` again."
    )


def _require_daemon_description() -> str:
    """Ask through the `docker` command, which knows about DOCKER_HOST, contexts and their credentials."""
    version = run_program("docker", "version", "--format", "{{.Server.Version}}", limit=ANSWER_LIMIT_SECONDS)
    return f"Docker: {version} at {_require_docker_context_endpoint()}"


def _require_docker_context_endpoint() -> str:
    template = "{{.Endpoints.docker.Host}}"
    return run_program("docker", "context", "inspect", "--format", template, limit=ANSWER_LIMIT_SECONDS)
