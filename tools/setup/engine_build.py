"""The Pulumi engine, built from its Go modules where only those can be reached.

The modules and their checksums are in tools/engine and tools/language. The host for Python programs has a module of
its own because the engine's module no longer carries it; the last version that does works with today's engine.
"""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tools.setup.commands import CommandFailed, run
from tools.setup.console import Console
from tools.setup.folders import CHECKOUT

ENGINE_MODULE = CHECKOUT / "tools" / "engine"
LANGUAGE_MODULE = CHECKOUT / "tools" / "language"
SDK = "github.com/pulumi/pulumi/sdk/v3"
VERSION_VARIABLE = f"{SDK}/go/common/version.Version"
# What the language host starts: the runner of a program, and the plugin of dynamic resources.
SCRIPTS = ("python/cmd/pulumi-language-python-exec", "python/dist/pulumi-resource-pulumi-python")
BUILD_LIMIT_SECONDS = 3600
LANGUAGE_HOST = "pulumi-language-python"
LANGUAGE_HOST_SCRIPT = """\
#!/bin/sh
# Today's engine sends the options of Pulumi.yaml with each call. This older host reads them from its command line.
virtualenv=$(sed -n 's/^ *virtualenv: *//p' Pulumi.yaml 2>/dev/null)
exec "${0%/*}/pulumi-language-python-host" -root="$PWD" ${virtualenv:+"-virtualenv=$virtualenv"} "$@"
"""


@dataclass(frozen=True)
class Program:
    """A Go program: the folder of the module that requires it, its import path, and the required module's path."""

    folder: Path
    package: str
    required: str


PROGRAMS = (
    Program(ENGINE_MODULE, "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi", "github.com/pulumi/pulumi/pkg/v3"),
    Program(LANGUAGE_MODULE, f"{SDK}/python/cmd/pulumi-language-python", SDK),
)


def build(folder: Path, console: Console) -> None:
    """Build the engine and its Python host into `folder`/bin. Raises CommandFailed."""
    if shutil.which("go") is None:
        raise CommandFailed("there is no `go` on PATH")
    target = folder / "bin"
    target.mkdir()
    for program in PROGRAMS:
        version = required_version((program.folder / "go.mod").read_text(), program.required)
        name = program.package.rpartition("/")[2]
        flags = f"-s -w -X {VERSION_VARIABLE}={version}"
        run(
            *("go", "build", "-trimpath", "-ldflags", flags, "-o", target / name, program.package),
            folder=program.folder,
            env=go_environment(),
            limit=BUILD_LIMIT_SECONDS,
            progress=console.progress(f"building {name} from its Go modules, about four minutes in all, once"),
        )
    sdk = run("go", "list", "-m", "-f", "{{.Dir}}", SDK, folder=ENGINE_MODULE, env=go_environment(), limit=60)
    for script in SCRIPTS:
        copy = target / Path(script).name
        shutil.copyfile(Path(sdk) / script, copy)
        copy.chmod(0o755)
    wrap_language_host(target)


def wrap_language_host(folder: Path) -> None:
    """Put a script in the place of the Python host in `folder`, which tells the host the virtual environment."""
    host = folder / LANGUAGE_HOST
    host.rename(folder / f"{LANGUAGE_HOST}-host")
    host.write_text(LANGUAGE_HOST_SCRIPT)
    host.chmod(0o755)


def go_environment() -> dict[str, str]:
    """The user's environment, less what would switch off go.sum's checks or bring in another workspace."""
    return {**os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off", "CGO_ENABLED": "0"}


def required_version(go_mod: str, module: str) -> str:
    """The version of `module` that a go.mod requires, without the `v`."""
    match = re.search(rf"^(?:require)?\s*{re.escape(module)} v(\S+)", go_mod, re.MULTILINE)
    if match is None:
        raise CommandFailed(f"go.mod does not require {module}")
    return match[1]


def go_floor() -> str:
    """The oldest Go that builds the engine."""
    match = re.search(r"^go (\S+)", (ENGINE_MODULE / "go.mod").read_text(), re.MULTILINE)
    assert match
    return match[1]
