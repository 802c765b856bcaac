"""Pin the requirements of pyproject.toml, and theirs, for every platform, with hashes.

What the project needs is in requirements.lock. What only its tests and checks need is in requirements-dev.lock. The
template's tested.txt has the versions of requirements.lock as constraints of pip, without hashes, so that a project may
add packages of its own.

    python -m tools.lock

Versions that still fit do not change. To take the newest of everything, remove both files first.
"""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tools.setup import CHECKOUT, REQUIREMENTS, dev

UV = "uv==0.13.*"
MIN_PYTHON = "3.11"
TESTED = CHECKOUT / "template" / "tested.txt"
HEADER = "# Written by `make lock`: what only tests and checks need, beside requirements.lock.\n"
TESTED_HEADER = """\
# The versions that this template was tested with: pip install -r requirements.txt -c tested.txt
# Nothing needs this file. With another version of vertex-training, take that version's, or remove it.
"""


def main() -> int:
    """Write the locks with uv, from an environment that is removed again, and return the exit code."""
    options = ["--universal", f"--python-version={MIN_PYTHON}", "--generate-hashes", "--no-annotate"]
    options += ["--no-emit-index-url", "--custom-compile-command=make lock", "--extra=emulator", "--group=checkout"]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / "bin"
        install = subprocess.run([programs / "pip", "install", "-q", "--disable-pip-version-check", UV])
        if install.returncode != 0:
            return install.returncode
        command = [str(programs / "uv"), "pip", "compile", "-q", *options, "pyproject.toml"]
        everything = Path(folder) / "everything.lock"
        # uv keeps the versions of the file that it writes to.
        everything.write_text("".join(file.read_text() for file in (REQUIREMENTS, dev.REQUIREMENTS) if file.exists()))
        for more in (("--group=dev", "-o", everything), ("-c", everything, "-o", REQUIREMENTS)):
            code = subprocess.run([*command, *map(str, more)], cwd=CHECKOUT).returncode
            if code != 0:
                return code
        needed = set(pins(REQUIREMENTS.read_text()))
        rest = [pin for pin in pins(everything.read_text()) if pin not in needed]
        dev.REQUIREMENTS.write_text(HEADER + "".join(rest))
        TESTED.write_text(constraints(REQUIREMENTS.read_text()))
    return 0


def constraints(lock: str) -> str:
    """Return the template's constraints for a lock file: its versions and markers, without hashes."""
    return TESTED_HEADER + "".join(pin.splitlines()[0].removesuffix(" \\") + "\n" for pin in pins(lock))


def pins(lock: str) -> list[str]:
    """Return each package of a lock file, with its hashes."""
    return re.findall(r"^[a-z].*\n(?:    .*\n)*", lock, re.MULTILINE)


if __name__ == "__main__":
    sys.exit(main())
