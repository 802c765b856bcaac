"""The Pulumi engine: one on PATH if recent enough, an earlier set-up's, the official one, or one built here."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.setup import engine_build, python_environment
from tools.setup.commands import CommandFailed, run
from tools.setup.console import Console
from tools.setup.errors import SetupError
from tools.setup.folders import cache_folder

ENGINE_VERSION = "3.259.0"  # as the `pulumi` package in requirements.lock, whose installer fetches the same version
FLOOR = (3, 216, 0)  # since then a dynamic resource whose job drifted is shown in previews and repaired
LANGUAGE_HOST = "pulumi-language-python"
VERSION_LIMIT_SECONDS = 30
INSTALLER_LIMIT_SECONDS = 300
INSTALLER = """
import socket, sys
from pulumi.automation import PulumiCommand
socket.setdefaulttimeout(15)
try:
    PulumiCommand.install(root=sys.argv[1])
except Exception as error:
    sys.exit(f"{error}\\n{(getattr(error, 'output', None) or b'').decode(errors='replace')}")
"""


@dataclass(frozen=True)
class Engine:
    """A usable engine: its version as it prints it, without the `v`, and the folder of its programs."""

    version: str
    folder: Path

    def __str__(self) -> str:
        return f"Pulumi: {self.version} from {self.folder}"


def find() -> str | None:
    """What is in place, in one line; None when neither PATH nor the cache has a recent enough engine."""
    engine = find_engine()
    return str(engine) if engine else None


def find_engine() -> Engine | None:
    """The engine to use: the one on PATH if recent enough, else the one that an earlier set-up left in the cache."""
    on_path = shutil.which("pulumi")
    candidates = [Path(on_path)] if on_path else []
    candidates.append(cached_folder() / "pulumi")
    return next(filter(None, map(usable, candidates)), None)


def cached_folder() -> Path:
    """Where a set-up puts the programs of the engine that it installs or builds."""
    return cache_folder() / f"engine-{ENGINE_VERSION}" / "bin"


def usable(program: Path) -> Engine | None:
    """The engine at `program`, or None when it does not run, is too old, or lacks the host for Python programs."""
    version = printed_version(program)
    if version is None or (parse_version(version) or (0, 0, 0)) < FLOOR:
        return None
    beside = os.pathsep.join([str(program.parent), str(program.resolve().parent), os.environ.get("PATH", "")])
    return Engine(version, program.parent) if shutil.which(LANGUAGE_HOST, path=beside) else None


def printed_version(program: Path) -> str | None:
    """What `pulumi version` prints, without the `v`; None when it does not run."""
    env = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        return run(program, "version", limit=VERSION_LIMIT_SECONDS, env=env).removeprefix("v")
    except CommandFailed:
        return None


def parse_version(text: str) -> tuple[int, int, int] | None:
    """The three numbers of `3.259.0`, `v3.259.0` or `3.260.0-alpha.1`, which compare in order; None for other text."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)(?![\d.])", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def make(console: Console) -> str:
    """Install the official engine into the cache or, where that cannot be had, build it. Raises SetupError."""
    ways = (("Pulumi's own installer", install), ("a build from its Go modules", engine_build.build))
    way, engine = first_success(ways, console)
    return f"{engine}, installed by {way}"


def first_success(ways: Sequence[tuple[str, Callable[[Path, Console], None]]], console: Console) -> tuple[str, Engine]:
    """The first way that fills a folder with a working engine, and that engine, in its place in the cache.

    Each way gets an empty folder, to put the programs in its `bin`. The folder takes its place only once its engine
    prints the right version, so an interrupted set-up leaves nothing half done. Raises SetupError with every reason.
    """
    final = cached_folder().parent
    final.parent.mkdir(parents=True, exist_ok=True)
    for left_over in final.parent.glob(f"{final.name}.partial-*"):
        shutil.rmtree(left_over)
    reasons = []
    for number, (name, fill) in enumerate(ways):
        partial = final.with_name(f"{final.name}.partial-{number}")
        partial.mkdir()
        try:
            fill(partial, console)
            version = printed_version(partial / "bin" / "pulumi")
            if version != ENGINE_VERSION:
                raise CommandFailed(f"`pulumi version` prints {version or 'nothing'} instead of {ENGINE_VERSION}")
        except CommandFailed as error:
            reasons.append(f"  {name}: {error}")
            shutil.rmtree(partial)
            continue
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        return name, Engine(version, cached_folder())
    floor = ".".join(map(str, FLOOR))
    raise SetupError(
        f"Pulumi: no engine {floor} or later with its {LANGUAGE_HOST} on PATH, and none could be had:\n"
        + "\n".join(reasons)
        + f"\nInstall Pulumi {floor} or later (pulumi.com/docs/install), or Go {engine_build.go_floor()} or later"
        " where Go's modules can be reached, then run `make setup` again."
    )


def install(folder: Path, console: Console) -> None:
    """Let Pulumi's Automation API install the engine that fits the Python package. Raises CommandFailed."""
    if not python_environment.PYTHON.exists():
        raise CommandFailed("it is part of the Python environment, which is missing")
    run(
        *(python_environment.PYTHON, "-c", INSTALLER, folder),
        limit=INSTALLER_LIMIT_SECONDS,
        progress=console.progress(f"installing Pulumi {ENGINE_VERSION}, once"),
    )
