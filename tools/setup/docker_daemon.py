"""The Docker daemon: one that runs, one that is installed and can be started, or Debian's package."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.setup import debian
from tools.setup.commands import CommandFailed, quote, run
from tools.setup.console import Console
from tools.setup.errors import SetupError
from tools.setup.folders import cache_folder

PACKAGE = "docker.io"
LOCAL_ENDPOINTS = ("unix:///var/run/docker.sock", "unix:///run/docker.sock")
SYSTEMD = Path("/run/systemd/system")  # there when systemd runs this machine, see sd_booted(3)
INFO = "level=info"
ANSWER_LIMIT_SECONDS = 15
START_LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Situation:
    """What decides how to get a daemon that answers.

    `failure` is what the `docker` command says, empty without one; `endpoint` is the address that it talks to.
    """

    command: bool
    failure: str
    endpoint: str
    daemon_installed: bool
    root: bool
    can_install: bool
    macos: bool


def find() -> str | None:
    """The running daemon in one line; None when there is none, or none that this user may use."""
    try:
        return _line()
    except CommandFailed:
        return None


def make(console: Console) -> str:
    """Start the daemon, after installing it where need be. Raises SetupError with what the user can do."""
    situation = look()
    if obstacle := what_stands_in_the_way(situation):
        raise SetupError(f"Docker: {obstacle}")
    if not (situation.command and situation.daemon_installed):
        try:
            debian.install(console, PACKAGE)
        except CommandFailed as error:
            raise SetupError(f"Docker: Debian's package {PACKAGE} could not be installed. {error}") from error
        if line := find():  # the package may have started it
            return f"{line}, installed with apt-get"
    return start(console)


def look() -> Situation:
    """The situation on this machine."""
    failure = endpoint = ""
    try:
        endpoint = _endpoint()
        _line()
    except CommandFailed as error:
        failure = str(error)
    return Situation(
        command=shutil.which("docker") is not None,
        failure=failure,
        endpoint=endpoint,
        daemon_installed=shutil.which("dockerd") is not None,
        root=os.geteuid() == 0,
        can_install=debian.can_install(),
        macos=sys.platform == "darwin",
    )


def what_stands_in_the_way(situation: Situation) -> str | None:
    """Why no daemon can be started or installed here, and what the user can do; None when one can."""
    again = "then run `make setup` again."
    if not situation.command and not situation.can_install:
        return f"there is no `docker` command. Install Docker (docs.docker.com/get-docker), start it, {again}"
    if not situation.command:
        return None
    if situation.endpoint not in LOCAL_ENDPOINTS:
        return (
            f"no daemon answers at {situation.endpoint}, where DOCKER_HOST or the current Docker context points.\n"
            f"    {situation.failure}\n"
            f"Start that one, or leave it with `unset DOCKER_HOST; docker context use default`, {again}"
        )
    if "permission denied" in situation.failure:
        return f"it runs, but this user may not talk to it. Run `sudo usermod -aG docker $USER`, log in again, {again}"
    if situation.macos:
        return f"it is not running. Start Docker Desktop (`open -a Docker`), {again}"
    if not situation.daemon_installed and not situation.can_install:
        return (
            "there is a `docker` command, but no daemon answers and none is installed. "
            f"Install Docker Engine (docs.docker.com/engine/install) or start Docker Desktop, {again}"
        )
    if not situation.root:
        return f"it is installed, but not running. Run `sudo systemctl start docker`, {again}"
    return None


def start(console: Console) -> str:
    """Start the installed daemon and wait until it answers. Raises SetupError with the daemon's last lines."""
    log = cache_folder() / "dockerd.log"
    progress = console.progress("starting Docker")
    if SYSTEMD.is_dir():
        try:
            run("systemctl", "start", "docker", limit=START_LIMIT_SECONDS, progress=progress)
            return f"{_line()}, started with systemctl"
        except CommandFailed as error:
            raise SetupError(f"Docker: it could not be started. {error}\nSee `journalctl -u docker`.") from error
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        # In a session of its own: it outlives this one, and Ctrl-C in this terminal does not reach it.
        daemon = subprocess.Popen(
            ["dockerd"], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    if not _answers_in_time(daemon, progress):
        what = "ended by itself" if daemon.poll() is not None else f"did not answer within {START_LIMIT_SECONDS} s"
        daemon.terminate()
        daemon.wait()
        telling = "\n".join(line for line in log.read_text(errors="replace").splitlines() if INFO not in line)
        raise SetupError(
            f"Docker: `dockerd` {what}; it may not be allowed to run here (in a container without privileges, say)."
            f"{quote(telling)}\n"
            f"All it wrote is in {log}. Get `dockerd` to run, then run `make setup` again."
        )
    return f"{_line()}, started (log in {log})"


def _answers_in_time(daemon: subprocess.Popen[bytes], progress: Callable[[float], None]) -> bool:
    started = time.monotonic()
    while (passed := time.monotonic() - started) < START_LIMIT_SECONDS and daemon.poll() is None:
        if find():
            return True
        progress(passed)
        time.sleep(0.2)
    return False


def _line() -> str:
    """Asks through the `docker` command, which knows about DOCKER_HOST, contexts and their credentials."""
    version = run("docker", "version", "--format", "{{.Server.Version}}", limit=ANSWER_LIMIT_SECONDS)
    return f"Docker: {version} at {_endpoint()}"


def _endpoint() -> str:
    template = "{{.Endpoints.docker.Host}}"
    return run("docker", "context", "inspect", "--format", template, limit=ANSWER_LIMIT_SECONDS)
