"""The Pulumi engine: one on PATH if recent enough, an earlier set-up's, the official one, or one built here."""

import contextlib
import os
import re
import shutil
import socket
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.setup import CHECKOUT, cache_folder, go, is_own, programs, python
from tools.setup.programs import CommandFailed, Output, SetupError, run

ENGINE_VERSION = "3.259.0"  # as the `pulumi` package in requirements.lock, whose installer fetches the same version
MIN_VERSION = (3, 216, 0)  # since then a dynamic resource whose job drifted is shown in previews and repaired
VERSION_LIMIT_SECONDS = 30
INSTALLER_LIMIT_SECONDS = 300
INSTALLER = """
import socket, sys, urllib.request
from pulumi.automation import PulumiCommand

class Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, reply, code, reason, headers, address):
        if not address.startswith("https://"):
            raise OSError(f"{request.full_url} leads to {address}, which is not encrypted")
        return super().redirect_request(request, reply, code, reason, headers, address)

urllib.request.install_opener(urllib.request.build_opener(Redirects))
socket.setdefaulttimeout(15)
try:
    PulumiCommand.install(root=sys.argv[1])
except Exception as error:
    sys.exit(f"{error}\\n{(getattr(error, 'output', None) or b'').decode(errors='replace')}")
"""
NamedInstaller = tuple[str, Callable[[Path, Output], None]]
# Built from its Go modules where only those can be reached. The modules and their checksums are in tools/engine and
# tools/language. The host for Python programs has a module of its own because the engine's module no longer carries
# it; the last version that does works with today's engine. What both require has one version, so it is compiled once.
ENGINE_MODULE = CHECKOUT / "tools" / "engine"
LANGUAGE_MODULE = CHECKOUT / "tools" / "language"
SDK = "github.com/pulumi/pulumi/sdk/v3"
PKG = "github.com/pulumi/pulumi/pkg/v3"
# What the language host starts: the runner of a program, and the plugin of dynamic resources.
SCRIPTS = ("python/cmd/pulumi-language-python-exec", "python/dist/pulumi-resource-pulumi-python")
LANGUAGE_HOST = "pulumi-language-python"
LANGUAGE_HOST_SCRIPT = """\
#!/bin/sh
# Today's engine sends the options of Pulumi.yaml with each call. This older host reads them from its command line.
virtualenv=$(sed -n 's/^ *virtualenv: *//p' Pulumi.yaml 2>/dev/null)
exec "${0%/*}/pulumi-language-python-host" -root="$PWD" ${virtualenv:+"-virtualenv=$virtualenv"} "$@"
"""
# Of each Go program: the folder of the module that requires it, its import path, and the required module's path.
PROGRAMS = ((ENGINE_MODULE, f"{PKG}/cmd/pulumi", PKG), (LANGUAGE_MODULE, f"{SDK}/python/cmd/{LANGUAGE_HOST}", SDK))
# Debug information that the linker leaves out (-s -w) is not compiled either. Only what runs at every command is
# optimized: that takes two thirds more time. The last pattern that fits a package counts.
COMPILER_FLAGS = (
    "all=-dwarf=false -N -l",
    *(f"{pattern}=-dwarf=false" for pattern in ("std", "google.golang.org/...", f"{SDK}/...")),
    *(f"{PKG}/{folder}/...=-dwarf=false" for folder in ("backend", "engine", "resource", "secrets")),
)
WEBSITE = "pulumi.com"


@dataclass(frozen=True)
class Engine:
    """A usable engine: its version as it prints it, without the `v`, and the folder of its programs."""

    version: str
    folder: Path

    def __str__(self) -> str:
        return f"Pulumi: {self.version} from {self.folder}"


def find() -> str | None:
    """Describe the engine; return `None` if neither PATH nor the cache has a recent enough one."""
    engine = find_engine()
    return str(engine) if engine else None


def find_engine() -> Engine | None:
    """Return the engine on PATH if it is recent enough, else the one in the cache, else `None`."""
    candidates = (shutil.which("pulumi"), cached_bin() / "pulumi" if is_own(cache_folder()) else None)
    return next(filter(None, (usable(Path(program)) for program in candidates if program)), None)


def cached_bin() -> Path:
    """Return the folder of the programs of the engine that a set-up installs or builds."""
    return cache_folder() / f"engine-{ENGINE_VERSION}" / "bin"


def usable(program: Path) -> Engine | None:
    """Return the engine at `program`; `None` if it fails, is too old, or lacks the host for Python programs."""
    version = query_version(program)
    if version is None or (parse_version(version) or (0, 0, 0)) < MIN_VERSION:
        return None
    search_path = os.pathsep.join([str(program.parent), str(program.resolve().parent), os.environ.get("PATH", "")])
    return Engine(version, program.parent) if shutil.which(LANGUAGE_HOST, path=search_path) else None


