"""The Pulumi engine: one on PATH if recent enough, an earlier set-up's, the official one, or one built here."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.setup import pulumi_engine_build, python_environment
from tools.setup.checkout_folders import get_shared_cache_folder
from tools.setup.progress_output import ProgressOutput
from tools.setup.pulumi_engine_build import LANGUAGE_HOST
from tools.setup.subprocess_runner import CommandFailed, SetupError, run_program

ENGINE_VERSION = "3.259.0"  # as the `pulumi` package in requirements.lock, whose installer fetches the same version
MIN_VERSION = (3, 216, 0)  # since then a dynamic resource whose job drifted is shown in previews and repaired
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
NamedInstaller = tuple[str, Callable[[Path, ProgressOutput], None]]


@dataclass(frozen=True)
class Engine:
    """A usable engine: its version as it prints it, without the `v`, and the folder of its programs."""

    version: str
    folder: Path

    def __str__(self) -> str:
        return f"Pulumi: {self.version} from {self.folder}"


def describe_if_ready() -> str | None:
    """Describe the engine; return `None` if neither PATH nor the cache has a recent enough one."""
    engine = find_usable_engine_or_none()
    return str(engine) if engine else None


def find_usable_engine_or_none() -> Engine | None:
    """Return the engine on PATH if it is recent enough, else the one in the cache, else `None`."""
    candidates = (shutil.which("pulumi"), get_cached_engine_bin_folder() / "pulumi")
    return next(filter(None, (get_engine_if_usable(Path(program)) for program in candidates if program)), None)


def get_cached_engine_bin_folder() -> Path:
    """Return the folder of the programs of the engine that a set-up installs or builds."""
    return get_shared_cache_folder() / f"engine-{ENGINE_VERSION}" / "bin"


def get_engine_if_usable(program: Path) -> Engine | None:
    """Return the engine at `program`; `None` if it fails, is too old, or lacks the host for Python programs."""
    version = query_engine_version_or_none(program)
    if version is None or (parse_version_or_none(version) or (0, 0, 0)) < MIN_VERSION:
        return None
    search_path = os.pathsep.join([str(program.parent), str(program.resolve().parent), os.environ.get("PATH", "")])
    return Engine(version, program.parent) if shutil.which(LANGUAGE_HOST, path=search_path) else None


def query_engine_version_or_none(program: Path) -> str | None:
    """Return what `pulumi version` prints, without the `v`; `None` if it fails."""
    env = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        return run_program(program, "version", limit=VERSION_LIMIT_SECONDS, env=env).removeprefix("v")
    except CommandFailed:
        return None


def parse_version_or_none(text: str) -> tuple[int, int, int] | None:
    """Return the three numbers of `3.259.0`, `v3.259.0` or `3.260.0-alpha.1`; `None` for other text."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)(?![\d.])", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def set_up_and_describe(output: ProgressOutput) -> str:
    """Install the official engine into the cache or, if that fails, build one. Raises SetupError."""
    installers = (
        ("Pulumi's own installer", install_official_engine),
        ("a build from its Go modules", pulumi_engine_build.build_engine),
    )
    name, engine = install_and_get_installer_name_and_engine(installers, output)
    return f"{engine}, installed by {name}"


def install_and_get_installer_name_and_engine(
    installers: Sequence[NamedInstaller], output: ProgressOutput
) -> tuple[str, Engine]:
    """Try the named installers in turn, and return the name of the first that works, and its engine in the cache.

    Each one gets an empty folder, and puts the programs into its `bin`. The folder moves to the cache only once its
    engine prints the right version, so an interrupted set-up leaves no incomplete one. Raises SetupError.
    """
    final = get_cached_engine_bin_folder().parent
    final.parent.mkdir(parents=True, exist_ok=True)
    for leftover in final.parent.glob(f"{final.name}.partial-*"):
        shutil.rmtree(leftover)
    reasons = []
    for number, (name, install) in enumerate(installers):
        partial = final.with_name(f"{final.name}.partial-{number}")
        partial.mkdir()
        try:
            install(partial, output)
            version = query_engine_version_or_none(partial / "bin" / "pulumi")
            if version != ENGINE_VERSION:
                raise CommandFailed(f"`pulumi version` prints {version or 'nothing'} instead of {ENGINE_VERSION}")
        except CommandFailed as error:
            reasons.append(f"  {name}: {error}")
            shutil.rmtree(partial)
            continue
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        return name, Engine(version, get_cached_engine_bin_folder())
    min_version, min_go = ".".join(map(str, MIN_VERSION)), pulumi_engine_build.read_min_go_version()
    raise SetupError(
        f"Pulumi: no engine {min_version} or later with its {LANGUAGE_HOST} on PATH, and none could be had:\n"
        + "\n".join(reasons)
        + f"\nInstall Pulumi {min_version} or later (pulumi.com/docs/install), or Go {min_go} or later"
        " where Go's modules can be reached, then run `make setup` again."
    )


def install_official_engine(target_folder: Path, output: ProgressOutput) -> None:
    """Let Pulumi's Automation API install the engine that fits the Python package. Raises CommandFailed."""
    if not python_environment.PYTHON.exists():
        raise CommandFailed("it is part of the Python environment, which is missing")
    progress = output.create_seconds_callback(f"installing Pulumi {ENGINE_VERSION}, once")
    run_program(
        python_environment.PYTHON, "-c", INSTALLER, target_folder, limit=INSTALLER_LIMIT_SECONDS, progress=progress
    )
