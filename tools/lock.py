"""Pin the requirements of pyproject.toml, and theirs, in requirements.lock: for every platform, with hashes.

    python -m tools.lock

Versions that still fit do not change. To take the newest of everything, remove requirements.lock first.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tools.setup import CHECKOUT

UV = "uv==0.13.*"
MIN_PYTHON = "3.11"


def main() -> int:
    """Write the lock with uv, from an environment that is removed again, and return the exit code."""
    options = ["--universal", f"--python-version={MIN_PYTHON}", "--generate-hashes", "--no-annotate"]
    options += ["--no-emit-index-url", "--custom-compile-command=make lock", "--output-file=requirements.lock"]
    options += ["--extra=emulator", "--group=dev"]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / "bin"
        install = subprocess.run([programs / "pip", "install", "-q", "--disable-pip-version-check", UV])
        if install.returncode != 0:
            return install.returncode
        command = [str(programs / "uv"), "pip", "compile", "-q", *options, "pyproject.toml"]
        return subprocess.run(command, cwd=CHECKOUT).returncode


if __name__ == "__main__":
    sys.exit(main())