def query_version(program: Path) -> str | None:
    """Return what `pulumi version` prints, without the `v`; `None` if it fails."""
    env = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        return run(program, "version", limit=VERSION_LIMIT_SECONDS, env=env).removeprefix("v")
    except CommandFailed:
        return None


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Return the three numbers of `3.259.0`, `v3.259.0` or `3.260.0-alpha.1`; `None` for other text."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)(?![\d.])", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def make(output: Output) -> str:
    """Install the official engine into the cache or, if that fails, build one. Raises SetupError."""
    installers = (
        ("Pulumi's own installer", install_official),
        ("a build from its Go modules", build),
    )
    name, engine = install(installers, output)
    return f"{engine}, installed by {name}"


def install(installers: Sequence[NamedInstaller], output: Output) -> tuple[str, Engine]:
    """Try the named installers in turn, and return the name of the first that works, and its engine in the cache.

    Each one gets an empty folder, and puts the programs into its `bin`. The folder moves to the cache only once its
    engine prints the right version, so an interrupted set-up leaves no incomplete one. Raises SetupError.
    """
    final = cached_bin().parent
    final.parent.mkdir(parents=True, exist_ok=True)
    for leftover in final.parent.glob(f"{final.name}.partial-*"):
        shutil.rmtree(leftover)
    reasons = []
    for number, (name, try_install) in enumerate(installers):
        partial = final.with_name(f"{final.name}.partial-{number}")
        partial.mkdir()
        try:
            try_install(partial, output)
            version = query_version(partial / "bin" / "pulumi")
            if version != ENGINE_VERSION:
                raise CommandFailed(f"`pulumi version` prints {version or 'nothing'} instead of {ENGINE_VERSION}")
        except CommandFailed as error:
            reasons.append(f"  {name}: {error}")
            shutil.rmtree(partial)
            continue
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        return name, Engine(version, cached_bin())
    min_version, min_go = ".".join(map(str, MIN_VERSION)), go.min_version(ENGINE_MODULE)
    raise SetupError(
        f"Pulumi: no engine {min_version} or later with its {LANGUAGE_HOST} on PATH, and none could be had:\n"
        + "\n".join(reasons)
        + f"\nInstall Pulumi {min_version} or later (pulumi.com/docs/install), or Go {min_go} or later"
        " where Go's modules can be reached, then run `make setup` again."
    )


def install_official(target_folder: Path, output: Output) -> None:
    """Let Pulumi's Automation API install the engine that fits the Python package. Raises CommandFailed."""
    if not python.PYTHON.exists():
        raise CommandFailed("it is part of the Python environment, which is missing")
    progress = output.progress(f"installing Pulumi {ENGINE_VERSION}, once")
    command = (python.PYTHON, "-c", INSTALLER, target_folder)
    run(*command, limit=INSTALLER_LIMIT_SECONDS, progress=progress, memory=programs.PYTHON_MEMORY)


def prepare(output: Output) -> None:
    """Download the modules of a build while other steps run, if Pulumi's own installer will not work here.

    That it will not is taken from pulumi.com having no address. A failure is left to the build, which tries again.
    """
    if find() or shutil.which("go") is None or urllib.request.getproxies() or _has_address(WEBSITE):
        return
    with contextlib.suppress(CommandFailed):
        for module_folder, package, _ in PROGRAMS:
            go.packages(module_folder, package, output)


def build(target_folder: Path, output: Output) -> None:
    """Build the engine and its Python host into `target_folder`/bin. Raises CommandFailed."""
    programs_folder = target_folder / "bin"
    programs_folder.mkdir()
    for module_folder, package, required_module in PROGRAMS:
        version = go.required_version(module_folder, required_module)
        flags = ("-trimpath", *(f"-gcflags={each}" for each in COMPILER_FLAGS))
        linker_flags = ("-ldflags", f"-s -w -X {SDK}/go/common/version.Version={version}")
        go.build(module_folder, package, programs_folder / package.rpartition("/")[2], (*flags, *linker_flags), output)
    command = ("go", "list", "-m", "-f", "{{.Dir}}", SDK)
    sdk_folder = run(*command, folder=ENGINE_MODULE, env=go.environment(), limit=60)
    for script in SCRIPTS:
        copy = programs_folder / Path(script).name
        shutil.copyfile(Path(sdk_folder) / script, copy)
        copy.chmod(0o755)
    wrap_host(programs_folder)


def _has_address(host: str) -> bool:
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return False
    return True


def wrap_host(folder: Path) -> None:
    """Replace the Python host in `folder` by a script that starts it with the project's virtual environment."""
    host = folder / LANGUAGE_HOST
    host.rename(folder / f"{LANGUAGE_HOST}-host")
    host.write_text(LANGUAGE_HOST_SCRIPT)
    host.chmod(0o755)
