"""The Pulumi engine, built from its Go modules where only those can be reached.

The modules and their checksums are in tools/engine and tools/language. The host for Python programs has a module of
its own because the engine's module no longer carries it; the last version that does works with today's engine.
"""

import os
import re
import shutil
from pathlib import Path

from tools.setup.checkout_folders import CHECKOUT
from tools.setup.progress_output import ProgressOutput
from tools.setup.subprocess_runner import CommandFailed, run_program

ENGINE_MODULE = CHECKOUT / "tools" / "engine"
LANGUAGE_MODULE = CHECKOUT / "tools" / "language"
SDK = "github.com/pulumi/pulumi/sdk/v3"
PKG = "github.com/pulumi/pulumi/pkg/v3"
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
# Of each Go program: the folder of the module that requires it, its import path, and the required module's path.
PROGRAMS = ((ENGINE_MODULE, f"{PKG}/cmd/pulumi", PKG), (LANGUAGE_MODULE, f"{SDK}/python/cmd/{LANGUAGE_HOST}", SDK))


def build_engine(target_folder: Path, output: ProgressOutput) -> None:
    """Build the engine and its Python host into `target_folder`/bin. Raises CommandFailed."""
    if shutil.which("go") is None:
        raise CommandFailed("there is no `go` on PATH")
    env = build_go_environment()
    programs_folder = target_folder / "bin"
    programs_folder.mkdir()
    for module_folder, package, required_module in PROGRAMS:
        name = package.rpartition("/")[2]
        version = parse_required_version((module_folder / "go.mod").read_text(), required_module)
        flags = f"-s -w -X {SDK}/go/common/version.Version={version}"
        command = ("go", "build", "-trimpath", "-ldflags", flags, "-o", programs_folder / name, package)
        label = f"building {name} from its Go modules, four to eight minutes in all, once"
        progress = output.create_seconds_callback(label)
        run_program(*command, folder=module_folder, env=env, limit=BUILD_LIMIT_SECONDS, progress=progress)
    sdk_folder = run_program("go", "list", "-m", "-f", "{{.Dir}}", SDK, folder=ENGINE_MODULE, env=env, limit=60)
    for script in SCRIPTS:
        copy = programs_folder / Path(script).name
        shutil.copyfile(Path(sdk_folder) / script, copy)
        copy.chmod(0o755)
    replace_language_host_with_wrapper_script(programs_folder)


def replace_language_host_with_wrapper_script(folder: Path) -> None:
    """Replace the Python host in `folder` by a script that starts it with the project's virtual environment."""
    host = folder / LANGUAGE_HOST
    host.rename(folder / f"{LANGUAGE_HOST}-host")
    host.write_text(LANGUAGE_HOST_SCRIPT)
    host.chmod(0o755)


def build_go_environment() -> dict[str, str]:
    """Return the user's environment without what disables go.sum's checks or adds another workspace."""
    return {**os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off", "CGO_ENABLED": "0"}


def parse_required_version(go_mod_text: str, module: str) -> str:
    """Return the version of `module` that the text of a go.mod requires, without the `v`. Raises CommandFailed."""
    match = re.search(rf"^(?:require)?\s*{re.escape(module)} v(\S+)", go_mod_text, re.MULTILINE)
    if match is None:
        raise CommandFailed(f"go.mod does not require {module}")
    return match[1]


def read_min_go_version() -> str:
    """Return the oldest version of Go that builds the engine, from its go.mod."""
    match = re.search(r"^go (\S+)", (ENGINE_MODULE / "go.mod").read_text(), re.MULTILINE)
    assert match
    return match[1]
