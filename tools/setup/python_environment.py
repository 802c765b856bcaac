"""The Python environment: `.venv`, with exactly the packages of requirements.lock."""

import hashlib
import importlib.util
import json
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

from tools.setup import debian
from tools.setup.commands import CommandFailed, run
from tools.setup.console import Console
from tools.setup.errors import SetupError
from tools.setup.folders import REQUIREMENTS, VENV

STAMP = VENV / "setup.json"
PYTHON = VENV / "bin" / "python"
PROMPT = "vertex-training"
VENV_LIMIT_SECONDS = 120
INSTALL_LIMIT_SECONDS = 1200
OF_EVERY_ENVIRONMENT = {"pip", "setuptools", "wheel", "packaging"}
"""What is in the environment that `pulumi new` makes, where no requirements.txt says more."""


def find() -> str | None:
    """What is in place, in one line; None when `.venv` is missing, incomplete or out of date."""
    try:
        stamp = json.loads(STAMP.read_text())
        packages = stamp.pop("packages")
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return None
    return _line(packages) if stamp == wanted() and PYTHON.exists() else None


def make(console: Console) -> str:
    """Make `.venv` anew and install the locked packages. Raises SetupError, and leaves a `.venv` of others alone."""
    python = base_python()
    if not may_replace(VENV):
        raise SetupError(
            f"Python environment: {VENV} is there, but this set-up did not make it, so it is left as it is.\n"
            "Move or remove it, then run `make setup` again."
        )
    if importlib.util.find_spec("ensurepip") is None:
        _install_ensurepip(console)
    count = len(re.findall(r"^[\w.-]+==", REQUIREMENTS.read_text(), re.MULTILINE))
    progress = console.progress(f"installing some {count} packages into .venv, a minute or two, once")
    try:
        run(python, "-m", "venv", "--clear", "--prompt", PROMPT, VENV, limit=VENV_LIMIT_SECONDS)
        # The lock is complete, so there is nothing to resolve; the hashes make sure that it is what was locked.
        options = ("--disable-pip-version-check", "--no-input", "--require-hashes", "--no-deps")
        run(
            *(PYTHON, "-m", "pip", "install", *options, "-r", REQUIREMENTS),
            limit=INSTALL_LIMIT_SECONDS,
            progress=progress,
        )
    except CommandFailed as error:
        raise SetupError(
            f"Python environment: the packages of requirements.lock could not be installed. {error}\n"
            "Check the network and pip's settings (`python3 -m pip config list`), then run `make setup` again."
        ) from error
    packages = sum(1 for _ in VENV.glob("lib/python*/site-packages/*.dist-info"))
    STAMP.write_text(json.dumps({**wanted(), "packages": packages}))
    return _line(packages)


def may_replace(folder: Path) -> bool:
    """Whether nothing of anybody else's is lost when `folder` is emptied: `venv --clear` follows links, too.

    Nothing is lost of an environment that holds no packages of anyone's, as `pulumi new` leaves one.
    """
    if folder.is_symlink() or not folder.is_dir():
        return not os.path.lexists(folder)
    try:
        settings = (folder / "pyvenv.cfg").read_text()
    except FileNotFoundError:
        return not any(folder.iterdir())
    if re.search(rf"^prompt = '?{PROMPT}'?$", settings, re.MULTILINE):
        return True
    found = {path.name.partition("-")[0] for path in folder.glob("lib*/python*/site-packages/*-info")}
    return bool(found) and found <= OF_EVERY_ENVIRONMENT


def wanted() -> dict[str, Any]:
    """All that makes a `.venv` out of date when it changes: the lock, the interpreter, and the place.

    The place counts because a virtual environment that was copied or moved still runs the one it was copied from.
    """
    return {
        "requirements": hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest(),
        "python": str(base_python()),
        "version": platform.python_version(),
        "folder": str(VENV),
    }


def base_python() -> Path:
    """The interpreter outside any virtual environment, so that it is the same one after `eval "$(make -s env)"`."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def _install_ensurepip(console: Console) -> None:
    """Debian keeps `ensurepip`, which venv needs, in a package of its own."""
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if not debian.can_install():
        raise SetupError(
            f"Python environment: {base_python()} has no `ensurepip`, which `python3 -m venv` needs.\n"
            f"On Debian and Ubuntu: `sudo apt-get install {package}`, then run `make setup` again."
        )
    try:
        debian.install(console, package)
    except CommandFailed as error:
        raise SetupError(
            f"Python environment: {base_python()} has no `ensurepip`, and {package} could not be installed. {error}"
        ) from error


def _line(packages: int) -> str:
    return f"Python environment: {VENV.name}, Python {platform.python_version()}, {packages} packages"
