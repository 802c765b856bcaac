"""The Docker daemon: one that runs, or one that this starts, after it has installed Debian's package if need be."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tools.setup import cache_folder, programs
from tools.setup.programs import CommandFailed, Output, Progress, SetupError, last_lines, run

PACKAGE = "docker.io"
SYSTEMD = Path("/run/systemd/system")  # exists if systemd runs this machine, see sd_booted(3)
START_LIMIT_SECONDS = 60
LOCAL_ENDPOINTS = ("unix:///var/run/docker.sock", "unix:///run/docker.sock")
ANSWER_LIMIT_SECONDS = 15


def find() -> str | None:
    """Describe the running daemon; return `None` if there is none, or none that this user may use."""
    try:
        return describe()
    except CommandFailed:
        return None


def make(output: Output) -> str:
    """Start the daemon, and install it first if it is missing. Raises SetupError with what the user can do."""
    machine = inspect()
    if obstacle := find_obstacle(machine):
        raise SetupError(f"Docker: {obstacle}")
    if not (machine.has_command and machine.has_daemon):
        try:
            programs.install_packages(output, PACKAGE)
        except CommandFailed as error:
            raise SetupError(f"Docker: Debian's package {PACKAGE} could not be installed. {error}") from error
        if line := find():  # the package may have started it
            return f"{line}, installed with apt-get"
    return start(output)


def start(output: Output) -> str:
    """Start the installed daemon and wait until it answers. Raises SetupError with the daemon's last lines."""
    log = cache_folder() / "dockerd.log"
    progress = output.progress("starting Docker")
    if SYSTEMD.is_dir():
        try:
            run("systemctl", "start", "docker", limit=START_LIMIT_SECONDS, progress=progress)
            return f"{describe()}, started with systemctl"
        except CommandFailed as error:
            raise SetupError(f"Docker: it could not be started. {error}\nSee `journalctl -u docker`.") from error
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as log_stream:
        # In a session of its own: it outlives this one, and Ctrl-C in this terminal does not reach it. What `nohup`
        # ignores, programs in its containers would ignore, too: a closed `vertex-emulator shell` would leave them.
        daemon = subprocess.Popen(
            ["dockerd"],
            stdin=subprocess.DEVNULL,
            stdout=log_stream,
            stderr=log_stream,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
    _await_answer(daemon, log, progress)
    return f"{describe()}, started (log in {log})"


def _await_answer(daemon: subprocess.Popen[bytes], log: Path, report_progress: Progress) -> None:
    started = time.monotonic()
    while (passed := time.monotonic() - started) < START_LIMIT_SECONDS and daemon.poll() is None:
        if find():
            return
        report_progress(passed)
        programs.check_interrupted()
        time.sleep(0.2)
    outcome = "ended by itself" if daemon.poll() is not None else f"did not answer within {START_LIMIT_SECONDS} s"
    daemon.terminate()
    daemon.wait()
    lines = log.read_text(errors="replace").splitlines(keepends=True)
    quotable = "".join(line for line in lines if "level=info" not in line)
    raise SetupError(
        f"Docker: `dockerd` {outcome}; it may not be allowed to run here (in a container without privileges, say)."
        f"{last_lines(quotable)}\n"
        f"All it wrote is in {log}. Get `dockerd` to run, then run `make setup` again."
    )


@dataclass(frozen=True)
class Machine:
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


def inspect() -> Machine:
    """Return what this machine has of Docker."""
    failure = endpoint = ""
    try:
        endpoint = _context_endpoint()
        describe()
    except CommandFailed as error:
        failure = str(error)
    has_command, has_daemon = (shutil.which(name) is not None for name in ("docker", "dockerd"))
    is_root, is_macos = os.geteuid() == 0, sys.platform == "darwin"
    return Machine(has_command, failure, endpoint, has_daemon, is_root, programs.can_install(), is_macos)


def find_obstacle(machine: Machine) -> str | None:
    """Return why no daemon can be started or installed, and what the user can do; `None` if one can."""
    again = "then run `make setup` again."
    if not machine.has_command:
        install = f"Install Docker (docs.docker.com/get-docker), start it, {again}"
        return None if machine.can_install else f"there is no `docker` command. {install}"
    if machine.endpoint not in LOCAL_ENDPOINTS:
        return (
            f"no daemon answers at {machine.endpoint}, where DOCKER_HOST or the current Docker context points.\n"
            f"    {machine.failure}\n"
            f"Start that one, or leave it with `unset DOCKER_HOST; docker context use default`, {again}"
        )
    if "permission denied" in machine.failure:
        return f"it runs, but this user may not talk to it. Run `sudo usermod -aG docker $USER`, log in again, {again}"
    if machine.is_macos:
        return f"it is not running. Start Docker Desktop (`open -a Docker`), {again}"
    if not machine.has_daemon and not machine.can_install:
        return (
            "there is a `docker` command, but no daemon answers and none is installed. "
            f"Install Docker Engine (docs.docker.com/engine/install) or start Docker Desktop, {again}"
        )
    return None if machine.is_root else f"it is installed, but not running. Run `sudo systemctl start docker`, {again}"


def describe() -> str:
    """Return the version and the address of the daemon that answers. Raises CommandFailed.

    The `docker` command is asked, which knows about DOCKER_HOST, contexts and their credentials.
    """
    version = run("docker", "version", "--format", "{{.Server.Version}}", limit=ANSWER_LIMIT_SECONDS)
    return f"Docker: {version} at {_context_endpoint()}"


def _context_endpoint() -> str:
    template = "{{.Endpoints.docker.Host}}"
    return run("docker", "context", "inspect", "--format", template, limit=ANSWER_LIMIT_SECONDS)
