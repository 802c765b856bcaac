"""An environment of packages that a project may take for its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.engine.project import CHECKOUT


def link_environment(project: Path) -> None:
    """Link the packages of this checkout's environment, as if set-up had installed them for the project."""
    folder = project / ".venv"
    folder.unlink(missing_ok=True)
    folder.mkdir()
    (folder / "bin").mkdir()
    for entry in [*(CHECKOUT / ".venv").iterdir(), *(CHECKOUT / ".venv" / "bin").iterdir()]:
        # Set-up writes these itself, into its own environment rather than through a link.
        if entry.name not in ("setup.json", "bin", "vertex-emulator", "vertex-training"):
            (folder / entry.relative_to(CHECKOUT / ".venv")).symlink_to(entry)
    stamp = "import json; from tools.setup import python_environment as p; "
    stamp += "p.STAMP.write_text(json.dumps({**p.build_environment_stamp_fields(), 'packages': 1}))"
    subprocess.run([sys.executable, "-c", stamp], cwd=project, env={**os.environ, "PYTHONPATH": ""}, check=True)
