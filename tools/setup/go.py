"""Programs built from their Go modules, whose versions and checksums are in folders of tools/."""

import os
import re
import shutil
from pathlib import Path

from tools.setup.programs import COMPILER_MEMORY, CommandFailed, Output, Progress, run

BUILD_LIMIT_SECONDS = 3600


def build(module: Path, package: str, target: Path, flags: tuple[str, ...], output: Output) -> None:
    """Build the program `package`, which the module in a folder requires, as the file `target`. Raises CommandFailed.

    `flags` are those of `go build`.
    """
    if shutil.which("go") is None:
        raise CommandFailed("there is no `go` on PATH")
    count = len(packages(module, package, output))
    # With -v, go writes a line for each package that it compiles.
    progress = output.progress(f"building {target.name} from its Go modules, once", f"{{}} of {count} packages")
    command = ("go", "build", "-v", *flags, "-o", str(target), package)
    run(
        *command, folder=module, env=environment(), limit=BUILD_LIMIT_SECONDS, progress=progress, memory=COMPILER_MEMORY
    )


def packages(module: Path, package: str, output: Output) -> list[str]:
    """Return the packages that make up a program, after their modules have been downloaded. Raises CommandFailed."""
    progress = output.progress(f"downloading the Go modules of {package.rpartition('/')[2]}, once")
    return _run("go", "list", "-deps", package, module=module, progress=progress).splitlines()


def _run(*command: str, module: Path, progress: Progress) -> str:
    limit, memory = BUILD_LIMIT_SECONDS, COMPILER_MEMORY
    return run(*command, folder=module, env=environment(), progress=progress, limit=limit, memory=memory)


def environment() -> dict[str, str]:
    """Return the user's environment without what disables go.sum's checks or adds another workspace."""
    return {**os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off", "CGO_ENABLED": "0"}


def required_version(module: Path, required: str) -> str:
    """Return the version of `required` that a module's go.mod requires, without the `v`. Raises CommandFailed."""
    match = re.search(rf"^(?:require)?\s*{re.escape(required)} v(\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise CommandFailed(f"go.mod does not require {required}")
    return match[1]


def min_version(module: Path) -> str:
    """Return the oldest version of Go that builds a module."""
    match = re.search(r"^go (\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    assert match
    return match[1]
