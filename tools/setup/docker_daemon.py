"""The Docker daemon: one that runs, or one that this starts, after it has installed Debian's package if need be."""

import signal
import subprocess
import time
from pathlib import Path

from tools.setup import debian_packages
from tools.setup.checkout_folders import get_shared_cache_folder
from tools.setup.docker_setup_obstacles import (
    describe_docker_setup_obstacle_or_none,
    inspect_docker_setup,
    require_daemon_description,
)
from tools.setup.progress_output import ProgressOutput
from tools.setup.subprocess_runner import (
    CommandFailed,
    SecondsCallback,
    SetupError,
    render_last_lines,
    run_program,
)

PACKAGE = "docker.io"
SYSTEMD = Path("/run/systemd/system")  # exists if systemd runs this machine, see sd_booted(3)
START_LIMIT_SECONDS = 60


def describe_if_ready() -> str | None:
    """Describe the running daemon; return `None` if there is none, or none that this user may use."""
    try:
        return require_daemon_description()
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


def start_daemon_and_describe(output: ProgressOutput) -> str:
    """Start the installed daemon and wait until it answers. Raises SetupError with the daemon's last lines."""
    log = get_shared_cache_folder() / "dockerd.log"
    progress = output.create_seconds_callback("starting Docker")
    if SYSTEMD.is_dir():
        try:
            run_program("systemctl", "start", "docker", limit=START_LIMIT_SECONDS, progress=progress)
            return f"{require_daemon_description()}, started with systemctl"
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
    _await_answer_or_terminate_and_raise(daemon, log, progress)
    return f"{require_daemon_description()}, started (log in {log})"


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
