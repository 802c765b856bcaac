"""The Python environment: `.venv`, with exactly the packages of requirements.lock. What only tests need is in `dev`."""

import hashlib
import importlib.util
import json
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

from tools.setup import REQUIREMENTS, VENV, programs
from tools.setup.programs import CommandFailed, Output, SetupError, run

STAMP = VENV / "setup.json"
PYTHON = VENV / "bin" / "python"
PROMPT = "vertex-training"
VENV_LIMIT_SECONDS = 120
INSTALL_LIMIT_SECONDS = 1200
# The packages of an environment that `pulumi new` makes without a requirements.txt.
BASE_PACKAGES = {"pip", "setuptools", "wheel", "packaging"}


def find() -> str | None:
    """Describe `.venv`; return `None` if it is missing, incomplete or out of date."""
    try:
        found = json.loads(STAMP.read_text())
        count = found.pop("packages")
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return None
    if found != stamp() or not PYTHON.exists():
        return None
    return f"Python environment: {VENV.name}, Python {platform.python_version()}, {count} packages"


def make(output: Output) -> str:
    """Make `.venv` anew with the locked packages, unless a `.venv` is somebody else's. Raises SetupError."""
    if not can_replace(VENV):
        raise SetupError(
            f"Python environment: {VENV} is there, but this set-up did not make it, so it is left as it is.\n"
            "Move or remove it, then run `make setup` again."
        )
    if importlib.util.find_spec("ensurepip") is None:
        _install_ensurepip(output)
    try:
        run(base_python(), "-m", "venv", "--clear", "--prompt", PROMPT, VENV, limit=VENV_LIMIT_SECONDS)
    except CommandFailed as error:
        raise SetupError(f"Python environment: {VENV} could not be made. {error}") from error
    install(REQUIREMENTS, output)
    count = sum(1 for _ in VENV.glob("lib/python*/site-packages/*.dist-info"))
    STAMP.write_text(json.dumps({**stamp(), "packages": count}))
    return find() or ""


def install(lock: Path, output: Output) -> None:
    """Install the packages of a lock file into `.venv`. Raises SetupError."""
    locked = len(re.findall(r"^[\w.-]+==", lock.read_text(), re.MULTILINE))
    progress = output.progress(f"installing some {locked} packages into .venv, a minute or two, once")
    # The lock is complete, so pip need not resolve versions; hashes verify each file.
    options: list[str | Path] = [
        "--disable-pip-version-check",
        "--no-input",
        "--require-hashes",
        "--no-deps",
        "-r",
        lock,
    ]
    # To compile all modules takes as long as the rest, and most are never imported. Python compiles those that are.
    if not sys.dont_write_bytecode:
        options.append("--no-compile")
    try:
        command = (PYTHON, "-m", "pip", "install", *options)
        run(*command, limit=INSTALL_LIMIT_SECONDS, progress=progress, memory=programs.PYTHON_MEMORY)
    except CommandFailed as error:
        raise SetupError(
            f"Python environment: the packages of {lock.name} could not be installed. {error}\n"
            "Check the network and pip's settings (`python3 -m pip config list`), then run `make setup` again."
        ) from error


def can_replace(folder: Path) -> bool:
    """Return whether `folder` may be emptied: it is missing, empty, ours, or an environment without anyone's packages.

    `venv --clear` follows links, so a link is somebody else's.
    """
    if folder.is_symlink() or not folder.is_dir():
        return not os.path.lexists(folder)
    try:
        settings = (folder / "pyvenv.cfg").read_text()
    except FileNotFoundError:
        return not any(folder.iterdir())
    if re.search(rf"^prompt = '?{PROMPT}'?$", settings, re.MULTILINE):
        return True
    packages = {path.name.partition("-")[0] for path in folder.glob("lib*/python*/site-packages/*-info")}
    return bool(packages) and packages <= BASE_PACKAGES


def stamp() -> dict[str, Any]:
    """Return all that makes a `.venv` out of date when it changes: the lock, the interpreter, and the place.

    The place counts because a copied or moved virtual environment still runs the one it was copied from.
    """
    return {
        "requirements": hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest(),
        "python": str(base_python()),
        "version": platform.python_version(),
        "folder": str(VENV),
    }


def base_python() -> Path:
    """Return the interpreter outside any virtual environment, the same one after `eval "$(make -s env)"`."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def _install_ensurepip(output: Output) -> None:
    """Install Debian's package of `ensurepip`, which venv needs and Debian's Python lacks. Raises SetupError."""
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    problem = f"Python environment: {base_python()} has no `ensurepip`"
    if not programs.can_install():
        raise SetupError(
            f"{problem}, which `python3 -m venv` needs.\n"
            f"On Debian and Ubuntu: `sudo apt-get install {package}`, then run `make setup` again."
        )
    try:
        programs.install_packages(output, package)
    except CommandFailed as error:
        raise SetupError(f"{problem}, and {package} could not be installed. {error}") from error
