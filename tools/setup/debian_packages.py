"""Debian's packages, where this user may install them."""

import os
import shutil

from tools.setup.progress_output import ProgressOutput
from tools.setup.subprocess_runner import run_program

UPDATE_LIMIT_SECONDS = 180
INSTALL_LIMIT_SECONDS = 600


def can_install() -> bool:
    """Return whether `apt-get` exists and this user may install with it."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_packages(output: ProgressOutput, *packages: str) -> None:
    """Install Debian's packages with `apt-get`. Raises CommandFailed."""
    progress = output.create_seconds_callback(f"installing {', '.join(packages)} with apt-get")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run_program("apt-get", "update", "-q", limit=UPDATE_LIMIT_SECONDS, env=env, progress=progress)
    run_program("apt-get", "install", "-q", "-y", *packages, limit=INSTALL_LIMIT_SECONDS, env=env, progress=progress)
