"""Pins what pyproject.toml requires, and all that requires, in requirements.lock: for every platform, with hashes.

    python -m tools.lock

Versions that still fit stay as they are. To take the newest of everything, remove requirements.lock first.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
UV = "uv==0.13.*"
OLDEST_PYTHON = "3.11"


def main() -> int:
    """Compile with uv, installed into a throw-away environment: nothing else needs it. Returns the exit code."""
    options = ["--universal", f"--python-version={OLDEST_PYTHON}", "--generate-hashes", "--no-annotate"]
    options += ["--no-emit-index-url", "--custom-compile-command=make lock", "--output-file=requirements.lock"]
    options += ["--extra=emulator", "--group=dev"]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / "bin"
        install = subprocess.run([programs / "pip", "install", "-q", "--disable-pip-version-check", UV])
        if install.returncode != 0:
            return install.returncode
        return subprocess.run(
            [programs / "uv", "pip", "compile", "-q", *options, "pyproject.toml"], cwd=CHECKOUT
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
