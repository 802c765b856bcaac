"""The program of a container that runs Python packages: it installs them with pip and executes `python3 -m MODULE`.

Arguments: the packages' gs:// URIs as a JSON list, the module, the module's arguments.

The two pip commands per package, in this order, are those in the logs of real jobs on Google's prebuilt images.
"""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import sys
import tempfile
from pathlib import Path

_DEBUGGER, _DEBUGGER_OF_MODULE = "VERTEX_EMULATOR_DEBUGGER", "VERTEX_EMULATOR_DEBUGGER_OF_MODULE"


def main(package_uris: list[str], module: str, arguments: list[str]) -> None:
    """Install the packages in order, then replace this process by the module; exit with pip's status if pip fails."""
    # The first process of a container ignores SIGTERM by default, also while pip runs.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    pip_command = [sys.executable, "-m", "pip", "install"]
    if site.ENABLE_USER_SITE:  # not in a virtual environment: there, pip refuses --user
        pip_command.append("--user")
        _ensure_user_base()
    for uri in package_uris:
        _install(pip_command, uri)
    if _DEBUGGER_OF_MODULE in os.environ:
        os.environ[_DEBUGGER] = os.environ.pop(_DEBUGGER_OF_MODULE)
    command = [sys.executable, "-m", module, *arguments]
    _print_command(command)
    os.execv(command[0], command)


def _install(pip_command: list[str], uri: str) -> None:
    _print(f"Installing the package: {uri}")
    path = "/gcs/" + uri[len("gs://") :]
    anew = ["--upgrade", "--force-reinstall", "--no-deps"]
    extra: list[str] = []
    status = _run_pip([*pip_command, *anew, path])
    if status != 0 and not path.endswith(".whl"):
        _print("Installing again without build isolation, with the build tools of the image.")
        extra = ["--no-build-isolation"]
        status = _run_pip([*pip_command, *extra, *anew, path])
    status = status or _run_pip([*pip_command, *extra, path])
    if status != 0:
        sys.exit(status)


def _run_pip(command: list[str]) -> int:
    _print_command(command)
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    # Debian protects its Python from pip, which is not needed in a container.
    return subprocess.call(command, env={**quiet, "PIP_BREAK_SYSTEM_PACKAGES": "1", **os.environ})


def _ensure_user_base() -> None:
    """Let pip install to a new folder if the image's user has no writable home."""
    base = Path(site.getuserbase())
    existing = next(folder for folder in (base, *base.parents) if folder.exists())
    if not os.access(str(existing), os.W_OK):
        os.environ["PYTHONUSERBASE"] = tempfile.mkdtemp(prefix="packages-")


def _print_command(command: list[str]) -> None:
    _print("Running command: " + " ".join(["python3", *command[1:]]))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()  # before a child process writes to the same place


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:])
