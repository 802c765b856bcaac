"""Write the template with the wheel of this checkout beside it, for teams that have no package index.

    python -m tools.template [DIR]

Prints the folder, for `pulumi new "$(make -s template)"`: `.template` in this checkout, which is then written anew.
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

from tools.setup import CHECKOUT

TEMPLATE = CHECKOUT / "template"
WRITTEN = CHECKOUT / ".template"
REQUIREMENT = "./{wheel}[emulator]\n"


def tracked_files() -> list[str]:
    """Return the files of this checkout that git tracks or would track, relative to it."""
    # As components/rehearsal/checkout.py says, files of a checkout may look like a repository.
    repository = [f"--git-dir={CHECKOUT / '.git'}", f"--work-tree={CHECKOUT}", "-c", "core.fsmonitor=false"]
    command = ["git", *repository, "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    return [file for file in listed.splitlines() if (CHECKOUT / file).is_file()]


def copy_checkout(target_folder: Path) -> None:
    """Copy the files that `tracked_files` returns into a new folder."""
    for file in tracked_files():
        _copy_file(CHECKOUT / file, target_folder / file)


def build_wheel(wheel_folder: Path) -> Path:
    """Build the wheel of this checkout into `wheel_folder`, and return its file.

    It takes the installed setuptools; without a recent one, as where no tests have run, pip gets it for the build. The
    wheel is built from a copy, because setuptools writes into the folder that it builds. Raises CalledProcessError.
    """
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-index", "--no-build-isolation"] if _has_setuptools() else []
    command += [f"--wheel-dir={wheel_folder}"]
    with tempfile.TemporaryDirectory() as sources:
        copy_checkout(Path(sources))
        subprocess.run([*command, sources], check=True)
    (wheel,) = wheel_folder.glob("*.whl")
    return wheel


def _has_setuptools() -> bool:
    """Whether the installed setuptools can build it: Python 3.11 puts an older one into each environment."""
    needed = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["build-system"]["requires"][0]
    try:
        installed = metadata.version("setuptools")
    except metadata.PackageNotFoundError:
        return False
    return int(installed.partition(".")[0]) >= int(needed.partition(">=")[2])


def write(folder: Path) -> None:
    """Write the template into an existing folder, with the wheel beside its `requirements.txt`, which names it."""
    for file in tracked_files():
        if Path(file).parts[0] == TEMPLATE.name:
            _copy_file(CHECKOUT / file, folder / Path(file).relative_to(TEMPLATE.name))
    (folder / "requirements.txt").write_text(REQUIREMENT.format(wheel=build_wheel(folder).name))


def _copy_file(source: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, copy)


def main() -> int:
    """Write the template into the folder that the command line names, or `.template`. Returns the exit code."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else WRITTEN
    try:
        if folder == WRITTEN and folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"template: {error}", file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
