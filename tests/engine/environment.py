"""An environment of packages that a project may take for its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.engine.project import CHECKOUT


def own_environment(project: Path) -> None:
    """The packages of this checkout's environment, as if set-up had installed them for the project."""
    folder = project / ".venv"
    folder.unlink(missing_ok=True)
    folder.mkdir()
    for entry in (CHECKOUT / ".venv").iterdir():
        if entry.name != "setup.json":
            (folder / entry.name).symlink_to(entry)
    stamp = "import json; from tools.setup import python_environment as p; "
    stamp += "p.STAMP.write_text(json.dumps({**p.wanted(), 'packages': 1}))"
    subprocess.run([sys.executable, "-c", stamp], cwd=project, env={**os.environ, "PYTHONPATH": ""}, check=True)
