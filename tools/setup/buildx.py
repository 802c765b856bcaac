"""Docker's buildx, for Dockerfiles that need BuildKit: the plugin of `docker`, or a program built here.

No set-up has it before an image needs it: the package runs this step then, where it runs from a checkout.
"""

import shutil
import tempfile
from pathlib import Path

from tools.setup import CHECKOUT, cache_folder, go, is_own, programs
from tools.setup.programs import CommandFailed, Output, SetupError, run

PACKAGES = ("docker-buildx-plugin", "docker-buildx")
"""Docker's own, and that of Debian (13 and later) and Ubuntu."""
MODULE = CHECKOUT / "tools" / "buildx"
REQUIRED = "github.com/docker/buildx"
PROGRAM = f"{REQUIRED}/cmd/buildx"
COMPILER_FLAGS = ("-gcflags=all=-N -l -dwarf=false",)
"""It runs some minutes in all: not optimized, it compiles in three quarters of the time."""
VERSION_LIMIT_SECONDS = 30


def find() -> str | None:
    """Describe the plugin, or the program in the cache; return `None` if there is neither."""
    built = [(str(cached()),)] if is_own(cache_folder()) else []
    for command in (("docker", "buildx"), *built):
        try:
            # Such as `github.com/docker/buildx v0.19.3 48d6a39`.
            version = run(*command, "version", limit=VERSION_LIMIT_SECONDS).split()
        except CommandFailed:
            continue
        return f"buildx: {version[1].removeprefix('v') if version[1:] else 'unknown'} as `{' '.join(command)}`"
    return None


def cached() -> Path:
    """Return where a set-up puts the program that it builds."""
    return cache_folder() / f"buildx-{go.required_version(MODULE, REQUIRED)}" / "buildx"


def make(output: Output) -> str:
    """Install Debian's package if there is one and this user may, else build it. Raises SetupError."""
    reasons = []
    if programs.can_install():
        try:
            package = programs.install_first(output, *PACKAGES)
            if line := find():
                return f"{line}, from the package {package}"
        except CommandFailed as error:
            reasons.append(f"  a package: {error}")
    try:
        build(cached(), output)
    except CommandFailed as error:
        reasons.append(f"  a build from its Go modules: {error}")
    if line := find():
        return f"{line}, built from its Go modules"
    raise SetupError(
        "buildx: Docker has no plugin, and none could be had:\n"
        + "\n".join(reasons)
        + f"\nInstall the package {' or '.join(PACKAGES)}, Docker Desktop, or Go {go.min_version(MODULE)} or later "
        "where Go's modules can be reached, then run this again."
    )


def build(program: Path, output: Output) -> None:
    """Build the program: whole or not at all. Raises CommandFailed."""
    version = go.required_version(MODULE, REQUIRED)
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent.parent) as partial:
        linker_flags = f"-ldflags=-s -w -X {REQUIRED}/version.Version=v{version}"
        new = Path(partial, program.name)
        go.build(MODULE, PROGRAM, new, (*COMPILER_FLAGS, linker_flags), output)
        shutil.move(new, program)
