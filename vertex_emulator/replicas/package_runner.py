"""The program of a container that runs Python packages: installs them with pip, then becomes `python3 -m MODULE`.

It is not imported here but handed, as text, to the Python of the executor image. So it takes nothing but the standard
library of Python 3.7. Arguments: the packages' gs:// URIs as a JSON list, the module, the module's arguments.

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


def main(packages: list[str], module: str, arguments: list[str]) -> None:
    """Install every package in order, then run the module in place of this process; pip's failure is its own."""
    # The first process of a container would otherwise not hear of it while pip runs.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    pip = [sys.executable, "-m", "pip", "install"]
    if site.ENABLE_USER_SITE:  # not in a virtual environment: there, pip refuses --user
        pip.append("--user")
        _have_a_writable_user_base()
    for uri in packages:
        _install(pip, uri)
    command = [sys.executable, "-m", module, *arguments]
    _announce(command)
    os.execv(command[0], command)


def _install(pip: list[str], uri: str) -> None:
    _say(f"Installing the package: {uri}")
    path = "/gcs/" + uri[len("gs://") :]
    anew = ["--upgrade", "--force-reinstall", "--no-deps"]
    extra: list[str] = []
    status = _run([*pip, *anew, path])
    if status != 0 and not path.endswith(".whl"):
        _say("Installing again without build isolation, with the build tools of the image.")
        extra = ["--no-build-isolation"]
        status = _run([*pip, *extra, *anew, path])
    status = status or _run([*pip, *extra, path])
    if status != 0:
        sys.exit(status)


def _run(command: list[str]) -> int:
    _announce(command)
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    # Distributions mark their Python as managed by them; this container is nobody's but the job's.
    return subprocess.call(command, env={**quiet, "PIP_BREAK_SYSTEM_PACKAGES": "1", **os.environ})


def _have_a_writable_user_base() -> None:
    """Images run as users without a home; pip installs for them into a folder of its own."""
    base = Path(site.getuserbase())
    existing = next(folder for folder in (base, *base.parents) if folder.exists())
    if not os.access(str(existing), os.W_OK):
        os.environ["PYTHONUSERBASE"] = tempfile.mkdtemp(prefix="packages-")


def _announce(command: list[str]) -> None:
    _say("Running command: " + " ".join(["python3", *command[1:]]))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()  # before a child process writes to the same place


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:])
